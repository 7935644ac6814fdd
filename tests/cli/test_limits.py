"""`mainspring limits`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mainspring.model.limits import Limit, Want
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from tests.cli.databases import migrated
from tests.cli.jobs import Jobs
from tests.cli.program import in_process, mainspring
from tests.support.factories import new_jobs, opened_session

ONE = [Limit("tenant:7", concurrency=1).want({})]
SLOW = [Limit("smtp", rate="100/m", burst=1).want({})]


def wait_for(store: SqlStore, wants: Sequence[Want]) -> None:
    """Let one job of two start, so that the other waits."""
    store.enqueue(new_jobs(2, queue="limited"))
    store.admit([(job, wants) for job in store.claim(opened_session(store), "limited", 2)])


def test_limits_are_listed_with_what_they_allow_and_what_waits(url: str) -> None:
    store = open_store(migrated(url))
    wait_for(store, ONE)
    wait_for(store, SLOW)
    store.close()

    done = mainspring("limits", "--url", url)
    told = json.loads(in_process("limits", "--url", url, "--json").stdout)

    header, smtp, tenant = done.stdout.splitlines()
    assert header.split() == ["Limit", "Allows", "Held", "Waiting"]
    assert smtp.split() == ["smtp", "1", "every", "600ms,", "1", "together", "0", "1"]
    assert tenant.split() == ["tenant:7", "1", "at", "once", "1", "1"]
    assert told["limits"][0] == {
        "key": "smtp",
        "concurrency": None,
        "interval_seconds": 0.6,
        "burst": 1,
        "held": 0,
        "waiting": 1,
    }


def test_a_database_without_limits_says_so(sqlite_url: str) -> None:
    done = in_process("limits", "--url", migrated(sqlite_url))

    assert (done.returncode, done.stdout.startswith("No job in ")) == (0, True)


def test_what_waits_for_a_limit_is_released(jobs: Jobs) -> None:
    wait_for(jobs.store, ONE)

    wrong = in_process("limits", "release", "tenant:8")
    done = in_process("limits", "release", "tenant:7")
    again = in_process("limits", "release", "tenant:7", "--json")

    assert wrong.stderr == "error: no job that could start waits for limit 'tenant:8', did you mean 'tenant:7'?\n"
    assert (done.returncode, done.stdout) == (0, "tenant:7: 1 job made ready\n")
    assert (again.returncode, json.loads(again.stdout)) == (1, {"key": "tenant:7", "released": 0})


def test_a_key_that_makes_no_sense_is_refused(jobs: Jobs) -> None:
    done = in_process("limits", "release", "")

    assert (done.returncode, done.stderr.startswith("error: expected the key of a limit")) == (2, True)
