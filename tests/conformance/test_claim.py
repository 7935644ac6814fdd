"""Claim: the next due jobs, each to one session, under a growing fence."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.job import JobState, Priority
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Returned
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, new_jobs, opened_session, stored
from tests.support.reboot import rebooted_store


def test_a_claimed_job_is_running_under_a_fence(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store)
    given = new_job()
    store.enqueue([given])
    clock.advance("3s")

    (job,) = store.claim(session, "default", 10)

    assert (job.id, job.state, job.session) == (given.id, JobState.RUNNING, session)
    assert (job.fence, job.attempt, job.started_at) == (1, 1, clock.now())
    assert stored(store, given.id) == job


def test_a_job_is_claimed_once(store: SqlStore) -> None:
    store.enqueue(new_jobs(3))
    one, two = opened_session(store), opened_session(store)

    claimed = [*store.claim(one, "default", 2), *store.claim(two, "default", 2), *store.claim(one, "default", 2)]

    assert len({job.id for job in claimed}) == len(claimed) == 3


def test_urgent_jobs_go_first_and_equals_keep_their_order(store: SqlStore, clock: SettableClock) -> None:
    low, normal = new_job(priority=Priority.LOW), new_job()
    urgent = new_jobs(2, priority=Priority.URGENT)
    store.enqueue([low, normal, urgent[0]])
    clock.advance("1s")
    store.enqueue([urgent[1]])

    claimed = store.claim(opened_session(store), "default", 10)

    assert [job.id for job in claimed] == [urgent[0].id, urgent[1].id, normal.id, low.id]


def test_a_claim_takes_no_more_than_asked_and_only_from_its_queue(store: SqlStore) -> None:
    store.enqueue([*new_jobs(3), *new_jobs(3, queue="mail")])

    claimed = store.claim(opened_session(store), "mail", 2)

    assert [job.queue for job in claimed] == ["mail", "mail"]
    assert store.counts()["default"] == {JobState.READY: 3}


def test_jobs_that_are_not_due_are_not_claimed(store: SqlStore) -> None:
    store.enqueue([new_job(delay=timedelta(seconds=1))])

    assert store.claim(opened_session(store), "default", 10) == []


def test_a_session_that_was_never_opened_gets_nothing(store: SqlStore) -> None:
    store.enqueue([new_job()])

    assert store.claim(new_id(), "default", 10) == []


def test_a_session_whose_lease_has_ended_gets_nothing(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=timedelta(seconds=5))
    store.enqueue([new_job()])
    clock.advance("5s")

    assert store.claim(session, "default", 10) == []
    assert store.counts() == {"default": {JobState.READY: 1}}


def test_a_session_from_before_a_reboot_gets_nothing_on_sqlite(sqlite_url: str) -> None:
    """Its lease is on a clock that began anew, and seems to end later than any lease that was given since."""
    store = rebooted_store(sqlite_url)
    (session,) = store.sessions()
    store.enqueue([new_job()])

    assert store.claim(session.id, "default", 10) == []
    store.close()


def test_the_fence_grows_with_every_claim(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)
    store.settle([settle(job, Returned())])

    (again,) = store.claim(session, "default", 1)

    assert (again.id, again.fence) == (job.id, 2)
    assert stored(store, job.id) == again


def test_a_claim_of_nothing_takes_nothing(store: SqlStore) -> None:
    store.enqueue(new_jobs(2))

    assert store.claim(opened_session(store), "default", 0) == []
    assert store.claim(opened_session(store), "default", -1) == []


def test_a_claim_takes_only_jobs_of_the_tasks_it_names(store: SqlStore) -> None:
    jobs = [new_job(task=task) for task in ("greet", "bill", "greet", "ship", "bill")]
    store.enqueue(jobs)

    claimed = store.claim(opened_session(store), "default", 10, tasks={"greet", "ship", "unheard.of"})

    assert [job.id for job in claimed] == [jobs[0].id, jobs[2].id, jobs[3].id]
    assert store.counts() == {"default": {JobState.RUNNING: 3, JobState.READY: 2}}


def test_jobs_of_unknown_tasks_keep_their_place_and_take_nobody_elses(store: SqlStore, clock: SettableClock) -> None:
    unknown = new_jobs(30, task="unknown", priority=Priority.URGENT)
    store.enqueue(unknown)
    clock.advance("1s")
    known = new_jobs(3)
    store.enqueue(known)
    session = opened_session(store)

    assert [job.id for job in store.claim(session, "default", 2, ["greet"])] == [job.id for job in known[:2]]
    assert [job.id for job in store.claim(session, "default", 31)] == [job.id for job in [*unknown, known[2]]]


def test_a_worker_without_tasks_gets_nothing(store: SqlStore) -> None:
    store.enqueue([new_job()])

    assert store.claim(opened_session(store), "default", 10, tasks=[]) == []


def test_limits_beyond_reason_are_no_error(store: SqlStore) -> None:
    store.enqueue(new_jobs(2, delay=timedelta(hours=1)))

    assert store.claim(opened_session(store), "default", 2**63) == []
    assert store.page(limit=-1) == []
    assert store.promote(limit=-1).count == 0
