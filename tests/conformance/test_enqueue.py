"""Enqueue: what was accepted is there, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import InvalidValue, StoreError
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store import chunks
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session, stored
from tests.support.refusal import refusing


def test_a_job_comes_back_as_it_was_given(store: SqlStore, clock: SettableClock) -> None:
    given = new_job(task="mail.send", queue="mail", priority=7, payload='{"args":["é"],"kwargs":{}}', key="k")

    assert store.enqueue([given]) == [given.id]

    job = stored(store, given.id)
    assert (job.task, job.queue, job.priority, job.payload, job.key) == ("mail.send", "mail", 7, given.payload, "k")
    assert job.state is JobState.READY
    assert job.run_at == job.created_at == clock.now()
    assert (job.attempt, job.losses, job.fence, job.session, job.result) == (0, 0, 0, None, None)


def test_nothing_is_a_fine_batch(store: SqlStore) -> None:
    assert store.enqueue([]) == []


def test_a_delayed_job_waits_for_the_databases_clock(store: SqlStore, clock: SettableClock) -> None:
    later = new_job(delay=timedelta(minutes=10))

    store.enqueue([later])

    job = stored(store, later.id)
    assert job.state is JobState.SCHEDULED
    assert job.run_at == clock.now() + timedelta(minutes=10)


def test_a_job_for_a_past_time_is_ready(store: SqlStore, clock: SettableClock) -> None:
    given = new_job(run_at=clock.now() - timedelta(days=1))

    store.enqueue([given])

    assert stored(store, given.id).state is JobState.READY
    assert stored(store, given.id).run_at == given.run_at


def test_instants_keep_their_microseconds(store: SqlStore) -> None:
    far = datetime(2199, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    given = new_job(run_at=far)

    store.enqueue([given])

    assert stored(store, given.id).run_at == far


def test_enqueueing_the_same_job_again_changes_nothing(store: SqlStore) -> None:
    given = new_job()
    store.enqueue([given])

    assert store.enqueue([given]) == [given.id]

    assert store.counts() == {"default": {JobState.READY: 1}}


def test_a_key_stands_for_its_unfinished_job(store: SqlStore) -> None:
    first, second = new_job(key="report"), new_job(key="report")

    assert store.enqueue([first, second]) == [first.id, first.id]
    assert store.enqueue([new_job(key="report"), other := new_job()]) == [first.id, other.id]

    assert store.counts() == {"default": {JobState.READY: 2}}


def test_a_key_is_free_again_once_its_job_has_finished(store: SqlStore) -> None:
    job = claimed_job(store, key="report")
    store.settle([settle(job, Succeeded("null"))])
    again = new_job(key="report")

    assert store.enqueue([again]) == [again.id]


def test_a_running_job_keeps_its_key(store: SqlStore) -> None:
    job = claimed_job(store, key="report")

    assert store.enqueue([new_job(key="report")]) == [job.id]


def test_a_large_batch_is_stored_whole_and_in_order(store: SqlStore) -> None:
    jobs = new_jobs(chunks.MOST + 1)

    assert store.enqueue(jobs) == [job.id for job in jobs]

    session = opened_session(store)
    claimed = store.claim(session, "default", chunks.MOST + 1)
    assert [job.id for job in claimed] == [job.id for job in jobs]


def test_large_payloads_go_in_several_statements_and_keep_their_order(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST_CHARACTERS", 50)
    jobs = [new_job(payload=f'{{"args":["{"x" * length}"],"kwargs":{{}}}}') for length in (5, 60, 5, 5, 5, 60)]

    assert store.enqueue(jobs) == [job.id for job in jobs]

    claimed = store.claim(opened_session(store), "default", len(jobs))
    assert [(job.id, job.payload) for job in claimed] == [(job.id, job.payload) for job in jobs]


def test_a_large_batch_that_fails_on_the_way_is_not_stored_at_all(
    url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST", 2)
    jobs = [*new_jobs(4), new_job(task="last")]

    with refusing(url, "INSERT", "jobs", when="NEW.task = 'last'"), pytest.raises(StoreError, match="refused"):
        store.enqueue(jobs)

    assert store.counts() == {}


def test_a_batch_with_one_id_twice_is_refused_whole(store: SqlStore) -> None:
    given = new_job()

    with pytest.raises(InvalidValue, match="one id twice"):
        store.enqueue([given, given])

    assert store.counts() == {}
