"""What becomes of ticks that are due: misfire, overlap, jitter, pauses, ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from mainspring.model import firing
from mainspring.model.firing import LEAD, Decision, Position
from mainspring.model.schedule import CATCH_UP, Definition, Misfire, NewSchedule, Origin, Overlap, Schedule, spread
from mainspring.model.tick import Tick, Verdict
from mainspring.model.trigger import after, at, cron, every

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
EARLIER = UUID(int=1)
MINUTELY, HOURLY = every("1m"), cron("0 * * * *")


def define(**changes: Any) -> Definition:
    given: dict[str, Any] = {"task": "greet", "payload": "{}", "trigger": HOURLY}
    return Definition(**given | changes)


def schedule(*, now: datetime = NOON, state: dict[str, Any] | None = None, **definition: Any) -> Schedule:
    """Return a schedule that was made at *now*, and has moved on as *state* says."""
    defined = define(**definition)
    position = firing.begin(NewSchedule(id="s", definition=defined), now)
    facts = {
        "id": "s",
        "definition": defined,
        "origin": Origin.CALL,
        "paused": False,
        **{name: getattr(position, name) for name in Position.__struct_fields__},
        **dict.fromkeys(("ended_at", "expected_by")),
        "overdue": False,
        "created_at": now,
        "changed_at": now,
    }
    return Schedule(**facts | (state or {}))


def moved(schedule: Schedule, position: Position) -> Schedule:
    return msgspec.structs.replace(schedule, **msgspec.structs.asdict(position))


def told(decision: Decision) -> list[tuple[datetime, Verdict]]:
    return [(tick.at, tick.verdict) for tick in decision.ticks]


def jobs(decision: Decision) -> list[datetime]:
    return [tick.at for tick in decision.ticks if tick.verdict.is_job]


# On time.


def test_a_schedule_begins_with_the_next_tick() -> None:
    assert firing.begin(NewSchedule(id="s", definition=define()), NOON) == Position(
        tick_at=NOON + HOUR, due_at=NOON + HOUR - LEAD
    )


def test_one_that_starts_right_now_does() -> None:
    begun = schedule(trigger=MINUTELY, start=NOON)

    assert begun.tick_at == NOON


def test_a_tick_that_is_due_fires_and_the_next_one_follows() -> None:
    decision = firing.decide(schedule(), NOON + HOUR, ())

    assert told(decision) == [(NOON + HOUR, Verdict.FIRED)]
    assert decision.position == Position(tick_at=NOON + 2 * HOUR, due_at=NOON + 2 * HOUR - LEAD, runs=1)


def test_what_is_not_due_does_not_fire() -> None:
    before = schedule()

    decision = firing.decide(before, NOON + HOUR - LEAD - MOMENT, ())

    assert (decision.ticks, decision.position.tick_at) == ([], before.tick_at)


def test_a_tick_becomes_a_job_ahead_of_its_time_and_starts_on_the_dot() -> None:
    before = schedule()
    assert before.due_at is not None

    decision = firing.decide(before, before.due_at, ())

    assert told(decision) == [(NOON + HOUR, Verdict.FIRED)]
    assert decision.position == Position(tick_at=NOON + 2 * HOUR, due_at=NOON + 2 * HOUR - LEAD, runs=1)
    assert firing.starts_at(before, decision.ticks[0], before.due_at) == NOON + HOUR
    assert firing.starts_at(before, decision.ticks[0], NOON + HOUR) is None


def test_ticks_that_are_all_still_to_come_do_not_stand_for_each_other() -> None:
    before, fired = schedule(trigger=every("0.1s")), []

    for _ in range(5):
        decision = firing.decide(before, NOON + timedelta(seconds=0.05), ())
        before = moved(before, decision.position)
        fired += told(decision)

    assert fired == [(NOON + number * timedelta(seconds=0.1), Verdict.FIRED) for number in range(1, 6)]


def test_a_tick_that_is_late_leaves_the_next_one_its_own_turn() -> None:
    before, now = schedule(trigger=every("1.2s")), NOON + timedelta(seconds=0.3 + 2.4)

    first = firing.decide(before, now, ())
    second = firing.decide(moved(before, first.position), now, ())

    assert [verdict for _, verdict in told(first)] == [Verdict.COALESCED, Verdict.FIRED]
    assert told(second) == [(NOON + timedelta(seconds=3.6), Verdict.FIRED)]


@pytest.mark.parametrize(
    "definition",
    [
        {"overlap": Overlap.SKIP},
        {"overlap": Overlap.BUFFER_ONE},
        {"overlap": Overlap.CANCEL_OTHER},
        {"misfire": Misfire.SKIP},
        {"expect_success_within": MINUTE},
    ],
)
def test_a_tick_waits_for_its_time_where_that_decides_what_becomes_of_it(definition: dict[str, Any]) -> None:
    before = schedule(**definition)

    early = firing.decide(before, NOON + HOUR - MOMENT, ())

    assert (before.due_at, jobs(early)) == (NOON + HOUR, [])


def test_a_tick_that_fires_late_says_so() -> None:
    (tick,) = firing.decide(schedule(), NOON + HOUR + 5 * MINUTE, ()).ticks

    assert tick == Tick(at=NOON + HOUR, verdict=Verdict.LATE, reason="fired 0:05:00 after its time")


def test_a_trigger_that_has_no_more_ticks_ends_its_schedule() -> None:
    decision = firing.decide(schedule(trigger=at(NOON + HOUR)), NOON + HOUR, ())

    assert jobs(decision) == [NOON + HOUR]
    assert decision.position == Position(tick_at=None, due_at=None, runs=1)


def test_an_end_ends_it() -> None:
    ending = schedule(trigger=MINUTELY, end=NOON + MINUTE)

    decision = firing.decide(ending, NOON + 5 * MINUTE, ())

    assert (jobs(decision), decision.position.tick_at) == ([NOON + MINUTE], None)


def test_nothing_after_the_end_is_made_up_for() -> None:
    ending = schedule(trigger=MINUTELY, end=NOON + 2 * MINUTE, misfire=Misfire.CATCH_UP)

    decision = firing.decide(ending, NOON + 10 * MINUTE, ())

    assert (jobs(decision), decision.position.tick_at) == ([NOON + MINUTE, NOON + 2 * MINUTE], None)


def test_so_does_the_last_run() -> None:
    twice = schedule(trigger=MINUTELY, max_runs=2, misfire=Misfire.CATCH_UP)

    decision = firing.decide(twice, NOON + 5 * MINUTE, ())

    assert jobs(decision) == [NOON + MINUTE, NOON + 2 * MINUTE]
    assert decision.position == Position(tick_at=None, due_at=None, runs=2)


# Jitter.


def test_jitter_is_the_same_for_every_tick_and_differs_between_schedules() -> None:
    spreads = {spread(f"schedule {number}", MINUTE) for number in range(50)}

    assert len(spreads) > 40
    assert all(timedelta(0) <= one < MINUTE for one in spreads)
    assert spread("s", timedelta(0)) == timedelta(0)


def test_a_tick_fires_when_its_share_of_the_jitter_is_over() -> None:
    spread_out = schedule(jitter=10 * MINUTE)
    share = spread("s", 10 * MINUTE)

    ahead = NOON + HOUR + share - LEAD

    early = firing.decide(spread_out, ahead - MOMENT, ())
    on_time = firing.decide(spread_out, ahead, ())

    assert spread_out.due_at == ahead
    assert (jobs(early), jobs(on_time)) == ([], [NOON + HOUR])
    assert on_time.position.due_at == NOON + 2 * HOUR + share - LEAD
    assert firing.starts_at(spread_out, on_time.ticks[0], ahead) == NOON + HOUR + share


def test_what_a_person_asks_for_out_of_turn_starts_at_once() -> None:
    asked = Tick(at=NOON, verdict=Verdict.TRIGGERED)

    assert firing.starts_at(schedule(jitter=10 * MINUTE), asked, NOON) is None


def test_jitter_makes_no_tick_late() -> None:
    spread_out = schedule(jitter=10 * MINUTE, misfire=Misfire.SKIP)
    assert spread_out.due_at is not None

    (tick,) = firing.decide(spread_out, spread_out.due_at + timedelta(seconds=10), ()).ticks

    assert spread("s", 10 * MINUTE) > MINUTE
    assert tick.verdict is Verdict.FIRED


# Three days without a node.


def test_coalesce_runs_the_last_for_all() -> None:
    decision = firing.decide(schedule(misfire=Misfire.COALESCE), NOON + 3 * DAY + MINUTE, ())

    passed, run = decision.ticks
    assert (passed.at, passed.until, passed.count) == (NOON + HOUR, NOON + 3 * DAY - HOUR, 71)
    assert passed.verdict is Verdict.COALESCED
    assert (run.at, run.verdict) == (NOON + 3 * DAY, Verdict.LATE)
    assert decision.position.tick_at == NOON + 3 * DAY + HOUR


def test_skip_runs_none() -> None:
    decision = firing.decide(schedule(misfire=Misfire.SKIP), NOON + 3 * DAY + MINUTE, ())

    (passed,) = decision.ticks
    assert (passed.verdict, passed.count, passed.until) == (Verdict.MISSED, 72, NOON + 3 * DAY)
    assert decision.position.tick_at == NOON + 3 * DAY + HOUR


def test_skip_runs_what_is_on_time() -> None:
    decision = firing.decide(schedule(misfire=Misfire.SKIP), NOON + HOUR + timedelta(seconds=10), ())

    assert jobs(decision) == [NOON + HOUR]


def test_catch_up_runs_each() -> None:
    decision = firing.decide(schedule(misfire=Misfire.CATCH_UP), NOON + 3 * DAY + MINUTE, ())

    assert jobs(decision) == [NOON + number * HOUR for number in range(1, 73)]


def test_catch_up_runs_the_last_hundred_at_most() -> None:
    decision = firing.decide(schedule(trigger=MINUTELY, misfire=Misfire.CATCH_UP), NOON + DAY, ())

    missed, *run = decision.ticks
    assert (missed.verdict, missed.at, missed.until) == (Verdict.MISSED, NOON + MINUTE, NOON + DAY - CATCH_UP * MINUTE)
    assert [tick.at for tick in run] == [NOON + DAY - number * MINUTE for number in reversed(range(CATCH_UP))]
    assert (missed.count or 0) + len(run) == 24 * 60


def test_what_is_later_than_its_grace_is_missed() -> None:
    daily = schedule(trigger=cron("0 18 * * *"), grace=timedelta(hours=6))

    in_time = firing.decide(daily, NOON + 12 * HOUR, ())
    too_late = firing.decide(daily, NOON + 12 * HOUR + timedelta(microseconds=1), ())

    assert jobs(in_time) == [NOON + 6 * HOUR]
    assert told(too_late) == [(NOON + 6 * HOUR, Verdict.MISSED)]


def test_years_of_ticks_are_told_in_a_row_without_being_counted() -> None:
    decision = firing.decide(schedule(trigger=cron("* * * * * *")), NOON + 1000 * DAY, ())

    passed, run = decision.ticks
    assert (passed.count, passed.until) == (None, NOON + 1000 * DAY - timedelta(seconds=1))
    assert run.at == NOON + 1000 * DAY


# Overlap.


def test_allow_lets_both_run() -> None:
    assert jobs(firing.decide(schedule(), NOON + HOUR, [EARLIER])) == [NOON + HOUR]


def test_skip_records_why() -> None:
    decision = firing.decide(schedule(overlap=Overlap.SKIP), NOON + HOUR, [EARLIER])

    assert told(decision) == [(NOON + HOUR, Verdict.SKIPPED)]
    assert decision.ticks[0].reason == "the job of an earlier tick had not finished"
    assert decision.position == Position(tick_at=NOON + 2 * HOUR, due_at=NOON + 2 * HOUR)


def test_skip_lets_one_of_several_run() -> None:
    several = schedule(overlap=Overlap.SKIP, misfire=Misfire.CATCH_UP)

    decision = firing.decide(several, NOON + 3 * HOUR, ())

    assert [verdict for _, verdict in told(decision)] == [Verdict.LATE, Verdict.SKIPPED, Verdict.SKIPPED]


def test_one_is_buffered_and_the_next_skipped() -> None:
    busy = schedule(overlap=Overlap.BUFFER_ONE)

    first = firing.decide(busy, NOON + HOUR, [EARLIER])
    state = {name: getattr(first.position, name) for name in Position.__struct_fields__}
    second = firing.decide(schedule(overlap=Overlap.BUFFER_ONE, state=state), NOON + 2 * HOUR, [EARLIER])

    assert told(first) == [(NOON + HOUR, Verdict.BUFFERED)]
    assert (first.position.buffered_at, first.position.awaits) == (NOON + HOUR, True)
    assert told(second) == [(NOON + 2 * HOUR, Verdict.SKIPPED)]
    assert (second.position.buffered_at, second.position.awaits) == (NOON + HOUR, True)


def test_what_was_buffered_fires_when_the_other_has_ended() -> None:
    waiting = {"buffered_at": NOON + HOUR, "awaits": True, "tick_at": NOON + 2 * HOUR}

    decision = firing.decide(schedule(overlap=Overlap.BUFFER_ONE, state=waiting), NOON + HOUR + MINUTE / 2, ())

    assert told(decision) == [(NOON + HOUR, Verdict.FIRED)]
    assert decision.position == Position(tick_at=NOON + 2 * HOUR, due_at=NOON + 2 * HOUR, runs=1)


def test_cancel_other_cancels_and_waits() -> None:
    decision = firing.decide(schedule(overlap=Overlap.CANCEL_OTHER), NOON + HOUR, [EARLIER])

    assert told(decision) == [(NOON + HOUR, Verdict.BUFFERED)]
    assert decision.cancels == [EARLIER]
    assert decision.position.awaits


def test_with_cancel_other_the_latest_tick_waits() -> None:
    waiting = {"buffered_at": NOON + HOUR, "awaits": True, "tick_at": NOON + 2 * HOUR}

    decision = firing.decide(schedule(overlap=Overlap.CANCEL_OTHER, state=waiting), NOON + 2 * HOUR, [EARLIER])

    assert told(decision) == [(NOON + HOUR, Verdict.SKIPPED), (NOON + 2 * HOUR, Verdict.BUFFERED)]
    assert decision.position.buffered_at == NOON + 2 * HOUR


def test_no_tick_is_told_of_twice() -> None:
    several = schedule(overlap=Overlap.CANCEL_OTHER, misfire=Misfire.CATCH_UP)

    decision = firing.decide(several, NOON + 3 * HOUR, [EARLIER])

    assert told(decision) == [
        (NOON + HOUR, Verdict.SKIPPED),
        (NOON + 2 * HOUR, Verdict.SKIPPED),
        (NOON + 3 * HOUR, Verdict.BUFFERED),
    ]


# After the end of a job.


def test_after_waits_for_the_job_that_it_has_made() -> None:
    decision = firing.decide(schedule(trigger=after("10m")), NOON + 10 * MINUTE, ())

    assert jobs(decision) == [NOON + 10 * MINUTE]
    assert decision.position == Position(tick_at=None, due_at=None, runs=1, awaits=True)


def test_after_counts_from_the_end_of_the_job() -> None:
    ended = {"tick_at": None, "awaits": True, "runs": 1, "ended_at": NOON + HOUR}

    decision = firing.decide(schedule(trigger=after("10m"), state=ended), NOON + HOUR + MINUTE, ())

    assert decision.ticks == ()
    due = NOON + HOUR + 10 * MINUTE
    assert decision.position == Position(tick_at=due, due_at=due, runs=1, awaits=False)


def test_after_goes_on_waiting_while_a_job_of_it_is_left() -> None:
    ended = {"tick_at": None, "awaits": True, "runs": 1, "ended_at": NOON + HOUR}

    decision = firing.decide(schedule(trigger=after("10m"), state=ended), NOON + 2 * HOUR, [EARLIER])

    assert decision.position == Position(tick_at=None, due_at=None, runs=1, awaits=True)


def test_after_that_is_late_fires_at_once() -> None:
    ended = {"tick_at": None, "awaits": True, "runs": 1, "ended_at": NOON + HOUR}

    decision = firing.decide(schedule(trigger=after("10m"), state=ended), NOON + 2 * HOUR, ())

    assert told(decision) == [(NOON + HOUR + 10 * MINUTE, Verdict.LATE)]


def test_after_ends_with_its_last_run() -> None:
    decision = firing.decide(schedule(trigger=after("10m"), max_runs=1), NOON + 10 * MINUTE, ())

    assert decision.position == Position(tick_at=None, due_at=None, runs=1, awaits=False)


# Pause and resume.


def test_a_paused_schedule_is_never_due() -> None:
    position = firing.pause(schedule()).position

    assert (position.tick_at, position.due_at) == (NOON + HOUR, None)


def test_what_passed_during_a_pause_is_skipped() -> None:
    decision = firing.resume(schedule(state={"paused": True, "due_at": None}), NOON + 3 * HOUR + MINUTE)

    (passed,) = decision.ticks
    assert (passed.at, passed.until, passed.count) == (NOON + HOUR, NOON + 3 * HOUR, 3)
    assert (passed.verdict, passed.reason) == (Verdict.SKIPPED, "the schedule was paused")
    assert decision.position == Position(tick_at=NOON + 4 * HOUR, due_at=NOON + 4 * HOUR - LEAD)


def test_one_that_awaits_a_job_looks_for_it_when_it_is_resumed() -> None:
    waiting = {"paused": True, "tick_at": None, "due_at": None, "awaits": True}

    decision = firing.resume(schedule(trigger=after("10m"), state=waiting), NOON + HOUR)

    assert decision.position == Position(tick_at=None, due_at=NOON + HOUR, awaits=True)


# Defined anew.


def test_a_schedule_with_the_same_times_stays_where_it_is() -> None:
    before = schedule(state={"runs": 7})
    anew = NewSchedule(id="s", definition=define(task="other", jitter=MINUTE))

    position = firing.change(before, anew, NOON + 5 * HOUR).position

    assert position == Position(tick_at=NOON + HOUR, due_at=NOON + HOUR + spread("s", MINUTE) - LEAD, runs=7)


@pytest.mark.parametrize("changes", [{"trigger": MINUTELY}, {"start": NOON}, {"end": NOON + DAY}])
def test_other_times_count_from_now(changes: dict[str, Any]) -> None:
    before = schedule(state={"runs": 7})
    anew = NewSchedule(id="s", definition=define(**changes))

    position = firing.change(before, anew, NOON + 5 * HOUR).position

    expected = anew.definition.next_tick(NOON + 5 * HOUR)
    assert expected is not None
    assert position == Position(tick_at=expected, due_at=expected - LEAD, runs=7)


def test_a_tick_that_waits_is_kept() -> None:
    before = schedule(state={"buffered_at": NOON, "awaits": True})

    position = firing.change(before, NewSchedule(id="s", definition=define(trigger=MINUTELY)), NOON + HOUR).position

    assert (position.buffered_at, position.awaits) == (NOON, True)


def test_one_that_has_ended_begins_again_if_it_may_run_more_often() -> None:
    ended = schedule(max_runs=1, state={"runs": 1, "tick_at": None, "due_at": None})

    same = firing.change(ended, NewSchedule(id="s", definition=define(max_runs=1)), NOON + HOUR).position
    more = firing.change(ended, NewSchedule(id="s", definition=define(max_runs=2)), NOON + HOUR).position

    assert (same.tick_at, more.tick_at) == (None, NOON + 2 * HOUR)
