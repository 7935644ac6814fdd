"""Inspect: look-ups over unfinished and finished jobs alike."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store.protocol import JobFilter
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, new_jobs, opened_session


def test_jobs_are_found_wherever_they_are(store: SqlStore) -> None:
    finished = claimed_job(store)
    store.settle([settle(finished, Succeeded("1"))])
    waiting = new_job()
    store.enqueue([waiting])

    found = store.get([finished.id, waiting.id, new_id()])

    assert {job.id: job.state for job in found.values()} == {
        finished.id: JobState.SUCCEEDED,
        waiting.id: JobState.READY,
    }
    assert store.get([]) == {}


def test_pages_walk_from_the_newest_to_the_oldest(store: SqlStore) -> None:
    jobs = new_jobs(7)
    store.enqueue(jobs)
    for job in store.claim(opened_session(store), "default", 3):
        store.settle([settle(job, Succeeded("1"))])
    newest_first = [job.id for job in reversed(jobs)]

    one = store.page(limit=4)
    two = store.page(before=one[-1].id, limit=4)

    assert [job.id for job in [*one, *two]] == newest_first
    assert store.page(before=two[-1].id) == []


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (JobFilter(state=JobState.READY), {"b", "c"}),
        (JobFilter(state=JobState.SUCCEEDED), {"a"}),
        (JobFilter(queue="mail"), {"c"}),
        (JobFilter(task="other"), {"b"}),
        (JobFilter(key="a"), {"a"}),
        (JobFilter(state=JobState.FAILED), set()),
    ],
)
def test_pages_can_be_filtered(store: SqlStore, match: JobFilter, expected: set[str]) -> None:
    finished = claimed_job(store, key="a")
    store.settle([settle(finished, Succeeded("1"))])
    store.enqueue([new_job(key="b", task="other"), new_job(key="c", queue="mail")])

    assert {job.key for job in store.page(match)} == expected


def test_unfinished_jobs_are_counted_by_queue_and_state(store: SqlStore) -> None:
    store.enqueue([*new_jobs(2), new_job(queue="mail", delay=timedelta(hours=1))])
    finished = claimed_job(store, queue="gone")
    store.settle([settle(finished, Succeeded("1"))])

    assert store.counts() == {"default": {JobState.READY: 2}, "mail": {JobState.SCHEDULED: 1}}


def test_attempts_tell_the_whole_story(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=timedelta(days=1))
    job = claimed_job(store, session)
    store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry(base="1s"))])
    clock.advance("1s")
    store.promote()
    (again,) = store.claim(session, "default", 1)

    while_running = store.attempts(job.id)
    store.settle([settle(again, Succeeded("1"))])
    at_the_end = store.attempts(job.id)

    assert [(past.number, past.outcome) for past in while_running] == [(1, "failed"), (2, None)]
    assert [(past.number, past.outcome) for past in at_the_end] == [(1, "failed"), (2, "succeeded")]
    assert [past.failure is None for past in at_the_end] == [False, True]
    assert {past.session for past in at_the_end} == {session}


def test_an_unknown_job_has_no_attempts(store: SqlStore) -> None:
    assert store.attempts(new_id()) == []
