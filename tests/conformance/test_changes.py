"""What happened to jobs lately."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model import lifecycle
from mainspring.model.change import Kind
from mainspring.model.failure import Failure
from mainspring.model.ids import first_id
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import new_job, opened_session

MINUTE = timedelta(minutes=1)


def test_each_kind_of_change_is_found_since_it_happened(store: SqlStore, clock: SettableClock) -> None:
    begun = store.now()
    first, second = new_job(), new_job()
    store.enqueue([first, second])
    session = opened_session(store)
    jobs = {job.id: job for job in store.claim(session, "default", 2)}
    failed = Failed(Failure(type="ValueError", message="no luck"), retryable=True)
    store.settle(
        [
            lifecycle.settle(jobs[first.id], failed, Retry(max_attempts=2)),
            lifecycle.settle(jobs[second.id], Succeeded("null")),
        ]
    )

    found = {(one.change, one.id, one.state.value) for one in store.changes(begun)}

    assert (Kind.ATTEMPTED, first.id, "retrying") in found
    assert (Kind.FINISHED, second.id, "succeeded") in found
    clock.advance(MINUTE)
    assert {one.change for one in store.changes(store.now() - MINUTE / 2)} <= {Kind.CREATED}


def test_jobs_that_run_are_found_by_when_they_started(store: SqlStore, clock: SettableClock) -> None:
    job = new_job(team="acme")
    store.enqueue([job])
    clock.advance(MINUTE)
    begun = store.now()
    (claimed,) = store.claim(opened_session(store), "default", 1)

    (started,) = [one for one in store.changes(begun) if one.change is Kind.STARTED]

    assert (started.id, started.team, started.fence, started.at) == (job.id, "acme", claimed.fence, claimed.started_at)
    assert [one for one in store.changes(begun + MINUTE) if one.change is Kind.STARTED] == []


def test_of_many_changes_the_newest_are_found(store: SqlStore) -> None:
    jobs = [new_job() for _ in range(5)]
    store.enqueue(jobs)

    found = store.changes(store.now() - MINUTE, limit=2)

    assert {one.id for one in found} <= {job.id for job in jobs}
    assert len(found) <= 2


def test_jobs_from_a_clock_that_is_far_ahead_do_not_hide_others(real_store: SqlStore) -> None:
    now = real_store.now()
    ours = new_job()
    real_store.enqueue([ours, new_job(id=first_id(now + 60 * MINUTE))])

    found = real_store.changes(now - MINUTE, now + MINUTE, limit=1)

    assert [one.id for one in found] == [ours.id]
