"""Prune: finished jobs leave by whole days, unfinished ones never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store.sql import SqlStore
from mainspring.store.sweep import PRUNE_BATCH
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session


def test_a_day_goes_when_its_last_moment_is_old_enough(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1"))])

    clock.jump(to=datetime(2026, 1, 8, 23, 59, 59, tzinfo=UTC))
    assert store.prune(timedelta(days=7)) == 0
    clock.jump(to=datetime(2026, 1, 9, 0, 0, 0, tzinfo=UTC))
    assert store.prune(timedelta(days=7)) == 1

    assert store.get([job.id]) == {}
    assert store.attempts(job.id) == []


def test_younger_days_stay(store: SqlStore, clock: SettableClock) -> None:
    for _ in range(3):
        job = claimed_job(store)
        store.settle([settle(job, Succeeded("1"))])
        clock.advance("1d")

    assert store.prune(timedelta(days=2)) == 1
    assert len(store.page()) == 2
    assert store.prune(timedelta(days=2)) == 0


def test_unfinished_jobs_are_never_pruned(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([new_job(), new_job(delay=timedelta(days=3))])
    clock.advance("900d")

    assert store.prune(timedelta(0)) == 0
    assert store.counts() == {"default": {JobState.READY: 1, JobState.SCHEDULED: 1}}


def test_more_than_one_batch_is_pruned_in_one_call(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(PRUNE_BATCH + 10))
    jobs = store.claim(opened_session(store), "default", PRUNE_BATCH + 10)
    store.settle([settle(job, Succeeded("1")) for job in jobs])
    clock.advance("2d")

    assert store.prune(timedelta(0)) == PRUNE_BATCH + 10


def test_old_attempts_of_a_living_job_are_pruned(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry())])
    clock.advance("10d")

    store.prune(timedelta(days=7))

    assert store.attempts(job.id) == []
    assert store.counts() == {"default": {JobState.RETRYING: 1}}


def test_log_lines_go_with_the_day_on_which_they_were_said(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, opened_session(store, lease=timedelta(days=900)))
    for number in range(1, 4):
        store.record([LogLine(job.id, job.fence, number, "INFO", "still busy")], [])
        clock.advance("1d")

    assert store.prune(timedelta(days=2)) == 0

    assert [line.number for line in store.logs(job.id)] == [2, 3]


def test_jobs_finish_on_days_that_nobody_prepared(store: SqlStore, clock: SettableClock) -> None:
    for days in ("40d", "400d", "4000d"):
        clock.advance(days)
        job = claimed_job(store)
        assert store.settle([settle(job, Succeeded("1"))]) == {job.id}

    clock.jump(to=datetime(1999, 12, 31, 23, 59, tzinfo=UTC))
    store.enqueue([new_job(key="old")])
    assert len(store.page()) == 4
