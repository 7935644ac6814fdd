"""Logs: what jobs have said is found by what it contains, how serious it is, whose it is and when it was said."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.job import Job
from mainspring.model.journal import LogFilter, LogLine
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store.protocol import LogSearch
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import claimed_job


def say(store: SqlStore, job: Job, *messages: str, level: str = "info", logger: str | None = None) -> None:
    first = len(store.logs(job.id)) + 1
    lines = [LogLine(job.id, job.fence, n, level, message, logger) for n, message in enumerate(messages, first)]
    assert store.record(lines, []) == {job.id}


def found(store: SqlStore, limit: int = 100, **wanted: Any) -> list[str]:
    match = LogFilter(contains=wanted.pop("contains", None), level=wanted.pop("level", None))
    return [line.message for line in store.find_logs(LogSearch(match=match, **wanted), limit)]


def test_a_line_is_kept_with_the_logger_whose_record_it_was(store: SqlStore) -> None:
    job = claimed_job(store)
    say(store, job, "by logging", logger="shop.mail")
    say(store, job, "by the context")

    assert [line.logger for line in store.logs(job.id)] == ["shop.mail", None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100%", ["100% done"]),
        ("_b", ["a_b"]),
        ("\\s", ["back\\slash"]),
        ("DONE", []),
        ("' OR 1=1 --", ["' OR 1=1 --"]),
        ("Ünï", ["Ünïcode"]),
        ("a\0b", ["a\\x00b"]),
        ("", ["a\\x00b", "Ünïcode", "' OR 1=1 --", "back\\slash", "axb", "a_b", "100 done", "100% done"]),
    ],
)
def test_what_a_line_contains_is_taken_letter_by_letter(store: SqlStore, text: str, expected: list[str]) -> None:
    job = claimed_job(store)
    say(store, job, "100% done", "100 done", "a_b", "axb", "back\\slash", "' OR 1=1 --", "Ünïcode", "a\0b")

    assert found(store, contains=text) == expected
    match = LogFilter(contains=text)
    assert [line.message for line in store.logs(job.id, match=match)] == expected[::-1]


def test_a_level_brings_the_more_serious_ones_and_those_that_somebody_made(store: SqlStore) -> None:
    job = claimed_job(store)
    for level in ("debug", "info", "WARNING", "error", "critical", "level 25"):
        say(store, job, level, level=level)

    assert found(store, level="warning") == ["level 25", "critical", "error", "WARNING"]
    assert [line.message for line in store.logs(job.id, match=LogFilter(level="error"))] == [
        "error",
        "critical",
        "level 25",
    ]


def test_a_level_that_is_none_and_a_text_that_is_none_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"one of debug, info, warning, error, critical, got: 'warn'.*warning"):
        LogFilter(level="warn")
    with pytest.raises(InvalidValue, match="expected contains to be text"):
        LogFilter(contains=7)  # type: ignore[arg-type]


def test_lines_of_unfinished_and_finished_jobs_are_found_by_their_task(store: SqlStore) -> None:
    live, done = claimed_job(store, task="greet"), claimed_job(store, task="mail")
    say(store, live, "live")
    say(store, done, "done")
    store.settle([settle(done, Succeeded("1"))])

    assert sorted(found(store)) == ["done", "live"]
    assert found(store, task="mail") == ["done"]
    assert [(line.job_id, line.task) for line in store.find_logs(LogSearch(task="greet"))] == [(live.id, "greet")]


def test_lines_of_another_team_are_not_found(store: SqlStore) -> None:
    for team in ("acme", "beta", None):
        job = claimed_job(store, team=team)
        say(store, job, f"of {team}")
        finished = claimed_job(store, team=team)
        say(store, finished, f"once of {team}")
        store.settle([settle(finished, Succeeded("1"))])

    assert sorted(found(store, team="acme")) == ["of acme", "once of acme"]
    assert sorted(found(store, team="default")) == ["of None", "once of None"]
    assert len(found(store)) == 6


def test_a_line_whose_job_is_gone_is_nobodys(store: SqlStore, url: str) -> None:
    """Whose it was can't be told: the default team must not have what was another's."""
    job = claimed_job(store, team="acme")
    say(store, job, "secret")
    store.settle([settle(job, Succeeded("1"))])
    assert found(store, team="acme") == ["secret"]

    execute(url, f"DELETE FROM {table(url, 'jobs_done')}")

    assert found(store, team="default") == found(store) == []


def test_only_what_was_said_lately_is_looked_through_newest_first(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    for age in ("old", "three hours", "half an hour", "a minute", "now"):
        say(store, job, age)
        clock.advance({"old": "21h", "three hours": "150m", "half an hour": "29m", "a minute": "1m"}.get(age, "0s"))

    assert found(store) == ["now", "a minute", "half an hour"]
    assert found(store, within=timedelta(days=1)) == ["now", "a minute", "half an hour", "three hours", "old"]
    assert found(store, within=timedelta(minutes=10)) == ["now", "a minute"]
    assert found(store, 2) == ["now", "a minute"]
    assert found(store, 4, within=timedelta(days=999_999)) == ["now", "a minute", "half an hour", "three hours"]
    assert found(store, 0) == []
