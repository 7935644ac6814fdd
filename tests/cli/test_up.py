"""`mainspring up`."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from tests.cli.program import address, eventually, mainspring, running
from tests.cli.projects import jobs_at, write


def test_up_runs_an_app_in_one_process(folder: Path) -> None:
    write(folder / "tasks.py")
    url = f"sqlite:///{folder}/mainspring.db"
    mainspring("enqueue", "who", folder=folder)

    with running("up", "--app", "tasks:app", "--port", "0", folder=folder) as up:
        eventually(lambda: jobs_at(url)[0].state.final)
        up.signal(signal.SIGINT)
        assert up.end() == 0

    assert jobs_at(url)[0].result == str(up.pid)


def test_up_without_an_app_runs_what_needs_none_and_says_how_to_give_it_one(folder: Path) -> None:
    with running("up", "--allow-command", "echo", "--port", "0", folder=folder) as up:
        up.wait_for("only requests and allowed commands run; for tasks of your own add --app module:name")
        url = address(up)
        wanted = {"task": "mainspring.command", "args": [["echo", "hello"]]}
        job = httpx.post(f"{url}/api/v1/jobs", json=wanted).json()["id"]
        told = httpx.get(f"{url}/api/v1/jobs/{job}", params={"wait": 60}, timeout=70).json()
        up.signal(signal.SIGTERM)
        assert up.end() == 0

    assert (told["state"], told["result"]["output"]) == ("succeeded", "hello\n")


def test_up_with_nothing_at_all_starts(folder: Path) -> None:
    with running("up", "--port", "0", folder=folder) as up:
        up.wait_for("only requests run")
        assert httpx.get(f"{address(up)}/readyz").json() == {"status": "ok"}


def test_up_serves_the_api_beside_the_worker(folder: Path) -> None:
    write(folder / "tasks.py")

    with running("up", "--app", "tasks:app", "--port", "0", folder=folder) as up:
        url = address(up)
        job = httpx.post(f"{url}/api/v1/jobs", json={"task": "who"}).json()["id"]
        told = httpx.get(f"{url}/api/v1/jobs/{job}", params={"wait": 60}, timeout=70).json()
        up.signal(signal.SIGTERM)
        assert up.end() == 0

    assert (told["state"], told["result"]) == ("succeeded", up.pid)
