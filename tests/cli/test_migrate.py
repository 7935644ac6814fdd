"""`mainspring migrate`."""

from __future__ import annotations

import json

from mainspring.store import open_store
from tests.cli.program import in_process, mainspring
from tests.support.schema import LATEST, MIGRATIONS


def test_migrate_says_what_it_applied_and_then_that_all_is_up_to_date(empty_url: str) -> None:
    first = mainspring("migrate", "--url", empty_url)
    second = mainspring("migrate", "--url", empty_url)

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("Applied migration 0001 (kernel).\n")
    assert (second.returncode, second.stdout, second.stderr) == (0, f"Up to date: schema version {LATEST}.\n", "")


def test_migrate_tells_programs_the_same_in_json(empty_url: str) -> None:
    first, second = (in_process("migrate", "--json", "--url", empty_url) for _ in range(2))

    assert json.loads(first.stdout) == {
        "applied": [{"number": number, "name": name} for number, name in enumerate(MIGRATIONS, 1)],
        "version": LATEST,
    }
    assert json.loads(second.stdout) == {"applied": [], "version": LATEST}


def test_a_migrated_database_is_ready_for_jobs(empty_url: str) -> None:
    in_process("migrate", "--url", empty_url)

    store = open_store(empty_url)

    assert store.counts() == {}
    store.close()
