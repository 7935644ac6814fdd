"""`mainspring server`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from mainspring import Mainspring
from tests.cli.program import address, assert_refused, mainspring, running
from tests.cli.projects import jobs_at, write


def test_the_server_serves_until_it_is_told_to_stop(folder: Path) -> None:
    with running("server", "--port", "0", folder=folder) as server:
        url = address(server)
        assert httpx.post(f"{url}/api/v1/jobs", json={"task": "any.task"}).status_code == 201
        assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
        server.signal(signal.SIGTERM)
        assert server.end() == 0

    assert [job.task for job in jobs_at(f"sqlite:///{folder}/mainspring.db")] == ["any.task"]


def test_it_logs_for_programs_too(folder: Path) -> None:
    with running("server", "--port", "0", "--log-format", "json", folder=folder) as server:
        (line,) = server.wait_for('"message": "database ')
        assert json.loads(line)["level"] == "info"


def test_with_an_app_arguments_are_checked(folder: Path) -> None:
    write(folder / "tasks.py")

    with running("server", "--app", "tasks:app", "--port", "0", folder=folder) as server:
        answer = httpx.post(f"{address(server)}/api/v1/jobs", json={"task": "nobody"})

    assert answer.json()["type"] == "urn:mainspring:task-not-found"


@pytest.mark.parametrize(
    "url", ["mysql://u:hunter2@x/", "sqlite://", "postgresql://u:p@ss@x/d", "postgresql://x:port/d"]
)
def test_what_can_be_no_database_is_refused_at_the_start(folder: Path, url: str) -> None:
    done = mainspring("server", "--port", "0", "--url", url, folder=folder)

    assert_refused(done, "database address" if "sqlite" not in url else "SQLite file")
    assert "hunter2" not in done.stderr


def test_a_database_that_is_not_there_yet_is_waited_for(folder: Path) -> None:
    with running("server", "--port", "0", "--url", "postgresql://127.0.0.1:1/none", folder=folder) as server:
        answer = httpx.get(f"{address(server)}/readyz", timeout=60)

    assert answer.status_code == 503


def test_beyond_this_machine_nothing_is_served_without_the_token_of_an_admin(folder: Path) -> None:
    done = mainspring("server", "--host", "0.0.0.0", "--port", "0", folder=folder)

    assert_refused(done, "0.0.0.0", "`mainspring tokens create`")


def test_with_the_token_of_an_admin_it_is(folder: Path) -> None:
    app = Mainspring(f"sqlite:///{folder}/mainspring.db")
    text, _ = app.tokens.create("admin", {"*": "admin"})
    app.close()

    with running("server", "--host", "0.0.0.0", "--port", "0", folder=folder) as server:
        url = address(server).replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/api/v1/jobs").status_code == 401
        assert httpx.get(f"{url}/api/v1/jobs", headers={"Authorization": f"Bearer {text}"}).status_code == 200


@pytest.mark.parametrize("command", [["server"], ["up", "--app", "tasks"]])
def test_an_address_that_is_taken_is_refused(folder: Path, command: list[str]) -> None:
    write(folder / "tasks.py")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = mainspring(*command, "--port", port, folder=folder)

    assert done.returncode == 2
    assert f"can't listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_packages_of_the_server_up_goes_on_and_the_server_says_what_is_missing(folder: Path) -> None:
    write(folder / "tasks.py")
    (folder / "uvicorn.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')")
    env = {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}

    with running("up", "--app", "tasks:app", folder=folder, env=env) as up:
        up.wait_for("mainspring[server]")
        up.wait_for(" serves ")
        up.signal(signal.SIGTERM)
        assert up.end() == 0
    done = subprocess.run(
        [sys.executable, "-m", "mainspring", "server"], env={**os.environ, **env}, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the server needs uvicorn" in done.stderr
