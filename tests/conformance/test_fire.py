"""Fire: every tick is one job or one recorded reason, whoever fires."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.model.failure import Failure
from mainspring.model.firing import LEAD
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.schedule import Misfire, Overlap
from mainspring.model.tick import Verdict
from mainspring.model.trigger import after, at, cron
from mainspring.store import fire as store_fire
from mainspring.store import open_store
from mainspring.store.database import DUE, FIRE, Runner
from mainspring.store.protocol import Fired
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected
from tests.support.factories import new_id, opened_session, stored
from tests.support.schedules import fire, new_schedule, verdicts

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def claim(store: SqlStore, session: UUID | None = None) -> list[Job]:
    return store.claim(session or opened_session(store, lease=timedelta(days=30)), "default", 100)


def succeed(store: SqlStore, *jobs: Job) -> None:
    store.settle([settle(job, Succeeded("null")) for job in jobs])


def test_nothing_is_due_in_an_empty_store(store: SqlStore) -> None:
    fired = fire(store)

    assert (fired.schedules, fired.jobs, fired.next_due) == (0, 0, None)


def test_a_tick_becomes_one_job_ahead_of_its_time_and_starts_at_it(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(queue="default", priority=10, payload='{"args":[1],"kwargs":{}}')])
    made_at, tick = clock.now() + MINUTE - LEAD, clock.now() + MINUTE

    clock.advance(58.999)
    early = fire(store)
    clock.advance(0.001)
    on_time = fire(store, node="this one")
    again = fire(store)
    clock.advance(0.999)
    waiting = (store.promote().count, claim(store))
    clock.advance(0.001)
    store.promote()

    assert (early.jobs, early.next_due) == (0, timedelta(milliseconds=1))
    assert (on_time.schedules, on_time.jobs, on_time.next_due) == (1, 1, MINUTE)
    assert (again.schedules, again.jobs) == (0, 0)
    assert waiting == (0, [])
    (job,) = claim(store)
    assert (job.task, job.payload, job.priority) == ("greet", '{"args":[1],"kwargs":{}}', 10)
    assert (job.schedule, job.tick, job.run_at) == ("s", tick, tick)
    (record,) = store.ticks("s")
    assert (record.at, record.verdict, record.job_id) == (tick, Verdict.FIRED, job.id)
    assert (record.node, record.decided_at) == ("this one", made_at)


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.BUFFER_ONE, Overlap.CANCEL_OTHER])
def test_a_tick_that_depends_on_the_jobs_before_it_waits_for_its_time(
    store: SqlStore, clock: SettableClock, overlap: Overlap
) -> None:
    store.put_schedules([new_schedule(overlap=overlap)])

    clock.advance(59.999)
    early = fire(store)
    clock.advance(0.001)
    on_time = fire(store)

    assert (early.jobs, early.next_due) == (0, timedelta(milliseconds=1))
    assert (on_time.jobs, len(claim(store))) == (1, 1)


def test_whoever_promotes_hears_of_jobs_that_wait_for_their_tick(store: SqlStore, clock: SettableClock) -> None:
    listener = store.listen({DUE, "default"})
    store.put_schedules([new_schedule()])
    clock.advance(59.5)
    listener.wait(0)

    fire(store)
    heard = listener.wait(10) | listener.wait(0.2)
    listener.close()

    assert heard == {DUE, "default"}


def test_a_finished_job_still_knows_its_tick(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    clock.advance("1m")
    fire(store)
    (job,) = claim(store)

    store.settle([settle(job, Failed(Failure(type="E", message="e"), retryable=False))])
    failed = stored(store, job.id)
    store.replay([job.id])

    assert failed.state is JobState.FAILED
    assert {(one.schedule, one.tick) for one in (failed, stored(store, job.id))} == {("s", job.tick)}


def test_what_is_left_over_is_due_at_once(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(f"s{number}") for number in range(5)])
    clock.advance("1m")

    first = fire(store, limit=3)
    rest = fire(store, limit=3)

    assert (first.jobs, first.next_due) == (3, timedelta(0))
    assert (rest.jobs, rest.next_due) == (2, MINUTE - LEAD)


def test_a_tick_that_is_on_record_never_becomes_a_second_job(url: str, store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    clock.advance("1m")
    fire(store)

    # As after a removal and a clock that was set back: the schedule stands before a tick that has fired.
    store.remove_schedules(["s"])
    clock.jump(clock.now() - MINUTE)
    store.put_schedules([new_schedule()])
    clock.advance("1m")
    again = fire(store)

    assert (again.schedules, again.jobs) == (1, 0)
    assert len(claim(store)) == len(store.ticks("s")) == 1


def test_two_nodes_share_what_is_due(url: str, store: SqlStore, clock: SettableClock) -> None:
    other = open_store(url, clock=clock)
    store.put_schedules([new_schedule(f"s{number}") for number in range(10)])
    clock.advance("1m")

    jobs = [fire(one, limit=3).jobs for one in (store, other, store, other, store)]
    other.close()

    assert jobs == [3, 3, 3, 1, 0]
    assert len({job.schedule for job in claim(store)}) == 10


def test_a_node_that_fails_while_it_fires_leaves_everything_as_it_was(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    before = store.get_schedules(["s"])
    clock.advance("1m")

    def die(count: int) -> list[UUID]:
        raise RuntimeError("out of ids")

    with pytest.raises(RuntimeError):
        store.fire("node", die)

    assert (store.get_schedules(["s"]), store.ticks("s")) == (before, [])
    assert fire(store).jobs == 1


def test_what_one_node_has_in_its_hands_another_leaves_alone(postgres_url: str, clock: SettableClock) -> None:
    # Not on SQLite, which has one writer at a time.
    store, other = open_store(postgres_url, clock=clock), open_store(postgres_url, clock=clock)
    store.put_schedules([new_schedule("a"), new_schedule("b")])
    clock.advance("1m")
    met: list[Fired] = []

    def meanwhile(count: int) -> list[UUID]:
        met.extend([fire(other), fire(other)])
        return [new_id() for _ in range(count)]

    store.fire("node", meanwhile, limit=1)

    assert [(fired.schedules, fired.jobs) for fired in met] == [(1, 1), (0, 0)]
    assert met[1].next_due == timedelta(milliseconds=50)  # not at once: it is in another's hands
    assert len(claim(store)) == 2
    other.close()
    store.close()


def test_three_days_without_a_node_are_recorded(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=cron("0 * * * *"))])
    clock.advance(timedelta(days=3))

    assert fire(store).jobs == 1

    last, passed = store.ticks("s")
    assert (passed.verdict, passed.count, last.verdict) == (Verdict.COALESCED, 71, Verdict.FIRED)
    assert passed.until is not None
    assert passed.until + HOUR == last.at


def test_skip_looks_for_unfinished_jobs_of_the_schedule_alone(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule("a", overlap=Overlap.SKIP), new_schedule("b", overlap=Overlap.SKIP)])
    clock.advance("1m")
    fire(store)
    succeed(store, *(job for job in claim(store) if job.schedule == "a"))
    clock.advance("1m")
    fire(store)

    assert verdicts(store, "a") == [Verdict.FIRED, Verdict.FIRED]
    assert verdicts(store, "b") == [Verdict.FIRED, Verdict.SKIPPED]


def test_a_buffered_tick_fires_when_the_job_before_it_has_ended(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE)])
    clock.advance("1m")
    fire(store)
    (first,) = claim(store)
    clock.advance("1m")
    assert fire(store).jobs == 0
    assert verdicts(store) == [Verdict.FIRED, Verdict.BUFFERED]

    succeed(store, first)
    ended = fire(store)

    assert ended.jobs == 1
    (second,) = claim(store)
    assert second.tick == (first.tick or clock.now()) + MINUTE
    assert verdicts(store) == [Verdict.FIRED, Verdict.FIRED]
    assert store.ticks("s")[0].job_id == second.id


def test_cancel_other_ends_a_waiting_job_and_takes_its_place(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.CANCEL_OTHER)])
    clock.advance("1m")
    fire(store)
    (earlier,) = [tick.job_id for tick in store.ticks("s")]
    clock.advance("1m")

    fire(store)
    fire(store)

    assert earlier is not None
    assert stored(store, earlier).state is JobState.CANCELLED
    assert stored(store, earlier).reason == "a later tick of its schedule takes its place"
    assert verdicts(store) == [Verdict.FIRED, Verdict.FIRED]


def test_cancel_other_asks_a_running_job_and_waits_for_its_end(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.CANCEL_OTHER)])
    clock.advance("1m")
    fire(store)
    (running,) = claim(store)
    clock.advance("1m")
    fire(store)

    assert stored(store, running.id).wish == "cancel"
    assert fire(store).jobs == 0

    succeed(store, running)
    assert fire(store).jobs == 1


def test_a_fixed_delay_counts_from_the_end_of_the_job(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=after("10m"))])
    clock.advance("10m")
    assert fire(store).jobs == 1
    (job,) = claim(store)
    clock.advance("1h")
    running = fire(store)

    succeed(store, job)
    ended = fire(store)
    clock.advance("10m")
    again = fire(store)

    assert (running.jobs, running.next_due) == (0, None)
    assert (ended.jobs, ended.next_due) == (0, 10 * MINUTE)
    assert again.jobs == 1


def test_a_job_that_fails_ends_the_wait_too_and_a_retry_does_not(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=after("10m"))])
    clock.advance("10m")
    fire(store)
    (job,) = claim(store)

    store.cancel([job.id])
    assert fire(store).next_due is None
    store.settle([settle(job, Failed(Failure(type="E", message="e"), retryable=False))])

    assert fire(store).next_due == 10 * MINUTE


def test_whoever_fires_hears_of_the_end_that_a_schedule_waits_for(
    store: SqlStore, url: str, clock: SettableClock
) -> None:
    before = open_store(url, clock=clock)  # one that closes has said all that it had to say, of new schedules too
    before.put_schedules([new_schedule(trigger=after("10m")), new_schedule("other")])
    clock.advance("10m")
    fire(before)
    jobs = {job.schedule: job for job in claim(before)}
    before.close()
    listener = store.listen({FIRE})
    listener.wait(0)

    succeed(store, jobs["other"])
    nobody_waits = listener.wait(0.2)
    succeed(store, jobs["s"])
    awaited = listener.wait(10)
    listener.close()

    assert not nobody_waits
    assert awaited == {FIRE}


def test_a_paused_schedule_does_not_go_on_when_its_job_ends(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=after("10m"))])
    clock.advance("10m")
    fire(store)
    store.pause_schedules(["s"])

    succeed(store, *claim(store))
    paused = fire(store)
    store.resume_schedules(["s"], "n")
    resumed = fire(store)

    assert (paused.schedules, paused.next_due) == (0, None)
    assert resumed.next_due == 10 * MINUTE


def test_a_schedule_is_triggered_out_of_turn_paused_or_not(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    store.pause_schedules(["s"])
    clock.advance("10s")
    job_id = new_id()

    assert store.trigger_schedule("s", job_id, "somebody")

    (job,) = claim(store)
    (tick,) = store.ticks("s")
    assert (job.id, job.schedule, job.tick) == (job_id, "s", clock.now())
    assert (tick.verdict, tick.at, tick.job_id, tick.node) == (Verdict.TRIGGERED, clock.now(), job_id, "somebody")


def test_a_backfill_makes_jobs_of_ticks_that_are_none(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    start = clock.now()
    clock.advance("3m")
    fire(store)
    asked = {start + number * MINUTE: new_id() for number in range(-1, 4)}

    made = store.backfill("s", asked, "somebody")
    again = store.backfill("s", {at: new_id() for at in asked}, "somebody")

    by_time = {tick.at: tick for tick in store.ticks("s")}
    assert made == [asked[start + number * MINUTE] for number in range(-1, 3)]
    assert again == []
    assert by_time[start + 3 * MINUTE].verdict is Verdict.FIRED
    assert {by_time[at].verdict for at in asked if at < start + 3 * MINUTE} == {Verdict.BACKFILLED}
    assert len(claim(store)) == 5


def test_a_schedule_without_success_is_overdue_once(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(expect_success_within=30 * SECOND), new_schedule("other")])
    tick = clock.now() + MINUTE
    clock.advance("1m")
    fire(store)
    clock.advance("29s")
    assert store.find_overdue() == []
    clock.advance("1s")

    (overdue,) = store.find_overdue()

    assert (overdue.schedule, overdue.expected_by, overdue.within) == ("s", tick + 30 * SECOND, 30 * SECOND)
    assert store.find_overdue() == []
    assert store.get_schedules(["s"])["s"].overdue


def test_many_that_are_overdue_are_found_some_in_each_transaction(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_schedules([new_schedule(f"s{n}", expect_success_within=30 * SECOND) for n in range(7)])
    clock.advance("1m")
    fire(store)
    clock.advance("30s")
    monkeypatch.setattr(store_fire, "_MOST_OVERDUE", 3)
    sizes: list[int] = []
    original = store_fire._find_overdue

    def noted(tx: Runner) -> Any:
        found = original(tx)
        sizes.append(len(found[0]))
        return found

    monkeypatch.setattr(store_fire, "_find_overdue", noted)

    found = [one.schedule for one in store.find_overdue()]

    assert (sorted(found), sizes) == ([f"s{n}" for n in range(7)], [3, 3, 1])


def test_one_that_somebody_has_locked_keeps_nobody_from_the_others(postgres_url: str, clock: SettableClock) -> None:
    store = open_store(postgres_url, clock=clock)
    store.put_schedules([new_schedule(name, expect_success_within=30 * SECOND) for name in "ab"])
    clock.advance("1m")
    fire(store)
    clock.advance("30s")
    with connected(postgres_url) as other:
        other.execute("SELECT FROM mainspring.schedules WHERE id = 'a' FOR UPDATE")
        found = [one.schedule for one in store.find_overdue()]
        other.rollback()
    found += [one.schedule for one in store.find_overdue()]
    store.close()

    assert found == ["b", "a"]


def test_a_success_counts_from_the_next_tick_on(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(expect_success_within=30 * SECOND)])
    start = clock.now()
    clock.advance("2m")
    store.find_overdue()
    fire(store)

    succeed(store, *claim(store))

    kept = store.get_schedules(["s"])["s"]
    assert (kept.overdue, kept.expected_by) == (False, start + 3 * MINUTE + 30 * SECOND)


def test_one_success_among_several_ends_counts(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(expect_success_within=30 * SECOND, misfire=Misfire.CATCH_UP)])
    clock.advance("2m")
    fire(store)
    first, second = claim(store)

    failed = settle(second, Failed(Failure(type="E", message="e"), retryable=False))
    store.settle([settle(first, Succeeded("null")), failed])

    assert store.find_overdue() == []


def test_a_failure_is_no_success(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(expect_success_within=30 * SECOND)])
    clock.advance("1m")
    fire(store)
    (job,) = claim(store)
    store.settle([settle(job, Failed(Failure(type="E", message="e"), retryable=False))])
    clock.advance("30s")

    assert [one.schedule for one in store.find_overdue()] == ["s"]


def test_a_schedule_that_has_ended_well_is_never_overdue(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=at(clock.now() + MINUTE), expect_success_within=HOUR)])
    store.put_schedules([new_schedule("over", trigger=at(clock.now() - MINUTE), expect_success_within=HOUR)])
    clock.advance("1m")
    fire(store)
    succeed(store, *claim(store))
    clock.advance("1d")

    assert store.find_overdue() == []


def test_a_pause_is_no_reason_to_worry(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=cron("0 * * * *"), expect_success_within=10 * MINUTE)])
    store.pause_schedules(["s"])
    clock.advance("5h")
    assert store.find_overdue() == []

    store.resume_schedules(["s"], "n")
    resumed = store.find_overdue()
    clock.advance("1h")
    fire(store)
    clock.advance("10m")

    assert resumed == []
    assert [one.schedule for one in store.find_overdue()] == ["s"]


def test_a_success_after_a_fixed_delay_is_expected_from_its_tick_on(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=after("1h"), expect_success_within=10 * MINUTE)])
    clock.advance("1h")
    fire(store)
    succeed(store, *claim(store))
    fire(store)
    clock.advance("59m")
    assert store.find_overdue() == []

    clock.advance("11m")
    assert [one.schedule for one in store.find_overdue()] == ["s"]


def test_a_success_is_expected_though_the_schedule_is_changed_while_its_job_hangs(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_schedules([new_schedule(trigger=after("1h"), expect_success_within=10 * MINUTE)])
    clock.advance("1h")
    fire(store)
    store.put_schedules([new_schedule(trigger=after("1h"), expect_success_within=5 * MINUTE)])

    clock.advance("4m")
    changed = store.find_overdue()
    store.pause_schedules(["s"])
    store.resume_schedules(["s"], "n")
    clock.advance("4m")
    resumed = store.find_overdue()
    clock.advance("1m")

    assert (changed, resumed) == ([], [])
    assert [one.schedule for one in store.find_overdue()] == ["s"]
