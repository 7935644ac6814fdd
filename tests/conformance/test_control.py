"""Control: cancel, pause, resume, replay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import StoreError
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState, Wish
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Cancelled, Failed, Paused, Succeeded
from mainspring.model.retry import Retry
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, opened_session, stored
from tests.support.refusal import refusing

BOOM = Failure(type="ValueError", message="boom", fingerprint="a1")


def waiting_job(store: SqlStore, state: JobState) -> Job:
    """Return a job in one of the states in which no worker holds it."""
    given = new_job(delay=timedelta(hours=1) if state is JobState.SCHEDULED else timedelta(0))
    store.enqueue([given])
    if state is JobState.RETRYING:
        (job,) = store.claim(opened_session(store), "default", 1)
        store.settle([settle(job, Failed(BOOM), Retry(base="1h"))])
    if state is JobState.PAUSED:
        store.pause([given.id])
    return stored(store, given.id)


def dead_job(store: SqlStore, **changes: str) -> Job:
    job = claimed_job(store, None, **changes)
    store.settle([settle(job, Failed(BOOM))])
    return stored(store, job.id)


WAITING = [JobState.READY, JobState.SCHEDULED, JobState.RETRYING, JobState.PAUSED]


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_is_cancelled_at_once(store: SqlStore, clock: SettableClock, state: JobState) -> None:
    job = waiting_job(store, state)

    assert store.cancel([job.id], "not needed") == {job.id: JobState.CANCELLED}

    after = stored(store, job.id)
    assert (after.state, after.reason, after.finished_at) == (JobState.CANCELLED, "not needed", clock.now())
    assert (after.outcome, after.started_at, after.session) == (None, None, None)


def test_a_cancelled_job_is_never_claimed(store: SqlStore) -> None:
    job = waiting_job(store, JobState.READY)
    store.cancel([job.id])

    assert store.claim(opened_session(store), "default", 10) == []


def test_a_running_job_is_asked_to_cancel(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)

    assert store.cancel([job.id], "stop") == {job.id: JobState.RUNNING}

    assert store.beat(session, {job.id: job.fence}).wishes == {job.id: Wish.CANCEL}
    store.settle([settle(job, Cancelled("stop"))])
    assert stored(store, job.id).state is JobState.CANCELLED


def test_finished_and_unknown_jobs_are_left_alone(store: SqlStore) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1"))])

    assert store.cancel([job.id, new_id()]) == {job.id: JobState.SUCCEEDED}
    assert store.pause([job.id, new_id()]) == {job.id: JobState.SUCCEEDED}
    assert store.resume([job.id]) == {job.id: JobState.SUCCEEDED}


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_is_held_and_let_go(store: SqlStore, state: JobState) -> None:
    job = waiting_job(store, state)

    assert store.pause([job.id], "hold on") == {job.id: JobState.PAUSED}

    assert store.claim(opened_session(store), "default", 10) == []
    due = JobState.READY if state in (JobState.READY, JobState.PAUSED) else JobState.SCHEDULED
    assert store.resume([job.id]) == {job.id: due}
    assert stored(store, job.id).run_at == job.run_at


def test_a_resumed_job_has_its_old_place(store: SqlStore, clock: SettableClock) -> None:
    first, second = new_job(), new_job()
    store.enqueue([first])
    store.pause([first.id])
    clock.advance("1s")
    store.enqueue([second])

    store.resume([first.id])

    assert [job.id for job in store.claim(opened_session(store), "default", 2)] == [first.id, second.id]


def test_a_delayed_job_whose_time_came_while_it_was_paused_is_ready(store: SqlStore, clock: SettableClock) -> None:
    job = waiting_job(store, JobState.SCHEDULED)
    store.pause([job.id])
    clock.advance("2h")

    assert store.promote().count == 0
    assert store.resume([job.id]) == {job.id: JobState.READY}


def test_a_wish_to_pause_can_be_taken_back(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)
    store.pause([job.id])

    store.resume([job.id])

    assert store.beat(session, {job.id: job.fence}).wishes == {}


def test_a_job_that_is_resumed_while_its_attempt_pauses_is_ready(store: SqlStore) -> None:
    job = claimed_job(store)
    store.pause([job.id], "hold on")
    store.resume([job.id])

    assert store.settle([settle(job, Paused())]) == {job.id}

    after = stored(store, job.id)
    assert (after.state, after.reason, after.attempt) == (JobState.READY, None, 0)
    assert [past.outcome for past in store.attempts(job.id)] == ["paused"]


def test_cancel_wins_over_pause(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)
    store.pause([job.id], "hold")
    store.cancel([job.id], "stop")

    store.pause([job.id], "hold")
    store.resume([job.id])

    assert store.beat(session, {job.id: job.fence}).wishes == {job.id: Wish.CANCEL}
    assert stored(store, job.id).reason == "stop"


def test_a_dead_job_lives_again_with_fresh_counters_and_a_growing_fence(store: SqlStore, clock: SettableClock) -> None:
    dead = dead_job(store)
    clock.advance("1d")

    assert store.replay([dead.id], "fixed") == {dead.id: JobState.READY}

    alive = stored(store, dead.id)
    assert (alive.attempt, alive.losses, alive.fence, alive.reason) == (0, 0, dead.fence, "fixed")
    assert (alive.run_at, alive.created_at, alive.failure) == (clock.now(), dead.created_at, BOOM)
    (claimed,) = store.claim(opened_session(store), "default", 1)
    assert claimed.fence == dead.fence + 1


def test_a_replay_keeps_the_history(store: SqlStore) -> None:
    dead = dead_job(store)
    store.replay([dead.id])
    (job,) = store.claim(opened_session(store), "default", 1)
    store.settle([settle(job, Succeeded("1"))])

    attempts = store.attempts(dead.id)

    assert [(past.fence, past.outcome) for past in attempts] == [(1, "failed"), (2, "succeeded")]
    assert attempts[0].finished_at == dead.finished_at
    assert attempts[0].failure == BOOM


def test_a_cancelled_job_can_be_replayed_and_a_succeeded_one_cannot(store: SqlStore) -> None:
    cancelled, succeeded = waiting_job(store, JobState.READY), claimed_job(store, queue="other")
    store.cancel([cancelled.id])
    store.settle([settle(succeeded, Succeeded("1"))])

    states = store.replay([cancelled.id, succeeded.id])

    assert states == {cancelled.id: JobState.READY, succeeded.id: JobState.SUCCEEDED}


def test_a_replay_does_not_take_a_key_from_an_unfinished_job(store: SqlStore) -> None:
    one, two = dead_job(store, key="a", queue="q1"), dead_job(store, key="b", queue="q2")
    store.enqueue([new_job(key="a")])

    assert store.replay([one.id, two.id]) == {one.id: JobState.FAILED, two.id: JobState.READY}


def test_of_two_dead_jobs_with_one_key_one_lives_again(store: SqlStore) -> None:
    one, two = dead_job(store, key="a"), dead_job(store, key="a")

    states = store.replay([one.id, two.id])

    assert sorted(states.values()) == [JobState.FAILED, JobState.READY]


def test_an_unfinished_job_cannot_be_replayed(store: SqlStore) -> None:
    job = waiting_job(store, JobState.SCHEDULED)

    assert store.replay([job.id]) == {job.id: JobState.SCHEDULED}


def test_no_jobs_are_fine(store: SqlStore) -> None:
    assert store.cancel([]) == store.pause([]) == store.resume([]) == store.replay([]) == {}


def test_a_reason_may_be_any_text(store: SqlStore) -> None:
    job = waiting_job(store, JobState.READY)

    store.pause([job.id], "a\0b \udcff ' \" \\ 🙂")

    assert stored(store, job.id).reason == "a\\x00b \\udcff ' \" \\ 🙂"


def test_a_reason_outlives_the_attempt_that_it_stopped(store: SqlStore) -> None:
    job = claimed_job(store)
    store.pause([job.id], "hold")

    store.settle([settle(job, Paused())])

    assert (stored(store, job.id).state, stored(store, job.id).reason) == (JobState.PAUSED, "hold")
    store.resume([job.id])
    assert stored(store, job.id).reason is None


def test_a_replay_gives_a_cancelled_attempt_no_error_of_an_earlier_one(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Failed(BOOM), Retry(base="1s"))])
    clock.advance("1s")
    store.promote()
    (again,) = store.claim(opened_session(store), "default", 1)
    store.settle([settle(again, Cancelled())])

    store.replay([job.id])

    assert [past.failure for past in store.attempts(job.id)] == [BOOM, None]


def test_a_cancel_that_fails_on_the_way_leaves_everything_as_it_was(url: str, store: SqlStore) -> None:
    running = claimed_job(store)
    waiting = waiting_job(store, JobState.READY)

    with refusing(url, "INSERT", "jobs_done"), pytest.raises(StoreError, match="refused"):
        store.cancel([running.id, waiting.id])

    assert store.get([running.id, waiting.id]) == {running.id: running, waiting.id: waiting}


def test_a_replay_that_fails_on_the_way_leaves_everything_as_it_was(url: str, store: SqlStore) -> None:
    dead = dead_job(store)
    history = store.attempts(dead.id)

    with refusing(url, "DELETE", "jobs_done"), pytest.raises(StoreError, match="refused"):
        store.replay([dead.id])

    assert (stored(store, dead.id), store.attempts(dead.id)) == (dead, history)
    assert store.counts() == {}


def test_a_dead_job_whose_id_lives_again_stays_dead(real_store: SqlStore) -> None:
    given = new_job()
    real_store.enqueue([given])
    (job,) = real_store.claim(opened_session(real_store), "default", 1)
    real_store.settle([settle(job, Failed(Failure(type="E", message="e")))])
    real_store.enqueue([given])

    assert real_store.replay([given.id]) in ({given.id: JobState.READY}, {given.id: JobState.FAILED})

    assert sorted(found.state for found in real_store.page()) == [JobState.FAILED, JobState.READY]
