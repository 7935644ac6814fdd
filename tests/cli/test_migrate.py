"""`mainspring migrate`."""

from __future__ import annotations

import json

from mainspring.store import open_store
from tests.cli.program import in_process, mainspring


def test_migrate_says_what_it_applied_and_then_that_all_is_up_to_date(empty_url: str) -> None:
    first = mainspring("migrate", "--url", empty_url)
    second = mainspring("migrate", "--url", empty_url)

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("Applied migration 0001 (kernel).\n")
    assert (second.returncode, second.stdout, second.stderr) == (0, "Up to date: schema version 3.\n", "")


def test_migrate_tells_programs_the_same_in_json(empty_url: str) -> None:
    first, second = (in_process("migrate", "--json", "--url", empty_url) for _ in range(2))

    assert json.loads(first.stdout) == {
        "applied": [
            {"number": 1, "name": "kernel"},
            {"number": 2, "name": "schedules"},
            {"number": 3, "name": "queues"},
        ],
        "version": 3,
    }
    assert json.loads(second.stdout) == {"applied": [], "version": 3}


def test_a_migrated_database_is_ready_for_jobs(empty_url: str) -> None:
    in_process("migrate", "--url", empty_url)

    store = open_store(empty_url)

    assert store.counts() == {}
    store.close()
