"""Fire, when things happen at the same moment, in an odd order, or can't be understood: nothing waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mainspring.model.firing import LEAD
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.model.schedule import Misfire, Overlap
from mainspring.model.tick import Verdict
from mainspring.model.trigger import after, cron, every
from mainspring.store import fire as fire_module
from mainspring.store import open_store
from mainspring.store import schedules as schedules_module
from mainspring.store.database import Runner
from mainspring.store.protocol import AHEAD
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.conformance.test_fire import claim, succeed
from tests.support.databases import execute, table
from tests.support.factories import new_id, new_job, opened_session
from tests.support.schedules import fire, new_schedule, verdicts

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def jobs_within(store: SqlStore, clock: SettableClock, hours: int) -> int:
    """Return how many jobs are made when *hours* pass."""
    made = 0
    for _ in range(hours):
        clock.advance("1h")
        made += fire(store).jobs
    return made


# At the same moment.


def test_a_job_that_ends_while_its_schedule_fires_is_heard_of(
    postgres_url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on SQLite, which has one writer at a time."""
    store, other = open_store(postgres_url, clock=clock), open_store(postgres_url, clock=clock)
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE, end=clock.now() + 2 * MINUTE)])
    clock.advance("1m")
    fire(store)
    (job,) = claim(store)
    clock.advance("1m")
    write, settling = fire_module._write, []

    def meanwhile(*arguments: Any) -> Any:
        written = write(*arguments)
        settling.append(threading.Thread(target=lambda: other.settle([settle(job, Succeeded("null"))])))
        settling[0].start()
        settling[0].join(0.5)  # it waits for the schedule, or would miss that it is awaited
        return written

    monkeypatch.setattr(fire_module, "_write", meanwhile)
    fire(store)
    monkeypatch.undo()
    settling[0].join()

    assert fire(store).jobs == 1
    store.close()
    other.close()


def test_a_schedule_that_two_nodes_put_at_once_is_not_set_back(
    postgres_url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_store(postgres_url, clock=clock), open_store(postgres_url, clock=clock)
    new, write = new_schedule(max_runs=1), schedules_module._write

    def meanwhile(tx: Runner, put: Any, *, replace: bool) -> set[str]:
        monkeypatch.undo()
        other.put_schedules([new])
        clock.advance("1m")
        fire(other)
        return write(tx, put, replace=replace)

    monkeypatch.setattr(schedules_module, "_write", meanwhile)
    store.put_schedules([new])

    assert jobs_within(store, clock, 2) == 0
    assert len(claim(store)) == 1
    store.close()
    other.close()


# In an odd order.


def redefine_after(store: SqlStore) -> None:
    store.put_schedules([new_schedule(trigger=after("30s"), notes="changed")])


@pytest.mark.parametrize("meddle", [redefine_after, lambda store: store.pause_schedules(["s"])])
def test_a_fixed_delay_goes_on_whatever_happens_when_its_job_has_ended(
    store: SqlStore, clock: SettableClock, meddle: Callable[[SqlStore], object]
) -> None:
    store.put_schedules([new_schedule(trigger=after("30s"))])
    clock.advance("30s")
    fire(store)
    succeed(store, *claim(store))

    meddle(store)
    store.resume_schedules(["s"], "n")

    assert jobs_within(store, clock, 3) == 1


def test_what_is_buffered_is_not_forgotten_when_the_schedule_is_changed(store: SqlStore, clock: SettableClock) -> None:
    end = clock.now() + 2 * MINUTE
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE, end=end)])
    clock.advance("1m")
    fire(store)
    (job,) = claim(store)
    clock.advance("1m")
    fire(store)
    succeed(store, job)

    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE, end=end, notes="changed")])

    assert jobs_within(store, clock, 1) == 1


def test_a_schedule_with_a_buffered_tick_may_become_a_fixed_delay(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE), new_schedule("other", trigger=every("1h"))])
    clock.advance("1m")
    fire(store)
    (job,) = claim(store)
    clock.advance("1m")
    fire(store)

    store.put_schedules([new_schedule(trigger=after("30s"), overlap=Overlap.BUFFER_ONE)])
    succeed(store, job)

    assert jobs_within(store, clock, 1) == 2
    assert verdicts(store) == [Verdict.FIRED, Verdict.SKIPPED, Verdict.LATE]


def test_a_fixed_delay_that_is_changed_counts_from_the_end_of_the_job(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=after("30s"))])
    clock.advance("30s")
    fire(store)
    (job,) = claim(store)
    store.put_schedules([new_schedule(trigger=after("10m"))])
    clock.advance("9m")
    succeed(store, job)

    fire(store)

    assert store.get_schedules(["s"])["s"].tick_at == clock.now() + 10 * MINUTE


def test_a_fixed_delay_whose_tick_passed_in_a_pause_can_be_resumed(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=after("30s"))])
    store.pause_schedules(["s"])
    clock.advance("40s")

    store.resume_schedules(["s"], "n")

    assert verdicts(store) == [Verdict.SKIPPED]
    assert store.get_schedules(["s"])["s"].tick_at == clock.now() + timedelta(seconds=30)


def test_a_resumed_schedule_runs_what_was_buffered_and_nothing_of_the_pause(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE)])
    clock.advance("1m")
    fire(store)
    (job,) = claim(store)
    clock.advance("1m")
    fire(store)
    store.pause_schedules(["s"])
    clock.advance("5m30s")
    store.resume_schedules(["s"], "n")

    succeed(store, job)
    fire(store)
    (buffered,) = claim(store)
    succeed(store, buffered)
    fire(store)

    assert buffered.tick == (job.tick or clock.now()) + MINUTE
    assert verdicts(store) == [Verdict.FIRED, Verdict.LATE, Verdict.SKIPPED]
    assert claim(store) == []


def test_what_was_due_when_the_times_changed_is_on_record(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    clock.advance("5m")

    store.put_schedules([new_schedule(trigger=every("1h"))], node="somebody")
    store.remove_schedules(["s"], node="somebody")

    (missed,) = store.ticks("s")
    assert (missed.verdict, missed.count, missed.node) == (Verdict.MISSED, 5, "somebody")


def test_what_is_due_or_waits_when_a_schedule_is_removed_is_on_record(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE)])
    for _ in range(2):
        clock.advance("1m")
        fire(store)
    clock.advance("1m")

    store.remove_schedules(["s"])

    assert verdicts(store) == [Verdict.FIRED, Verdict.SKIPPED, Verdict.MISSED]


# Ticks that are on record.


def test_a_fixed_delay_whose_tick_is_on_record_goes_on(store: SqlStore, clock: SettableClock) -> None:
    start = clock.now()
    store.put_schedules([new_schedule(trigger=after("30s"))])
    clock.advance("30s")
    fire(store)
    succeed(store, *claim(store))
    store.remove_schedules(["s"])
    clock.jump(start)
    store.put_schedules([new_schedule(trigger=after("30s"))])
    clock.advance("30s")
    assert fire(store).jobs == 0

    assert jobs_within(store, clock, 3) == 1


def test_a_tick_does_not_wait_for_a_job_that_was_not_made(store: SqlStore, clock: SettableClock) -> None:
    end = clock.now() + 2 * MINUTE
    store.put_schedules([new_schedule(overlap=Overlap.BUFFER_ONE, misfire=Misfire.CATCH_UP, end=end)])
    clock.advance("1m")
    store.backfill("s", {clock.now(): new_id()}, "n")
    succeed(store, *claim(store))
    clock.advance("1m")
    fire(store)

    assert fire(store).jobs == 1


def test_two_triggers_in_one_instant_are_two_jobs(store: SqlStore) -> None:
    store.put_schedules([new_schedule()])
    ids = [new_id(), new_id()]

    for job_id in ids:
        assert store.trigger_schedule("s", job_id, "n")

    assert set(store.get(ids)) == set(ids)
    assert len(store.ticks("s")) == 2


def test_a_backfill_of_the_first_of_many_leaves_the_others_on_record(store: SqlStore, clock: SettableClock) -> None:
    start = clock.now()
    store.put_schedules([new_schedule()])
    clock.advance("1h")
    fire(store)

    store.backfill("s", {start + number * MINUTE: new_id() for number in (1, 2, 5)}, "n")

    by_time = {tick.at: tick for tick in store.ticks("s")}
    assert sum(tick.count or 0 for tick in by_time.values()) == 60
    assert by_time[start + 3 * MINUTE].verdict is Verdict.COALESCED
    assert by_time[start + 3 * MINUTE].until == start + 59 * MINUTE


def test_a_backfill_makes_nothing_early(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])

    assert store.backfill("s", {clock.now() + MINUTE: new_id()}, "n") == []


# What can't be understood, and what is too much.


@pytest.mark.parametrize("now_says", ["Mars/Base", "newer"])
def test_a_schedule_that_can_not_be_fired_here_does_not_stop_the_others(
    url: str, store: SqlStore, clock: SettableClock, now_says: str
) -> None:
    store.put_schedules([new_schedule("odd", trigger=cron("* * * * *", "Europe/Berlin")), new_schedule("other")])
    before = "Europe/Berlin" if "/" in now_says else '"cron"'
    after_it = now_says if "/" in now_says else f'"{now_says}"'
    execute(url, f"UPDATE {table(url, 'schedules')} SET definition = replace(definition, '{before}', '{after_it}')")
    store.put_schedules([new_schedule("other", notes="written by this version")])
    clock.advance("1m")

    fired = fire(store)

    assert (fired.jobs, set(fired.failed), fired.next_due) == (1, {"odd"}, MINUTE - LEAD)
    assert "other" in [one.id for one in store.schedules()]
    store.put_schedules([new_schedule("odd")])
    assert store.remove_schedules(["odd"]) == {"odd"}


def test_rules_of_a_time_zone_that_have_changed_stop_nothing(url: str, store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=cron("0 15 * * *")), new_schedule("other")])
    earlier = "tick_at - 1800000000" if url.startswith("sqlite") else "tick_at - interval '30 minutes'"
    moved = f"UPDATE {table(url, 'schedules')} SET tick_at = {earlier}, due_at = {earlier} WHERE id = 's'"
    execute(url, moved)
    clock.advance("24h")

    assert fire(store).jobs == 2


def test_much_to_make_up_for_is_done_in_several_transactions(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fire_module, "_MOST_JOBS", 150)
    store.put_schedules([new_schedule(f"s{n}", misfire=Misfire.CATCH_UP) for n in range(5)])
    clock.advance("100m")

    batches = []
    while (fired := fire(store)).schedules:
        batches.append(fired.jobs)

    assert batches == [200, 200, 100]


def test_jobs_that_were_due_before_the_clock_was_set_back_are_claimed(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([new_job()])
    clock.jump(clock.now() - HOUR)

    assert len(store.claim(opened_session(store), "default", 10, ahead=AHEAD)) == 1
