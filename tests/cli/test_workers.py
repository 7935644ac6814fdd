"""`mainspring workers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from mainspring.model.session import NewSession
from tests.cli.databases import migrated
from tests.cli.jobs import IDS, jobs_in
from tests.cli.program import eventually, in_process, mainspring


def test_workers_are_listed_with_whether_they_are_alive(url: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    with jobs_in(url) as jobs:
        lost = NewSession(
            id=IDS.next(), name="a-host-with-a-long-name.example.com:4321", lease=timedelta(0, 0.1), queues=["mail"]
        )
        jobs.store.open_session(lost)
        eventually(lambda: not jobs.store.sessions()[1].alive)

    done = mainspring("workers", "--url", url)
    told = json.loads(in_process("workers", "--url", url, "--json").stdout)

    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Worker", "State", "Queues", "Started", "Last", "beat", "Lease", "Session"]
    assert lines[1].startswith("host:1234")
    assert " alive " in lines[1]
    assert " lost " in lines[2]
    assert max(map(len, lines)) <= 80
    assert [(one["name"], one["alive"]) for one in told["workers"]] == [("host:1234", True), (lost.name, False)]
    assert (told["workers"][1]["id"], told["workers"][1]["lease_seconds"]) == (str(lost.id), 0.1)


def test_without_workers_it_says_how_to_start_one(sqlite_url: str) -> None:
    done = in_process("workers", "--url", migrated(sqlite_url))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "No worker is there. Start one with `mainspring worker --app module:name`.\n"
