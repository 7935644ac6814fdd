"""Promote: what is due becomes ready, and the sweeper learns when to come back."""

from __future__ import annotations

from datetime import timedelta

import psycopg

from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session, stored


def test_nothing_waits_in_an_empty_store(store: SqlStore) -> None:
    promoted = store.promote()

    assert (promoted.count, promoted.next_due) == (0, None)


def test_a_job_is_promoted_at_its_time_and_not_before(store: SqlStore, clock: SettableClock) -> None:
    later = new_job(delay=timedelta(seconds=10))
    store.enqueue([later])

    clock.advance(9.999)
    early = store.promote()
    clock.advance(0.001)
    on_time = store.promote()

    assert (early.count, early.next_due) == (0, timedelta(milliseconds=1))
    assert (on_time.count, on_time.next_due) == (1, None)
    assert stored(store, later.id).state is JobState.READY


def test_a_retry_is_promoted_too(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry(base="5s"))])
    clock.advance("5s")

    assert store.promote().count == 1

    (again,) = store.claim(opened_session(store), "default", 1)
    assert (again.id, again.attempt, again.fence) == (job.id, 2, 2)


def test_the_next_due_time_is_that_of_the_soonest(store: SqlStore) -> None:
    store.enqueue([new_job(delay=timedelta(hours=n)) for n in (3, 1, 2)])

    assert store.promote().next_due == timedelta(hours=1)


def test_what_is_left_over_is_due_at_once(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(5, delay=timedelta(seconds=1)))
    clock.advance("10s")

    assert (first := store.promote(limit=3)).count == 3
    assert first.next_due == timedelta(0)
    assert store.promote(limit=3).count == 2


def test_promoted_jobs_stand_by_their_due_time(store: SqlStore, clock: SettableClock) -> None:
    late, soon = new_job(delay=timedelta(seconds=2)), new_job(delay=timedelta(seconds=1))
    store.enqueue([late, soon])
    clock.advance("5s")
    store.promote()

    claimed = store.claim(opened_session(store), "default", 2)

    assert [job.id for job in claimed] == [soon.id, late.id]


def test_a_sweeper_that_finds_everything_locked_does_not_come_back_at_once(
    postgres_url: str, clock: SettableClock
) -> None:
    store = open_store(postgres_url, clock=clock)
    store.enqueue([new_job(delay=timedelta(seconds=1))])
    clock.advance("2s")

    with psycopg.connect(postgres_url) as somebody:
        somebody.execute("SELECT FROM mainspring.jobs FOR UPDATE")
        promoted = store.promote()

    assert promoted.count == 0
    assert promoted.next_due is not None
    assert promoted.next_due > timedelta(0)
    store.close()


def test_a_job_may_be_promoted_ahead_and_counts_as_started_at_its_time(store: SqlStore, clock: SettableClock) -> None:
    tenth = timedelta(seconds=0.1)
    store.enqueue([new_job(delay=n * tenth) for n in (1, 2, 3)])

    promoted = store.promote(ahead=2 * tenth)
    session = opened_session(store)
    assert store.claim(session, "default", 10) == []
    early, later = store.claim(session, "default", 10, ahead=2 * tenth)

    assert (promoted.count, promoted.next_due) == (2, tenth)
    assert (
        early.started_at == later.started_at == clock.now()
    )  # when it was claimed: the rest of the time is waited for
    assert stored(store, early.id).started_at == early.run_at == clock.now() + tenth
