"""Limits: what may start holds, what may not waits, and nothing waits for ever."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from msgspec.structs import replace

from mainspring.model.breaker import Trip
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit, LimitStatus, Standing, Want
from mainspring.model.outcome import Failed, Snoozed, Succeeded
from mainspring.model.queue import NewPause, Pausable
from mainspring.model.retry import Retry
from mainspring.store import limits
from mainspring.store.database import RELEASE
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import new_job, new_jobs, opened_session, stored

TWO = [Limit("k", concurrency=2).want({})]
SLOW = [Limit("r", rate="2/m").want({})]


def claim(store: SqlStore, wants: Sequence[Want] = TWO, limit: int = 100, session: UUID | None = None) -> list[Job]:
    """Claim and admit, as a worker does; return what may start, with the slots that it has."""
    claimed = store.claim(session or opened_session(store, lease=timedelta(days=30)), "default", limit)
    holds = tuple(want.key for want in wants if want.concurrency)
    asking = [(replace(job, holds=holds), wants) for job in claimed]
    admitted = store.admit(asking)
    return [job for job, _ in asking if job.id in admitted]


def succeed(store: SqlStore, *jobs: Job) -> None:
    store.settle([settle(job, Succeeded("null")) for job in jobs])


def states(store: SqlStore) -> dict[JobState, int]:
    return store.counts().get("default", {})


def test_no_more_start_than_the_limit_allows_and_the_rest_waits(store: SqlStore) -> None:
    jobs = new_jobs(5)
    store.enqueue(jobs)

    started = claim(store)

    assert [job.id for job in started] == [job.id for job in jobs[:2]]
    assert states(store) == {JobState.RUNNING: 2, JobState.BLOCKED: 3}
    waiting = stored(store, jobs[2].id)
    assert (waiting.waits_for, waiting.attempt, waiting.session) == ("k", 0, None)
    assert set(store.slot_holders("k")) == {job.id for job in started}
    assert store.limit("k") == Standing("k", 2, None, None, None, held=2, waiting=True)
    assert store.limit("unknown") is None
    assert claim(store) == []


def test_two_tasks_that_disagree_about_the_kind_of_a_limit_leave_no_slot_behind(store: SqlStore) -> None:
    slots, rate = Limit("k", concurrency=2).want({}), Limit("k", rate="100/s").want({})
    store.enqueue(new_jobs(2))
    one, other = store.claim(opened_session(store), "default", 2)
    asking = [(one, [rate]), (replace(other, holds=("k",)), [slots])]

    admitted = store.admit(asking)
    succeed(store, *(job for job, _ in asking if job.id in admitted))

    assert store.slot_holders("k") == []


def test_a_settle_gives_its_slot_to_the_most_urgent_that_waits(store: SqlStore) -> None:
    first = new_jobs(2)
    store.enqueue(first)
    started = claim(store)
    late, urgent = new_jobs(1, priority=1), new_jobs(1, priority=20)
    store.enqueue([*late, *urgent])
    assert claim(store) == []

    succeed(store, started[0])

    (next_one,) = claim(store)
    assert next_one.id == urgent[0].id
    assert (next_one.attempt, states(store)) == (1, {JobState.RUNNING: 2, JobState.BLOCKED: 1})


@pytest.mark.parametrize("ends_as", ["succeeded", "failed", "retrying", "snoozed", "paused", "cancelled", "lost"])
def test_whatever_ends_an_attempt_gives_its_slots_back(store: SqlStore, clock: SettableClock, ends_as: str) -> None:
    store.enqueue(new_jobs(2))
    session = opened_session(store, lease=timedelta(seconds=15))
    one = [Limit("k", concurrency=1).want({})]
    (job,) = claim(store, one, session=session)
    failure = Failure(type="E", message="e")
    match ends_as:
        case "succeeded":
            succeed(store, job)
        case "failed":
            store.settle([settle(job, Failed(failure, retryable=False))])
        case "retrying":
            store.settle([settle(job, Failed(failure, retryable=True), Retry(base="1h", cap="1h"))])
        case "snoozed":
            store.settle([settle(job, Snoozed(timedelta(hours=1)))])
        case "paused":
            store.pause([job.id])
            store.settle([settle(job, Snoozed(timedelta(hours=1)))])
        case "cancelled":
            store.cancel([job.id])
            store.settle([settle(job, Snoozed(timedelta(hours=1)))])
        case _:
            clock.advance("16s")
            store.reap()
            store.cancel([job.id])

    assert store.slot_holders("k") == []
    (next_one,) = claim(store, one)
    assert next_one.id != job.id


def test_a_stale_settle_frees_no_slot_of_the_one_who_has_the_job_now(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(1))
    (late,) = claim(store, session=opened_session(store, lease=timedelta(seconds=15)))
    clock.advance("16s")
    store.reap()
    (again,) = claim(store)

    assert store.settle([settle(late, Succeeded("null"))]) == set()
    assert store.slot_holders("k") == [again.id]


def test_a_job_that_waits_for_one_limit_holds_none_of_the_others(store: SqlStore) -> None:
    a, b = Limit("a", concurrency=1).want({}), Limit("b", concurrency=1).want({})
    store.enqueue(new_jobs(1))
    (has_b,) = claim(store, [b])
    store.enqueue(new_jobs(1))

    assert claim(store, [a, b]) == []

    assert store.slot_holders("a") == []
    store.enqueue(new_jobs(1))
    assert len(claim(store, [a])) == 1
    succeed(store, has_b)
    assert states(store) == {JobState.READY: 1, JobState.RUNNING: 1}


def test_a_limit_that_one_leaves_because_of_another_goes_to_the_next(store: SqlStore) -> None:
    a, b = Limit("a", concurrency=1).want({}), Limit("b", concurrency=1).want({})
    store.enqueue(new_jobs(2))
    has_a, has_b = claim(store, [a], limit=1), claim(store, [b], limit=1)
    wants_both, wants_a = new_jobs(1, priority=20), new_jobs(1)
    store.enqueue([*wants_both, *wants_a])
    claim(store, [a, b], limit=1)
    claim(store, [a])

    succeed(store, *has_a)  # for the one that wants both, and then has to wait for b
    claim(store, [a, b], limit=1)

    assert stored(store, wants_both[0].id).waits_for == "b"
    (next_one,) = claim(store, [a])
    assert (next_one.id, len(has_b)) == (wants_a[0].id, 1)


def test_a_rate_lets_a_burst_through_and_then_one_at_a_time(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(5))

    assert len(claim(store, SLOW)) == 2
    assert states(store) == {JobState.RUNNING: 2, JobState.BLOCKED: 3}
    clock.advance(29.9)
    assert (store.release().limits, claim(store, SLOW)) == (0, [])
    clock.advance(0.1)
    assert store.release().limits == 1
    assert len(claim(store, SLOW)) == 1
    clock.advance("1m")
    store.release()
    assert len(claim(store, SLOW)) == 2
    assert states(store) == {JobState.RUNNING: 5}


def test_no_token_is_taken_by_what_may_not_start(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(3))
    one, rate = Limit("one", concurrency=1).want({}), Limit("r", rate="2/h").want({})

    (first,) = claim(store, [rate, one])
    succeed(store, first)
    (second,) = claim(store, [rate, one])
    succeed(store, second)

    assert claim(store, [rate, one]) == []
    clock.advance("30m")
    store.release()
    assert len(claim(store, [rate, one])) == 1


def test_whoever_releases_sleeps_until_a_token_comes_in(store: SqlStore) -> None:
    nothing = store.release()
    store.enqueue(new_jobs(3))
    claim(store, SLOW)

    assert (nothing.limits, nothing.next_due) == (0, None)
    assert store.release().next_due == timedelta(seconds=30)


def test_whoever_releases_hears_that_a_job_waits(store: SqlStore) -> None:
    listener = store.listen({RELEASE})
    listener.wait(0)
    store.enqueue(new_jobs(3))

    claim(store)
    heard = listener.wait(10)
    listener.close()

    assert heard == {RELEASE}


def test_a_limit_is_what_the_code_says_now(store: SqlStore) -> None:
    store.enqueue(new_jobs(5))
    claim(store)
    store.enqueue(new_jobs(1))

    claim(store, [Limit("k", concurrency=4).want({})])

    assert len(store.slot_holders("k")) == 3
    store.release()


def test_what_a_lost_release_has_left_waiting_goes_on_by_itself(
    url: str, store: SqlStore, clock: SettableClock
) -> None:
    store.enqueue(new_jobs(3))
    claim(store)
    execute(url, f"DELETE FROM {table(url, 'slots')}")  # and nobody has been told

    clock.advance("5s")
    store.release()

    assert JobState.BLOCKED not in states(store)


def test_those_that_wait_hear_at_once_that_the_code_allows_more(store: SqlStore) -> None:
    store.enqueue(new_jobs(5))
    claim(store)
    listener = store.listen({RELEASE})
    listener.wait(0)
    store.enqueue(new_jobs(1))

    claim(store, [Limit("k", concurrency=10).want({})])
    heard = listener.wait(10)
    listener.close()
    store.release()

    assert heard == {RELEASE}
    assert states(store) == {JobState.RUNNING: 3, JobState.READY: 3}


def test_a_rate_that_is_raised_holds_at_once(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(3))
    claim(store, [Limit("r", rate="2/d").want({})])
    fast = [Limit("r", rate="100/s").want({})]
    store.enqueue(new_jobs(1))
    claim(store, fast)

    clock.advance("1s")
    store.release()

    assert (len(claim(store, fast)), states(store)) == (2, {JobState.RUNNING: 4})


@pytest.mark.parametrize("wants", [TWO, SLOW], ids=["concurrency", "rate"])
def test_those_that_wait_go_on_though_the_clock_was_set_back(
    url: str, store: SqlStore, clock: SettableClock, wants: Sequence[Want]
) -> None:
    store.enqueue(new_jobs(4))
    claim(store, wants)
    execute(url, f"DELETE FROM {table(url, 'slots')}")

    clock.jump(clock.now() - timedelta(hours=1))
    store.release()
    clock.advance("1m")
    store.release()

    assert len(claim(store, wants)) == 2


def test_while_nobody_claims_a_rate_makes_jobs_ready_no_faster_than_it_is(
    store: SqlStore, clock: SettableClock
) -> None:
    store.enqueue(new_jobs(100))
    claim(store, [Limit("r", rate="1/s", burst=5).want({})])
    clock.advance("5s")

    looks = 0
    for _ in range(100):
        looks += store.release().limits
        clock.advance(0.1)

    assert (looks, states(store)[JobState.READY]) == (2, 10)


def test_what_waits_for_a_limit_that_the_code_no_longer_has_goes_on_by_itself(
    store: SqlStore, clock: SettableClock
) -> None:
    store.enqueue(new_jobs(50))
    succeed(store, *claim(store))
    succeed(store, *store.claim(opened_session(store), "default", 100))  # by code that asks for no limit

    clock.advance("5s")
    store.release()

    assert states(store) == {JobState.READY: 46}


def test_what_is_let_go_on_though_nobody_has_a_slot_is_judged_again(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(50))
    succeed(store, *claim(store))

    clock.advance("5s")
    store.release()

    assert len(claim(store)) == 2


@pytest.mark.parametrize("kind", Pausable)
def test_a_slot_goes_to_one_that_may_be_claimed(store: SqlStore, kind: Pausable) -> None:
    store.enqueue(new_jobs(2))
    started = claim(store)
    paused = new_job(priority=20, task="held", queue="held")
    store.enqueue([paused, *new_jobs(1)])
    session = opened_session(store)
    store.admit([(job, TWO) for queue in ("held", "default") for job in store.claim(session, queue, 10)])
    store.pause_claims(NewPause(kind=kind, name="held", by="ada"))

    succeed(store, started[0])

    assert (states(store)[JobState.READY], stored(store, paused.id).state) == (1, JobState.BLOCKED)
    succeed(store, started[1], *claim(store))
    assert stored(store, paused.id).state is JobState.BLOCKED
    store.resume_claims(kind, "held")
    store.release()
    assert stored(store, paused.id).state is JobState.READY


def test_a_rate_for_which_only_paused_jobs_wait_is_looked_at_now_and_then(
    store: SqlStore, clock: SettableClock
) -> None:
    store.enqueue(new_jobs(3, task="held"))
    claim(store, SLOW)
    store.pause_claims(NewPause(kind=Pausable.TASK, name="held", by="ada"))

    clock.advance("1m")

    assert store.release().next_due == timedelta(seconds=5)
    assert states(store)[JobState.BLOCKED] == 1


def test_a_blocked_job_can_be_cancelled_paused_and_resumed(store: SqlStore) -> None:
    jobs = new_jobs(4)
    store.enqueue(jobs)
    started = claim(store)

    store.cancel([jobs[2].id])
    store.pause([jobs[3].id])
    paused = stored(store, jobs[3].id)
    store.resume([jobs[3].id])

    assert (paused.state, paused.waits_for) == (JobState.PAUSED, None)
    assert claim(store) == []
    succeed(store, *started)
    assert [job.id for job in claim(store)] == [jobs[3].id]


def test_limits_that_nobody_uses_are_pruned(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(3))
    started = claim(store)
    store.prune(timedelta(days=1))
    still = store.slot_holders("k")

    succeed(store, *started)
    succeed(store, *claim(store))
    clock.advance("6s")
    store.release()
    store.prune(timedelta(days=1))

    assert (len(still), store.release().next_due) == (2, None)
    store.enqueue(new_jobs(3))
    assert len(claim(store)) == 2


def test_limits_are_listed_with_what_has_a_slot_and_what_waits(store: SqlStore) -> None:
    store.enqueue(new_jobs(5))
    claim(store)
    store.enqueue(new_jobs(3))
    claim(store, [Limit("@r", rate="2/m").want({})])
    store.trip_breaker(Trip(key="smtp", lasting=timedelta(hours=1), by="ada"))

    assert store.limits() == [
        LimitStatus("@r", None, timedelta(seconds=30), 2, held=0, waiting=1),
        LimitStatus("k", 2, None, None, held=2, waiting=3),
    ]
    assert [limit.key for limit in store.limits("@r")] == ["@r"]


def test_all_that_wait_for_a_limit_are_released_and_judged_again(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RELEASE_BATCH", 2)
    store.enqueue(new_jobs(7))
    claim(store)

    assert store.release_limit("k") == 5
    assert states(store) == {JobState.RUNNING: 2, JobState.READY: 5}
    assert (store.release_limit("k"), store.release_limit("unknown")) == (0, 0)
    assert claim(store) == []
    assert states(store) == {JobState.RUNNING: 2, JobState.BLOCKED: 5}


def test_a_release_ends_though_what_it_lets_go_on_comes_to_wait_again(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RELEASE_BATCH", 2)
    store.enqueue(new_jobs(7))
    claim(store)
    monkeypatch.setattr(store._db, "wake", lambda _: claim(store))  # by whoever hears of them

    assert store.release_limit("k") == 5
