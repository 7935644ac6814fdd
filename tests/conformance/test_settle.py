"""Settle: what became of a job, written only by who holds it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import StoreError
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import (
    Cancelled,
    Failed,
    Lost,
    Outcome,
    Paused,
    Returned,
    Snoozed,
    Succeeded,
    TimedOut,
)
from mainspring.model.retry import Retry
from mainspring.store import chunks
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session, stored
from tests.support.refusal import refusing

BOOM = Failure(type="ValueError", message="boom 'quoted' \" ∅", traceback="line 1\nline 2", fingerprint="a1")


def test_a_succeeded_job_is_finished_with_its_result(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    clock.advance("2s")

    assert store.settle([settle(job, Succeeded('{"n":1}'))]) == {job.id}

    done = stored(store, job.id)
    assert (done.state, done.outcome, done.result) == (JobState.SUCCEEDED, "succeeded", '{"n":1}')
    assert (done.started_at, done.finished_at) == (job.started_at, clock.now())
    assert (done.fence, done.session, done.attempt) == (job.fence, job.session, 1)
    assert store.counts() == {}


def test_a_failed_job_waits_for_its_retry_and_keeps_the_error(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)

    store.settle([settle(job, Failed(BOOM), Retry(max_attempts=3, base="10s"), jitter=1.5)])

    waiting = stored(store, job.id)
    assert (waiting.state, waiting.attempt, waiting.failure) == (JobState.RETRYING, 1, BOOM)
    assert waiting.run_at == clock.now() + timedelta(seconds=15)
    assert (waiting.session, waiting.started_at) == (None, None)


def test_what_attempts_died_of_is_no_error_of_a_job_that_has_succeeded(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=timedelta(days=1))
    failed, lost = claimed_job(store, session), claimed_job(store, session)
    store.settle([settle(failed, Failed(BOOM), Retry(base="1s")), settle(lost, Lost("its worker is gone"))])
    clock.advance("1h")
    store.promote()
    again = store.claim(session, "default", 2)
    assert all(job.failure is not None for job in again)

    store.settle([settle(job, Succeeded("1")) for job in again])

    for job in (failed, lost):
        done = stored(store, job.id)
        assert (done.state, done.failure) == (JobState.SUCCEEDED, None)
        assert [past.failure is None for past in store.attempts(job.id)] == [False, True]


def test_a_job_that_is_cancelled_keeps_what_its_attempt_died_of(store: SqlStore) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Failed(BOOM), Retry(base="1s"))])

    store.cancel([job.id])

    assert stored(store, job.id).failure == BOOM


def test_an_exhausted_job_is_a_dead_letter(store: SqlStore) -> None:
    job = claimed_job(store)

    store.settle([settle(job, Failed(BOOM), Retry(max_attempts=1))])

    dead = stored(store, job.id)
    assert (dead.state, dead.outcome, dead.failure) == (JobState.FAILED, "failed", BOOM)


@pytest.mark.parametrize(
    ("outcome", "state", "attempt"),
    [
        (TimedOut(BOOM, retryable=False), JobState.FAILED, 1),
        (Cancelled("enough"), JobState.CANCELLED, 1),
        (Snoozed(timedelta(minutes=1)), JobState.SCHEDULED, 0),
        (Paused("later"), JobState.PAUSED, 0),
        (Returned(), JobState.READY, 0),
    ],
)
def test_each_outcome_leads_where_the_lifecycle_says(
    store: SqlStore, outcome: Outcome, state: JobState, attempt: int
) -> None:
    job = claimed_job(store)
    if state is JobState.PAUSED:
        store.pause([job.id], "later")

    assert store.settle([settle(job, outcome)]) == {job.id}

    after = stored(store, job.id)
    assert (after.state, after.attempt) == (state, attempt)
    assert [past.outcome for past in store.attempts(job.id)] == [outcome.name]


def test_a_batch_may_mix_what_ends_and_what_goes_on(store: SqlStore) -> None:
    session = opened_session(store)
    store.enqueue(new_jobs(3))
    one, two, three = store.claim(session, "default", 3)

    settled = store.settle(
        [settle(three, Returned()), settle(one, Succeeded("1")), settle(two, Failed(BOOM), Retry(base="1s"))]
    )

    assert settled == {one.id, two.id, three.id}
    assert store.counts() == {"default": {JobState.RETRYING: 1, JobState.READY: 1}}


def test_a_mixed_batch_that_fails_on_the_way_leaves_everything_as_it_was(url: str, store: SqlStore) -> None:
    ended, returned = claimed_job(store), claimed_job(store)
    decided = [settle(ended, Succeeded("1")), settle(returned, Returned())]

    with refusing(url, "INSERT", "attempts"), pytest.raises(StoreError, match="refused"):
        store.settle(decided)

    assert store.get([ended.id, returned.id]) == {ended.id: ended, returned.id: returned}
    assert store.settle(decided) == {ended.id, returned.id}


def test_a_returned_job_keeps_its_place(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store)
    first, second = new_jobs(2)
    store.enqueue([first, second])
    (job,) = store.claim(session, "default", 1)
    clock.advance("1s")

    store.settle([settle(job, Returned())])

    assert [job.id for job in store.claim(session, "default", 2)] == [first.id, second.id]


# --- fencing -----------------------------------------------------------------------------------------------


def taken_over(store: SqlStore, clock: SettableClock) -> tuple[Job, Job]:
    """Return one job as its first, lost holder knows it, and as its second holder does."""
    stale = claimed_job(store)
    clock.advance("1m")
    store.reap()
    (held,) = store.claim(opened_session(store), "default", 1)
    assert held.id == stale.id
    return stale, held


@pytest.mark.parametrize("outcome", [Succeeded('"stale"'), Failed(BOOM, retryable=False)])
def test_a_stale_holder_cannot_finish_a_job(store: SqlStore, clock: SettableClock, outcome: Outcome) -> None:
    stale, held = taken_over(store, clock)

    assert store.settle([settle(stale, outcome)]) == set()

    assert stored(store, held.id) == held


@pytest.mark.parametrize("outcome", [Returned(), Snoozed(timedelta(hours=1)), Paused()])
def test_a_stale_holder_cannot_give_a_job_back(store: SqlStore, clock: SettableClock, outcome: Outcome) -> None:
    stale, held = taken_over(store, clock)

    assert store.settle([settle(stale, outcome)]) == set()

    assert stored(store, held.id) == held
    assert [past.outcome for past in store.attempts(held.id)] == ["lost", None]


def test_the_new_holder_can_settle_after_a_stale_one_tried(store: SqlStore, clock: SettableClock) -> None:
    stale, held = taken_over(store, clock)
    store.settle([settle(stale, Succeeded('"stale"'))])

    assert store.settle([settle(held, Succeeded('"good"'))]) == {held.id}

    assert stored(store, held.id).result == '"good"'


def test_a_settled_job_cannot_be_settled_again(store: SqlStore) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1"))])

    assert store.settle([settle(job, Failed(BOOM, retryable=False))]) == set()
    assert store.settle([settle(job, Returned())]) == set()

    assert (stored(store, job.id).state, stored(store, job.id).result) == (JobState.SUCCEEDED, "1")


def test_a_job_given_back_cannot_be_settled_under_the_same_fence(store: SqlStore) -> None:
    """The fence alone would let this through: it grows only with the next claim. The state must be checked too."""
    job = claimed_job(store)
    store.settle([settle(job, Returned())])

    assert store.settle([settle(job, Succeeded('"late"'))]) == set()
    assert store.settle([settle(job, Snoozed(timedelta(hours=1)))]) == set()

    assert stored(store, job.id).state is JobState.READY


def test_stale_settlements_do_not_spoil_their_batch(store: SqlStore, clock: SettableClock) -> None:
    stale, _ = taken_over(store, clock)
    good = claimed_job(store, queue="other")

    assert store.settle([settle(stale, Succeeded("1")), settle(good, Succeeded("2"))]) == {good.id}


# --- wishes that come while an attempt ends ------------------------------------------------------------------


def test_a_cancel_that_comes_during_a_failing_attempt_is_not_lost(store: SqlStore) -> None:
    job = claimed_job(store)
    store.cancel([job.id], "stop it")

    store.settle([settle(job, Failed(BOOM), Retry(max_attempts=5))])

    after = stored(store, job.id)
    assert (after.state, after.reason, after.failure) == (JobState.CANCELLED, "stop it", BOOM)
    assert [past.outcome for past in store.attempts(job.id)] == ["failed"]


def test_who_settles_is_told_what_became_of_jobs_for_which_something_else_was_wished(store: SqlStore) -> None:
    cancelled, paused, tried_again, succeeded = (claimed_job(store) for _ in range(4))
    store.cancel([cancelled.id, succeeded.id])
    store.pause([paused.id])
    failing = [settle(job, Failed(BOOM), Retry(max_attempts=5)) for job in (cancelled, paused, tried_again)]

    settled = store.settle([*failing, settle(succeeded, Succeeded("1"))])

    assert settled == {cancelled.id, paused.id, tried_again.id, succeeded.id}
    assert {job_id: (one.outcome, one.state) for job_id, one in settled.otherwise.items()} == {
        cancelled.id: ("failed", JobState.CANCELLED),
        paused.id: ("failed", JobState.PAUSED),
    }


def test_a_pause_that_comes_while_a_job_snoozes_is_not_lost(store: SqlStore) -> None:
    job = claimed_job(store)
    store.pause([job.id], "hold")

    store.settle([settle(job, Snoozed(timedelta(seconds=1)))])

    assert stored(store, job.id).state is JobState.PAUSED
    assert stored(store, job.id).reason == "hold"


def test_a_job_that_succeeds_in_spite_of_a_cancel_has_succeeded(store: SqlStore) -> None:
    job = claimed_job(store)
    store.cancel([job.id])

    store.settle([settle(job, Succeeded("1"))])

    assert stored(store, job.id).state is JobState.SUCCEEDED


def test_a_thousand_jobs_settle_in_one_call(store: SqlStore) -> None:
    session = opened_session(store)
    store.enqueue(new_jobs(1000))
    jobs = store.claim(session, "default", 1000)

    assert store.settle([settle(job, Succeeded("null")) for job in jobs]) == {job.id for job in jobs}


def test_nothing_is_a_fine_batch(store: SqlStore) -> None:
    store.enqueue([new_job()])

    assert store.settle([]) == set()


def test_an_error_may_quote_anything(store: SqlStore) -> None:
    """Such as a file name that is not valid Unicode: it must not keep the outcome from being recorded."""
    job = claimed_job(store)
    ugly = Failure(type="OSError", message="\udcff\0\U0010ffff", traceback="\0" * 10_000)

    assert store.settle([settle(job, Failed(ugly))]) == {job.id}

    failure = stored(store, job.id).failure
    assert failure is not None
    assert failure.message == "\\udcff\\x00\U0010ffff"


def test_a_job_given_twice_does_not_keep_others_from_being_settled(store: SqlStore) -> None:
    twice, once = claimed_job(store), claimed_job(store)

    settled = store.settle([settle(job, Succeeded("1")) for job in (twice, once, twice)])

    assert settled == {twice.id, once.id}
    assert len(store.page()) == 2


def test_a_stale_settlement_leaves_a_job_alone_whose_id_had_finished_before(real_store: SqlStore) -> None:
    given, session = new_job(), opened_session(real_store)
    real_store.enqueue([given])
    (first,) = real_store.claim(session, "default", 1)
    real_store.settle([settle(first, Succeeded("1"))])
    real_store.enqueue([given])
    (stale,) = real_store.claim(session, "default", 1)
    real_store.settle([settle(stale, Returned())])
    (present,) = real_store.claim(session, "default", 1)

    assert real_store.settle([settle(stale, Succeeded("2"))]) == set()

    assert real_store.beat(session, {present.id: present.fence}).lost == {}


def test_large_results_are_settled_in_several_statements(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_CHARACTERS", 50)
    store.enqueue(new_jobs(5))
    jobs = store.claim(opened_session(store), "default", 5)
    result = '"' + "x" * 40 + '"'

    assert store.settle([settle(job, Succeeded(result)) for job in jobs]) == {job.id for job in jobs}

    assert [job.result for job in store.page()] == [result] * 5


def test_a_job_given_twice_to_be_retried_is_settled_once(store: SqlStore) -> None:
    job = claimed_job(store)
    again = settle(job, Failed(Failure(type="E", message="e")), Retry())

    assert store.settle([again, again]) == {job.id}

    assert [past.outcome for past in store.attempts(job.id)] == ["failed"]
