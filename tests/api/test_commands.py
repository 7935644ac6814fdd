"""Commands and requests as jobs, over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from mainspring import Mainspring
from tests.api.conftest import Client

JOBS = "/api/v1/jobs"


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir(mode=0o755)
    script = folder / "speak"
    script.write_text('#!/bin/sh\necho "hello $1"\necho "and goodbye"\nexit 3\n')
    script.chmod(0o755)
    return folder


def test_a_command_is_run_and_its_end_and_output_are_shown(client_of: Client, app: Mainspring, scripts: Path) -> None:
    client = client_of(acme="submitter")
    wanted = {"task": "mainspring.command", "args": [[str(scripts / "speak"), "Ada"]], "kwargs": {"ok": [3]}}
    created = client.post(JOBS, json=wanted)
    assert created.status_code == 201, created.text
    job = f"{JOBS}/{created.json()['id']}"

    with app.worker(commands=[str(scripts)]):
        told = client.get(job, params={"wait": 30}).json()

    assert (told["state"], told["result"]["exit_code"]) == ("succeeded", 3)
    assert told["result"]["output"] == "hello Ada\nand goodbye\n"
    (attempt,) = client.get(f"{job}/attempts").json()["items"]
    assert attempt["details"]["exit_code"] == 3
    lines = [line["message"] for line in client.get(f"{job}/logs").json()["items"]]
    assert lines == ["hello Ada", "and goodbye"]
    assert [line["job"] for line in client.get("/api/v1/logs", params={"contains": "goodbye"}).json()["items"]] == [
        created.json()["id"]
    ]


@pytest.mark.parametrize(
    ("task", "args", "kwargs"),
    [
        ("mainspring.command", ["rm -rf /"], {}),
        ("mainspring.command", [[]], {}),
        ("mainspring.command", [["ls", 1]], {}),
        ("mainspring.command", [], {}),
        ("mainspring.command", [["ls"]], {"shell": True}),
        ("mainspring.command", [["ls"]], {"cwd": "relative"}),
        ("mainspring.http", [], {}),
        ("mainspring.http", ["GET", 1], {}),
    ],
    ids=str,
)
def test_arguments_that_a_built_in_task_does_not_take_are_refused(
    client: httpx.Client, app: Mainspring, task: str, args: list[object], kwargs: dict[str, object]
) -> None:
    answer = client.post(JOBS, json={"task": task, "args": args, "kwargs": kwargs})

    assert answer.status_code == 422, answer.text
    assert app.jobs() == []


def test_an_app_without_tasks_of_its_own_checks_them_too(sqlite_url: str, client_of: Client) -> None:
    from mainspring.server import Server

    bare = Mainspring(sqlite_url)
    server = Server(bare, "127.0.0.1", 0)
    server.start()
    try:
        post = httpx.post(f"{server.url}{JOBS}", json={"task": "mainspring.command", "args": ["ls"]})
        told = httpx.post(f"{server.url}{JOBS}", json={"task": "mainspring.webhook", "args": [{}]})
    finally:
        server.stop()
        bare.close()

    assert (post.status_code, told.status_code) == (422, 422)
