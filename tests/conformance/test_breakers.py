"""Breakers: what they let start, what ends under them, and that nothing keeps them open for ever."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from msgspec.structs import replace

from mainspring.model.breaker import Breaker, Phase, Trip
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import Settlement, settle
from mainspring.model.limits import Limit, Want, want_of
from mainspring.model.outcome import Failed, Outcome, Returned, Snoozed, Succeeded, TimedOut
from mainspring.model.retry import Retry
from mainspring.store.database import RELEASE
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import new_jobs, opened_session, stored
from tests.support.refusal import refusing

KEY = "@breaker:smtp"
WANT = want_of(Breaker("smtp", open_at="50% of 4 in 1m", cooldown="30s..2m"), {})
DOWN = Failed(Failure(type="ConnectionError", message="refused"))
WORKS = Succeeded("null")
RETRY = Retry(max_attempts=5, base="10s", cap="10s")


def claim(store: SqlStore, *others: Want, limit: int = 100, session: UUID | None = None) -> list[Job]:
    """Claim and admit, as a worker does; return what may start."""
    claimed = store.claim(session or opened_session(store, lease=timedelta(days=30)), "default", limit)
    holds = tuple(want.key for want in others if want.concurrency)
    asking = [(replace(job, breaker=WANT, holds=holds), [WANT, *others]) for job in claimed]
    admitted = store.admit(asking)
    return [job for job, _ in asking if job.id in admitted]


def end(store: SqlStore, jobs: list[Job], outcome: Outcome) -> set[UUID]:
    return store.settle([settle(job, outcome, RETRY) for job in jobs])


def states(store: SqlStore) -> dict[JobState, int]:
    return store.counts().get("default", {})


def phase(store: SqlStore) -> Phase:
    (found,) = store.breakers("smtp")
    return found.phase


def open_it(store: SqlStore, more: int = 0) -> list[Job]:
    """Let two jobs fail, which opens it; return what has started beside them."""
    store.enqueue(new_jobs(2 + more))
    started = claim(store)
    end(store, started[:2], DOWN)
    assert phase(store) is Phase.OPEN
    return started[2:]


def test_while_all_is_well_nothing_is_written(store: SqlStore, url: str) -> None:
    store.enqueue(new_jobs(3))

    end(store, claim(store), WORKS)

    assert (store.breakers(), store.limit(KEY), states(store)) == ([], None, {})


def test_a_breaker_that_is_calm_again_is_neither_locked_nor_written(store: SqlStore, url: str) -> None:
    store.enqueue(new_jobs(6))
    jobs = claim(store)
    end(store, jobs[:1], DOWN)
    end(store, jobs[1:5], WORKS)
    assert store.limit(KEY) is not None

    with refusing(url, "UPDATE", "limits"):
        end(store, [*jobs[5:], *claim(store)], WORKS)
        store.enqueue(new_jobs(1))
        assert len(claim(store)) == 1

    assert states(store) == {JobState.RETRYING: 1, JobState.RUNNING: 1}


def test_jobs_without_a_breaker_are_settled_without_a_look_at_any(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [replace(job, breaker=None) for job in _started(store, 2)]
    read, asked = store._db.read, set[str]()

    def noted(query: str, **given: object) -> object:
        asked.add(query)
        return read(query, **given)

    monkeypatch.setattr(store._db, "read", noted)

    assert len(end(store, jobs[:1], WORKS) | end(store, jobs[1:], DOWN)) == 2
    assert asked <= {"any_rule"}  # once a second somebody looks whether anybody is to be told


def test_a_closed_breaker_is_asked_without_a_transaction(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    end(store, _started(store, 1), DOWN)
    store.enqueue(new_jobs(3))
    claimed = store.claim(opened_session(store), "default", 3)
    monkeypatch.setattr(store._db, "transact", _refuse)

    assert store.admit([(job, [WANT]) for job in claimed]) == {job.id for job in claimed}


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("not to be called")


def test_it_opens_when_enough_has_failed_and_jobs_wait_at_no_cost(store: SqlStore) -> None:
    open_it(store)
    (job,) = jobs = new_jobs(1)
    store.enqueue(jobs)

    assert claim(store) == []

    waiting = stored(store, job.id)
    assert (waiting.state, waiting.attempt, waiting.waits_for) == (JobState.BLOCKED, 0, KEY)
    assert store.slot_holders(KEY) == []
    (told,) = store.breakers()
    assert (told.key, told.phase, told.waiting, told.failures, told.attempts) == ("smtp", Phase.OPEN, 1, 2, 2)


def test_successes_count_once_something_has_failed(store: SqlStore) -> None:
    jobs = _started(store, 6)

    end(store, jobs[:1], DOWN)
    end(store, jobs[1:5], WORKS)
    end(store, jobs[5:], DOWN)

    (told,) = store.breakers("smtp")
    assert (told.phase, told.failures) == (Phase.CLOSED, 1)


def test_those_that_fail_once_it_is_open_are_spared(store: SqlStore) -> None:
    first, second, late, *_ = started = _started(store, 4)
    end(store, started[:3], DOWN)  # of which two open it, and the third finds it open in the same batch
    end(store, started[3:], TimedOut(DOWN.failure))

    assert [stored(store, job.id).state for job in started] == [JobState.RETRYING] * 2 + [JobState.BLOCKED] * 2
    assert [stored(store, job.id).attempt for job in (first, second, late)] == [1, 1, 0]
    assert stored(store, late.id).failure == DOWN.failure
    assert [(attempt.number, attempt.outcome) for attempt in store.attempts(late.id)] == [(1, "spared")]
    assert [attempt.outcome for attempt in store.attempts(started[3].id)] == ["spared"]


def _started(store: SqlStore, count: int) -> list[Job]:
    store.enqueue(new_jobs(count))
    return claim(store)


def test_who_settles_is_told_which_jobs_were_spared(store: SqlStore) -> None:
    retried, also, late = _started(store, 3)

    settled = store.settle([settle(job, DOWN, RETRY) for job in (retried, also, late)])

    assert settled == {retried.id, also.id, late.id}
    assert {job_id: (one.outcome, one.state) for job_id, one in settled.otherwise.items()} == {
        late.id: ("spared", JobState.BLOCKED)
    }


def test_the_last_attempt_is_spared_too(store: SqlStore) -> None:
    (job,) = open_it(store, more=1)

    store.settle([settle(job, DOWN, Retry(max_attempts=1))])

    assert (stored(store, job.id).state, stored(store, job.id).attempt) == (JobState.BLOCKED, 0)


def test_what_is_not_retried_says_nothing_about_what_a_breaker_is_for(store: SqlStore) -> None:
    started = _started(store, 5)
    wrong = Failed(Failure(type="ValueError", message="no such address"), retryable=False)

    end(store, started[:4], wrong)
    told = store.breakers()
    open_it(store)
    end(store, started[4:], wrong)

    assert told == []
    assert stored(store, started[4].id).state is JobState.FAILED


def test_an_attempt_that_lost_its_job_says_nothing(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(3))
    late = claim(store, session=opened_session(store, lease=timedelta(seconds=15)))
    clock.advance("16s")
    store.reap()

    assert end(store, late, DOWN) == set()
    assert phase(store) is Phase.CLOSED
    assert store.breakers("smtp")[0].failures == 0


def test_an_attempt_that_is_given_twice_counts_once(store: SqlStore) -> None:
    (job,) = _started(store, 1)

    end(store, [job, job], DOWN)

    assert store.breakers("smtp")[0].failures == 1


def test_after_its_cooldown_probes_go_first_and_double(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    store.enqueue(new_jobs(20, priority=20))
    claim(store)
    clock.advance(29.9)
    assert (store.release().limits, claim(store)) == (0, [])

    clock.advance(0.1)
    assert store.release().limits == 1
    sizes: list[int] = []
    while len(sizes) < 4:
        probes = claim(store)
        sizes.append(len(probes))
        assert set(store.slot_holders(KEY)) == {job.id for job in probes}
        end(store, probes, WORKS)

    assert sizes == [1, 2, 4, 8]
    assert phase(store) is Phase.HALF_OPEN


def test_it_closes_when_nobody_waits_any_more(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    store.enqueue(new_jobs(3, priority=20))
    claim(store)
    clock.advance("30s")
    store.release()
    while probes := claim(store):
        end(store, probes, WORKS)

    assert phase(store) is Phase.CLOSED
    assert store.slot_holders(KEY) == []
    assert len(_started(store, 50)) == 50


def test_jobs_that_come_by_when_the_cooldown_is_over_are_probes(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    clock.advance("30s")  # and nobody has looked

    assert len(_started(store, 5)) == 1
    assert states(store)[JobState.BLOCKED] == 4


def test_a_probe_that_fails_burns_its_attempt_and_opens_it_for_twice_as_long(
    store: SqlStore, clock: SettableClock
) -> None:
    open_it(store)
    store.enqueue(new_jobs(5, priority=20))
    claim(store)
    lasted: list[timedelta] = []
    for seconds in (30, 60, 120, 120):
        clock.advance(seconds - 1)
        store.release()
        assert (claim(store), phase(store)) == ([], Phase.OPEN)
        clock.advance(1)
        store.release()
        (probe,) = claim(store, limit=1)
        end(store, [probe], DOWN)
        assert stored(store, probe.id).attempt == probe.attempt
        (told,) = store.breakers("smtp")
        assert told.until is not None
        lasted.append(told.until - clock.now())

    assert lasted == [timedelta(seconds=seconds) for seconds in (60, 120, 120, 120)]
    assert store.slot_holders(KEY) == []


def test_whoever_releases_sleeps_until_the_cooldown_ends(store: SqlStore) -> None:
    listener = store.listen({RELEASE})
    listener.wait(0)
    (late,) = open_it(store, more=1)

    end(store, [late], DOWN)
    heard = listener.wait(10)
    listener.close()

    assert heard == {RELEASE}
    assert store.release().next_due == timedelta(seconds=30)


def test_what_began_before_it_opened_is_no_probe(store: SqlStore, clock: SettableClock) -> None:
    fails, works = open_it(store, more=2)
    clock.advance("30s")

    end(store, [fails], DOWN)
    end(store, [works], WORKS)

    assert phase(store) is Phase.HALF_OPEN
    assert (stored(store, fails.id).state, stored(store, fails.id).attempt) == (JobState.READY, 0)
    (probe,) = claim(store)
    assert (probe.id, store.slot_holders(KEY)) == (fails.id, [fails.id])


@pytest.mark.parametrize("ends_as", ["snoozed", "returned", "cancelled", "paused", "lost", "failed for good"])
def test_a_probe_that_says_nothing_gives_its_slot_to_another(
    store: SqlStore, clock: SettableClock, ends_as: str
) -> None:
    open_it(store)
    clock.advance("30s")
    store.enqueue(new_jobs(2, priority=20))
    (probe,) = claim(store, session=opened_session(store, lease=timedelta(seconds=15)))
    match ends_as:
        case "snoozed":
            end(store, [probe], Snoozed(timedelta(hours=1)))
        case "returned":
            end(store, [probe], Returned())
        case "cancelled":
            store.cancel([probe.id])
            end(store, [probe], Snoozed(timedelta(hours=1)))
        case "paused":
            store.pause([probe.id])
            end(store, [probe], Snoozed(timedelta(hours=1)))
        case "lost":
            clock.advance("16s")
            store.reap()
        case _:
            end(store, [probe], Failed(DOWN.failure, retryable=False))

    assert (store.slot_holders(KEY), phase(store)) == ([], Phase.HALF_OPEN)
    assert len(claim(store)) == 1


def test_a_probe_that_hangs_does_not_keep_it_shut(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    clock.advance("8h")
    (hangs, *_) = started = _started(store, 3)
    assert len(started) == 1
    clock.advance("30s")
    store.release()

    (probe,) = claim(store)
    end(store, [probe], WORKS)

    assert probe.id != hangs.id
    assert len(claim(store)) == 1


def test_slots_that_are_held_when_it_closes_are_given_back(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    clock.advance("30s")
    store.enqueue(new_jobs(12, priority=20))
    slow: list[Job] = []
    while probes := claim(store):
        slow += probes[:1] if len(slow) < 2 and len(probes) > 1 else []
        end(store, [job for job in probes if job not in slow], WORKS)
    assert (phase(store), len(store.slot_holders(KEY))) == (Phase.CLOSED, len(slow))

    end(store, slow, WORKS)

    assert store.slot_holders(KEY) == []


def test_a_job_that_wants_both_takes_no_slot_of_its_limit_while_the_breaker_is_open(
    store: SqlStore, clock: SettableClock
) -> None:
    one = Limit("one", concurrency=1).want({})
    open_it(store)
    store.enqueue(new_jobs(3, priority=20))

    assert (claim(store, one), store.slot_holders("one")) == ([], [])
    clock.advance("30s")
    store.release()
    (probe,) = claim(store, one)
    assert store.slot_holders("one") == store.slot_holders(KEY) == [probe.id]
    end(store, [probe], WORKS)
    (probe,) = claim(store, one)
    assert store.slot_holders("one") == [probe.id]
    end(store, [probe], DOWN)
    assert (store.slot_holders("one"), store.slot_holders(KEY)) == ([], [])


def test_a_success_that_a_transaction_records_counts_and_frees_its_slot(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    clock.advance("30s")
    store.enqueue(new_jobs(4, priority=20))
    (probe,) = claim(store)

    with store.transaction(lambda: settle(probe, WORKS)):
        pass

    assert (store.slot_holders(KEY), len(claim(store))) == ([], 2)


def test_batches_of_several_breakers_and_of_none_are_told_apart(store: SqlStore) -> None:
    other = want_of(Breaker("other", open_at="100% of 1 in 1m"), {})
    ours, theirs, plain = _started(store, 3)
    settlements: list[Settlement] = [
        settle(ours, DOWN, RETRY),
        settle(replace(theirs, breaker=other), DOWN, RETRY),
        settle(replace(plain, breaker=None), DOWN, RETRY),
    ]

    assert len(store.settle(settlements)) == 3
    assert [(told.key, told.phase) for told in store.breakers()] == [("other", Phase.OPEN), ("smtp", Phase.CLOSED)]


def test_a_breaker_that_a_person_trips_is_open_until_then(store: SqlStore, clock: SettableClock) -> None:
    told = store.trip_breaker(Trip(key="smtp", lasting=timedelta(minutes=10), by="ada", reason="maintenance"))

    assert (told.phase, told.by, told.reason) == (Phase.OPEN, "ada", "maintenance")
    assert told.until == clock.now() + timedelta(minutes=10)
    assert _started(store, 3) == []
    clock.advance("599s")
    store.release()
    assert claim(store) == []
    clock.advance("1s")
    store.release()
    assert len(claim(store)) == 1


def test_a_breaker_that_a_person_tripped_is_not_pruned_before_its_time(store: SqlStore) -> None:
    store.trip_breaker(Trip(key="smtp", lasting=timedelta(hours=1), by="ada"))

    store.prune(timedelta(0))

    assert phase(store) is Phase.OPEN


def test_a_trip_of_one_that_is_open_keeps_its_cooldown(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    store.trip_breaker(Trip(key="smtp", lasting=timedelta(minutes=5), by="ada"))
    clock.advance("5m")

    end(store, _started(store, 1), DOWN)

    (told,) = store.breakers("smtp")
    assert told.until == clock.now() + timedelta(minutes=1)


def test_a_trip_holds_those_that_wait_for_longer(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    _started(store, 1)

    store.trip_breaker(Trip(key="smtp", lasting=timedelta(hours=1), by="ada"))

    clock.advance("59m")
    store.release()
    assert claim(store) == []
    clock.advance("1m")
    store.release()
    assert len(claim(store)) == 1


def test_a_reset_lets_those_that_wait_go_on_by_and_by(store: SqlStore) -> None:
    open_it(store)
    assert _started(store, 5) == []

    assert store.reset_breaker("smtp")

    sizes: list[int] = []
    while probes := claim(store):
        sizes.append(len(probes))
        end(store, probes, WORKS)
    assert (sizes, phase(store)) == ([1, 2, 2], Phase.CLOSED)
    assert not store.reset_breaker("smtp")
    assert not store.reset_breaker("unknown")
    assert [told.key for told in store.breakers()] == ["smtp"]


def test_a_reset_of_one_for_which_nobody_waits_closes_it(store: SqlStore) -> None:
    open_it(store)

    assert store.reset_breaker("smtp")
    assert phase(store) is Phase.CLOSED
    assert len(_started(store, 5)) == 5


def test_a_reset_of_all_lets_those_that_wait_go_on_at_once(store: SqlStore) -> None:
    open_it(store)
    assert _started(store, 5) == []

    assert store.reset_breaker("smtp", all_at_once=True)

    assert phase(store) is Phase.CLOSED
    assert len(claim(store)) == 5


def test_those_that_wait_go_on_though_the_clock_was_set_back(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    assert _started(store, 1) == []

    clock.jump(clock.now() - timedelta(hours=1))
    store.release()

    assert len(claim(store)) == 1


def test_what_waits_for_a_breaker_that_the_code_no_longer_has_goes_on_by_itself(
    store: SqlStore, clock: SettableClock
) -> None:
    open_it(store)
    assert _started(store, 20) == []
    clock.advance("30s")
    store.release()
    (first,) = store.claim(opened_session(store), "default", 100)  # by code that asks no breaker

    clock.advance("5s")
    store.release()

    assert states(store)[JobState.READY] >= 19
    end(store, [replace(first, breaker=None)], WORKS)


def test_what_is_let_go_on_though_no_probe_runs_is_judged_again(store: SqlStore, clock: SettableClock) -> None:
    open_it(store)
    assert _started(store, 20) == []

    for seconds in ("30s", "5s"):
        clock.advance(seconds)
        store.release()

    assert len(claim(store)) == 1


def test_only_what_nobody_has_used_for_long_is_pruned(store: SqlStore, clock: SettableClock) -> None:
    one_day = timedelta(days=1)
    open_it(store)
    store.prune(one_day)
    assert phase(store) is Phase.OPEN
    clock.advance("30s")
    store.prune(one_day)
    assert phase(store) is Phase.HALF_OPEN
    probes = _started(store, 2)
    clock.advance("2d")
    store.prune(one_day)
    assert phase(store) is Phase.HALF_OPEN  # a probe runs, and a job waits

    while probes:
        end(store, probes, Snoozed(timedelta(days=9)))
        probes = claim(store)
    store.release()
    assert phase(store) is Phase.HALF_OPEN
    store.prune(one_day)

    assert store.breakers() == []


def test_one_under_which_something_failed_lately_is_not_pruned(store: SqlStore, clock: SettableClock) -> None:
    end(store, _started(store, 1), DOWN)

    store.prune(timedelta(0))
    assert store.breakers("smtp")[0].failures == 1
    clock.advance("2d")
    store.prune(timedelta(days=1))
    assert store.breakers() == []


def test_a_row_is_a_limit_of_one_kind(url: str, store: SqlStore) -> None:
    statement = f"INSERT INTO {table(url, 'limits')} (key, concurrency, breaker) VALUES ('k', 1, '{{}}')"

    with pytest.raises(Exception, match=r"(?i)check"):
        execute(url, statement)
