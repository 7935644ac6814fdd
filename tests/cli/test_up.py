"""`mainspring up`."""

from __future__ import annotations

import signal
import subprocess
import sys
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


def test_up_without_an_app_shows_one_that_works(folder: Path) -> None:
    done = mainspring("up", folder=folder)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "`mainspring up --app tasks:app`" in done.stderr
    (folder / "tasks.py").write_text(done.stdout)
    assert mainspring("enqueue", "greet", "Ada", "--app", "tasks:app", folder=folder).returncode == 0
    with running("up", "--app", "tasks:app", "--port", "0", folder=folder) as up:
        up.wait_for("1 task: greet")
        eventually(lambda: jobs_at(f"sqlite:///{folder}/mainspring.db")[0].result == '"Hello, Ada!"')


def test_the_example_is_well_formed(folder: Path) -> None:
    (folder / "tasks.py").write_text(mainspring("up", folder=folder).stdout.rstrip("\n") + "\n")

    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", "tasks.py"], capture_output=True)

    assert done.returncode == 0


def test_up_serves_the_api_beside_the_worker(folder: Path) -> None:
    write(folder / "tasks.py")

    with running("up", "--app", "tasks:app", "--port", "0", folder=folder) as up:
        url = address(up)
        job = httpx.post(f"{url}/api/v1/jobs", json={"task": "who"}).json()["id"]
        told = httpx.get(f"{url}/api/v1/jobs/{job}", params={"wait": 60}, timeout=70).json()
        up.signal(signal.SIGTERM)
        assert up.end() == 0

    assert (told["state"], told["result"]) == ("succeeded", up.pid)
