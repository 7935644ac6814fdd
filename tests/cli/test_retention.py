"""`mainspring retention` and `mainspring prune`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.model.lifecycle import settle
from mainspring.store import open_store
from mainspring.testing import SettableClock
from tests.cli.databases import migrated
from tests.cli.jobs import Jobs
from tests.cli.program import in_process, mainspring
from tests.support.factories import FAILURE, SUCCESS, claimed_jobs, new_jobs


def finish(url: str, days_ago: int, succeeded: int, failed: int) -> None:
    """Let jobs end so many days ago."""
    store = open_store(url, clock=SettableClock(datetime.now(UTC) - timedelta(days=days_ago)))
    store.enqueue(new_jobs(succeeded + failed))
    outcomes = [SUCCESS] * succeeded + [FAILURE] * failed
    store.settle([settle(job, outcome) for job, outcome in zip(claimed_jobs(store).values(), outcomes, strict=True)])
    store.close()


def test_rules_are_set_listed_and_removed(url: str) -> None:
    migrated(url)
    done = mainspring("retention", "set", "--state", "failed", "--age", "90d", "--url", url)
    in_process("retention", "set", "--team", "acme", "--queue", "mail", "--count", "1000", "--url", url)
    listed = in_process("retention", "list", "--url", url).stdout.splitlines()
    told = json.loads(in_process("retention", "list", "--json", "--url", url).stdout)
    removed = in_process("retention", "remove", "--state", "failed", "--url", url)
    again = in_process("retention", "remove", "--state", "failed", "--url", url)

    assert (done.returncode, done.stdout) == (0, "state failed: for 90d\n")
    assert [line.split() for line in listed] == [
        ["Team", "Queue", "State", "Age", "Count"],
        ["acme", "mail", "any", "as", "the", "rest", "1,000"],
        ["any", "any", "failed", "90d", "any"],
    ]
    assert told["rules"][1] == {
        "team": None,
        "queue": None,
        "state": "failed",
        "age": "90d",
        "count": None,
    }
    assert (removed.returncode, removed.stdout) == (0, "state failed: rule removed\n")
    assert (again.returncode, again.stdout) == (1, "")
    assert "there is no rule for just that: state failed" in again.stderr


def test_a_dry_run_tells_by_rule_what_then_goes(url: str) -> None:
    migrated(url)
    finish(url, 40, succeeded=3, failed=2)
    finish(url, 10, succeeded=4, failed=1)
    in_process("retention", "set", "--state", "succeeded", "--age", "7d", "--url", url)

    dry = in_process("prune", "--dry-run", "--url", url)
    told = json.loads(in_process("prune", "--dry-run", "--json", "--url", url).stdout)
    done = in_process("prune", "--url", url)
    again = json.loads(in_process("prune", "--json", "--url", url).stdout)

    header, succeeded, rest, total = dry.stdout.splitlines()
    assert header.split() == ["Rule", "Kept", "Jobs", "Oldest"]
    assert succeeded.split()[:4] == ["state", "succeeded", "7d", "7"]
    assert "40d ago" in succeeded
    assert rest.split()[:4] == ["everything", "else", "30d", "2"]
    assert total == "9 jobs would go."
    assert (told["dry_run"], told["pruned"], [one["jobs"] for one in told["rules"]]) == (True, None, [7, 2])
    assert done.stdout.splitlines()[-1] == "9 jobs pruned."
    assert (again["pruned"], [one["jobs"] for one in again["rules"]]) == (0, [0, 0])


def test_what_no_rule_covers_goes_by_what_workers_are_told(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = migrated(sqlite_url)
    finish(url, 10, succeeded=2, failed=0)
    kept = in_process("prune", "--dry-run", "--url", url).stdout
    monkeypatch.setenv("MAINSPRING_RETENTION", "3d")

    shorter = in_process("prune", "--dry-run", "--url", url).stdout
    wrong = in_process("prune", "--retention", "0", "--url", url)

    assert kept == "0 jobs would go.\n"
    assert shorter.splitlines()[-1] == "2 jobs would go."
    assert "everything " in shorter
    assert (wrong.returncode, "expected retention to be a duration longer than 0" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected an age or a count to keep, got neither"),
        (["--age", "soon"], "expected --age to be a duration such as '90s'"),
        (["--age", "1d", "--state", "ready"], "expected state to be one in which a job has ended"),
        (["--count", "0"], "--count"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_sentence(jobs: Jobs, arguments: list[str], message: str) -> None:
    done = in_process("retention", "set", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_without_rules_and_without_a_command_it_says_so(jobs: Jobs) -> None:
    assert "No rules: finished jobs are kept" in in_process("retention", "list").stdout
    assert "No rules: finished jobs are kept" in in_process("retention").stdout
