"""Expire: a job that has not started in its time never starts late."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from mainspring.errors import InvalidValue
from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Returned, Snoozed, Succeeded
from mainspring.model.retry import Retry
from mainspring.model.schedule import Overlap
from mainspring.store import open_store
from mainspring.store.database import DUE
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session, stored
from tests.support.schedules import fire, new_schedule

HOUR = timedelta(hours=1)


def test_a_job_expires_that_long_after_its_due_time(store: SqlStore, clock: SettableClock) -> None:
    now = clock.now()
    at_once, later = new_job(expires=HOUR), new_job(expires=HOUR, delay=HOUR)
    store.enqueue([at_once, later, never := new_job()])

    assert stored(store, at_once.id).expires_at == now + HOUR
    assert stored(store, later.id).expires_at == now + 2 * HOUR
    assert stored(store, never.id).expires_at is None


def test_what_has_expired_is_not_claimed_and_what_has_not_is(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([new_job(expires=HOUR), later := new_job(expires=2 * HOUR), never := new_job()])
    clock.advance(HOUR)

    assert [job.id for job in store.claim(opened_session(store), "default", 10)] == [later.id, never.id]


def test_a_job_is_claimed_until_the_last_moment(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([job := new_job(expires=HOUR)])
    clock.advance(HOUR - timedelta(microseconds=1))

    (claimed,) = store.claim(opened_session(store), "default", 10)

    assert (claimed.id, claimed.expires_at) == (job.id, clock.now() + timedelta(microseconds=1))
    assert store.expire().count == 0


def test_the_sweep_ends_what_has_expired_and_says_when_to_come_back(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([first := new_job(expires=HOUR), second := new_job(expires=2 * HOUR)])

    early = store.expire()
    clock.advance(HOUR)
    on_time = store.expire()

    assert (early.count, early.next_due) == (0, HOUR)
    assert (on_time.count, on_time.next_due) == (1, HOUR)
    gone = stored(store, first.id)
    assert (gone.state, gone.finished_at, gone.outcome) == (JobState.EXPIRED, clock.now(), None)
    assert gone.reason == f"it had not started by {gone.expires_at:%Y-%m-%dT%H:%M:%S}+00:00"
    assert stored(store, second.id).state is JobState.READY


def test_nothing_expires_in_an_empty_store(store: SqlStore) -> None:
    store.enqueue([new_job()])

    assert (store.expire().count, store.expire().next_due) == (0, None)


def test_what_waits_expires_in_whatever_state(store: SqlStore, clock: SettableClock) -> None:
    ready, paused = new_jobs(2, expires=HOUR)
    store.enqueue([ready, paused])
    store.pause([paused.id])
    late = new_job(expires=timedelta(seconds=1), delay=HOUR - timedelta(seconds=1))  # due, but nobody promoted it
    store.enqueue([late])
    retrying = claimed_job(store, queue="other", expires=HOUR)
    store.settle([settle(retrying, Failed(Failure(type="E", message="e")), Retry(base="2h"))])
    snoozed = claimed_job(store, queue="other", expires=HOUR)
    store.settle([settle(snoozed, Snoozed(2 * HOUR))])
    clock.advance(HOUR)

    assert store.expire().count == 5
    ended = store.get([job.id for job in (ready, paused, late, retrying, snoozed)]).values()
    assert {job.state for job in ended} == {JobState.EXPIRED}
    assert "not started again by" in (stored(store, retrying.id).reason or "")
    assert stored(store, retrying.id).failure == Failure(type="E", message="e")


def test_a_running_job_has_started_and_does_not_expire(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=2 * HOUR)
    job, back = claimed_job(store, session, expires=HOUR), claimed_job(store, session, expires=HOUR)
    store.enqueue([new_job(queue="other", expires=HOUR)])
    clock.advance(HOUR)

    swept = store.expire()

    assert (swept.count, swept.next_due) == (1, None)
    assert store.settle([settle(job, Succeeded("1")), settle(back, Returned())]) == {job.id, back.id}
    assert store.claim(session, "default", 10) == []  # what was given back can't start any more
    assert store.expire().count == 1


def test_what_is_left_over_is_due_at_once(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(5, expires=HOUR))
    clock.advance(HOUR)

    assert ((first := store.expire(limit=3)).count, first.next_due) == (3, timedelta(0))
    assert store.expire(limit=3).count == 2


def test_a_replayed_job_has_no_expiry_any_more(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([job := new_job(expires=HOUR)])
    clock.advance(HOUR)
    store.expire()

    store.replay([job.id], "after all")
    clock.advance(HOUR)

    assert (stored(store, job.id).state, stored(store, job.id).expires_at) == (JobState.READY, None)
    assert [found.id for found in store.claim(opened_session(store), "default", 10)] == [job.id]


def test_a_key_is_free_when_its_job_has_expired(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([new_job(expires=HOUR, key="k")])
    clock.advance(HOUR)
    store.expire()

    assert store.enqueue([job := new_job(key="k")]) == [job.id]


def test_a_schedule_that_waits_hears_of_the_end_and_its_jobs_expire_as_its_task_says(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_schedules([new_schedule("s", overlap=Overlap.BUFFER_ONE, expires=timedelta(seconds=90))])
    for _ in range(2):
        clock.advance("1m")
        fire(store)
    clock.advance("1m")
    assert store.get_schedules(["s"])["s"].awaits

    assert store.expire().count == 1
    fire(store)

    states = [job.state for job in store.page()]
    assert sorted(states) == ["expired", "ready"]


def test_whoever_promotes_is_told_of_a_job_that_expires(store: SqlStore) -> None:
    listener = store.listen({DUE})

    store.enqueue([new_job(expires=HOUR)])

    assert listener.wait(5) == {DUE}
    listener.close()


def test_a_sweeper_that_finds_all_locked_does_not_come_back_at_once(postgres_url: str, clock: SettableClock) -> None:
    store = open_store(postgres_url, clock=clock)
    store.enqueue([new_job(expires=HOUR)])
    clock.advance(HOUR)

    with psycopg.connect(postgres_url) as somebody:
        somebody.execute("SELECT FROM mainspring.jobs FOR UPDATE")
        swept = store.expire()

    assert swept.count == 0
    assert swept.next_due
    store.close()


@pytest.mark.parametrize("expires", [timedelta(0), -HOUR, 36_600 * 24 * HOUR])
def test_an_expiry_that_makes_no_sense_is_refused(expires: timedelta) -> None:
    with pytest.raises(InvalidValue, match=r"^expected expires to be "):
        new_job(expires=expires)
