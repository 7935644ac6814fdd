"""Lint: what is wrong or odd about schedules, and when they all fire at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import after, at, cron, every
from mainspring.heat import MINUTES, Heat, heat
from mainspring.lint import CROWD, Code, Finding, lint
from mainspring.model.schedule import Origin, Schedule
from mainspring.model.trigger import Trigger
from tests.support.schedules import new_schedule

NOW = datetime(2026, 7, 1, 12, 30, 40, tzinfo=UTC)  # a Wednesday
DAY = timedelta(days=1)
_STANDING = ("paused", "tick_at", "runs", "awaits", "ended_at", "expected_by", "overdue")


def stored(schedule_id: str = "s", **changes: Any) -> Schedule:
    """Return a schedule that stands before its next tick, unless the test wants another."""
    standing: dict[str, Any] = {name: changes.pop(name) for name in _STANDING if name in changes}
    definition = new_schedule(schedule_id, **changes).definition
    fields = {
        "paused": False,
        "tick_at": definition.next_tick(NOW),
        "due_at": None,
        "runs": 0,
        "buffered_at": None,
        "awaits": False,
        "ended_at": None,
        "expected_by": None,
        "overdue": False,
        "created_at": NOW,
        "changed_at": NOW,
    }
    return Schedule(id=schedule_id, definition=definition, origin=Origin.CALL, **fields | standing)


def found(*schedules: Schedule, known: set[str] | None = None, live: set[str] | None = None) -> list[Finding]:
    return lint(schedules, known, live, NOW)


def only(finding: list[Finding]) -> tuple[str | None, Code, str]:
    (one,) = finding
    return one.schedule, one.code, one.sentence


def test_there_is_nothing_to_say_of_schedules_that_are_well() -> None:
    well = [
        stored("a"),
        stored("b", trigger=cron("0 9 * * *", "Europe/Berlin")),
        stored("c", trigger=after("30s"), tick_at=None, awaits=True),
        stored("d", paused=True, tick_at=NOW - 30 * DAY),
        stored("e", expected_by=NOW + timedelta(seconds=1)),
    ]

    assert found(*well, known={"greet"}, live={"greet"}) == []


def test_one_that_never_fires_is_trouble() -> None:
    schedule, code, sentence = only(found(stored(trigger=at(NOW - DAY))))

    assert (schedule, code, code.trouble) == ("s", Code.NEVER_FIRES, True)
    assert sentence == "has not fired and never will: 'at 2026-06-30 12:30:40+00:00' has no tick left"


def test_one_that_has_ended_after_its_runs_is_not() -> None:
    _, code, sentence = only(found(stored(tick_at=None, runs=1, max_runs=1)))

    assert (code, code.trouble) == (Code.ENDED, False)
    assert sentence == "has ended after 1 run; it can be removed"


def test_a_task_that_the_app_does_not_know_is_trouble() -> None:
    _, code, sentence = only(found(stored(task="gret"), known={"greet", "send"}))

    assert (code, code.trouble) == (Code.UNKNOWN_TASK, True)
    assert sentence == "enqueues 'gret', which is no task of the app, did you mean 'greet'?"


def test_a_task_for_which_nobody_alive_has_a_handler_is_trouble() -> None:
    _, code, sentence = only(found(stored(), known={"greet"}, live={"send"}))

    assert (code, code.trouble) == (Code.NO_HANDLER, True)
    assert "no live worker" in sentence


def test_one_without_a_success_in_time_is_trouble_even_before_somebody_was_told() -> None:
    _, code, sentence = only(found(stored(expected_by=NOW)))

    assert (code, code.trouble) == (Code.OVERDUE, True)
    assert "expected by 2026-07-01 12:30 UTC" in sentence


def test_a_pause_keeps_one_from_being_overdue() -> None:
    assert found(stored(expected_by=NOW - DAY, overdue=True, paused=True)) == []


@pytest.mark.parametrize("standing", [{"tick_at": NOW - 31 * DAY}, {"tick_at": None, "ended_at": NOW - 31 * DAY}])
def test_a_long_pause_is_odd(standing: dict[str, Any]) -> None:
    _, code, sentence = only(found(stored(paused=True, awaits=True, **standing)))

    assert (code, code.trouble) == (Code.LONG_PAUSED, False)
    assert "since 2026-05-31 12:30 UTC" in sentence


@pytest.mark.parametrize(
    ("expression", "tz", "said"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-10-25: 02:30 happens twice that day; runs once, the first time"),
        ("30 2 * * *", "America/New_York", "2027-03-14: 02:30 does not exist that day; runs right after the gap"),
        ("*/30 1-3 * * *", "Europe/Berlin", "2026-10-25: the clocks go back here"),
        ("@daily", "America/Santiago", "2026-09-06: 00:00 does not exist that day"),
    ],
)
def test_a_change_of_the_clocks_within_a_year_is_told_once(expression: str, tz: str, said: str) -> None:
    _, code, sentence = only(found(stored(trigger=cron(expression, tz))))

    assert (code, code.trouble) == (Code.CLOCK_CHANGE, False)
    assert f"on {said}" in sentence


@pytest.mark.parametrize("expression", ["0 * * * *", "@hourly", "*/5 * * * *", "30 0 * * * *"])
def test_what_fires_in_every_real_hour_does_not_care_for_the_clocks(expression: str) -> None:
    assert found(stored(trigger=cron(expression, "Europe/Berlin"))) == []


def test_one_that_has_ended_meets_no_clocks_any_more() -> None:
    ended = stored(trigger=cron("30 2 * * *", "Europe/Berlin"), tick_at=None, runs=3)

    assert only(found(ended))[1] is Code.ENDED


def many(count: int, trigger: Trigger, **changes: Any) -> list[Schedule]:
    return [stored(f"s{number}", trigger=trigger, **changes) for number in range(count)]


def test_a_crowd_on_one_minute_is_odd() -> None:
    schedule, code, sentence = only(found(*many(CROWD, cron("0 9 * * *"))))

    assert (schedule, code, code.trouble) == (None, Code.CROWDED, False)
    assert sentence == (
        "100 schedules without jitter fire at 2026-07-02 09:00 UTC, and 100 or more in 6 other minutes of the week; "
        "give them jitter"
    )


def test_a_crowd_is_found_beside_a_few_that_fire_every_second_of_a_minute() -> None:
    crowd = many(CROWD, at(datetime(2026, 7, 2, 10, tzinfo=UTC)))

    assert "at 2026-07-02 10:00 UTC; give" in only(found(*crowd, *many(2, cron("* 0 9 * * *"))))[2]


def test_those_who_meet_by_different_triggers_are_a_crowd_too() -> None:
    assert only(found(*many(50, cron("0 9 * * *")), *many(50, cron("0 11 * * *", "Europe/Berlin"))))[1] is Code.CROWDED


@pytest.mark.parametrize(
    "schedules",
    [
        many(CROWD - 1, every("1h")),
        many(CROWD, every("1h"), jitter=timedelta(minutes=5)),
        many(CROWD, every("1h"), paused=True),
        many(CROWD, after("30s")),
        many(60, cron("0 9 * * *")) + many(60, cron("1 9 * * *")),
    ],
)
def test_what_does_not_come_together_is_no_crowd(schedules: list[Schedule]) -> None:
    assert found(*schedules) == []


def busy(load: Heat) -> dict[int, float]:
    """Return the minutes in which something fires, counted from the beginning."""
    return {number: ticks for number, ticks in enumerate(load.ticks) if ticks}


def minute(day: int, hour: int, past: int = 0) -> int:
    """Return a minute of the week that begins with the minute of NOW."""
    return (datetime(2026, 7, day, hour, past, tzinfo=UTC) - NOW.replace(second=0)) // timedelta(minutes=1)


def test_the_week_begins_with_the_present_minute() -> None:
    load = heat([stored(trigger=cron("30 12 * * *"))], NOW)

    assert load.begin == datetime(2026, 7, 1, 12, 30, tzinfo=UTC)
    assert busy(load) == {number * 24 * 60: 1 for number in range(7)}


def test_schedules_alike_and_unlike_add_up() -> None:
    load = heat([*many(3, cron("0 9 * * sun")), *many(2, cron("0 11 * * sun", "Europe/Berlin"))], NOW)

    assert busy(load) == {minute(5, 9): 5}


@pytest.mark.parametrize("schedule", [stored(paused=True), stored(tick_at=None, runs=1)])
def test_what_does_not_fire_is_not_counted(schedule: Schedule) -> None:
    assert busy(heat([schedule], NOW)) == {}


def test_jitter_spreads_a_tick_over_its_minutes() -> None:
    load = heat(many(6, at(datetime(2026, 7, 2, 9, tzinfo=UTC)), jitter=timedelta(minutes=4)), NOW)

    assert busy(load) == {minute(2, 9, past): 1.5 for past in range(4)}
    assert load.busiest(1)[0].schedules == 1.5


def test_jitter_that_goes_beyond_the_week_is_cut_off() -> None:
    load = heat([stored(trigger=at(NOW + 7 * DAY - timedelta(minutes=2)), jitter=DAY)], NOW)

    assert list(busy(load)) == [MINUTES - 2, MINUTES - 1]


@pytest.mark.parametrize(
    ("trigger", "ticks", "schedules"),
    [
        (every("1s"), 60, 1),
        (every("1m"), 1, 1),
        (cron("* * * * *"), 1, 1),
        (cron("*/10 * * * * *"), 6, 1),
        (after("30s"), 2, 1),
        (after("10m"), 0.1, 0.1),
    ],
)
def test_what_comes_all_the_time_counts_for_every_minute_and_costs_nothing(
    trigger: Trigger, ticks: float, schedules: float
) -> None:
    load = heat([stored(trigger=trigger)], NOW, budget=1)

    assert (load.ticks[60], load.schedules[60], load.left_out) == (ticks, schedules, 0)
    assert set(load.ticks[11:]) == {ticks}


def test_what_comes_all_the_time_keeps_to_its_start_and_end() -> None:
    load = heat([stored(trigger=every("30s"), start=NOW + DAY, end=NOW + 2 * DAY)], NOW)
    later = heat([stored(trigger=every("30s", NOW + DAY))], NOW)

    assert (min(busy(load)), max(busy(load))) == (minute(2, 12, 31), minute(3, 12, 30))
    assert (min(busy(later)), max(busy(later))) == (minute(2, 12, 30), MINUTES - 1)


def test_ticks_keep_to_their_start_and_end() -> None:
    start, end = datetime(2026, 7, 3, 9, tzinfo=UTC), datetime(2026, 7, 4, 9, tzinfo=UTC)

    load = heat([stored(trigger=cron("0 9 * * *"), start=start, end=end)], NOW)

    assert list(busy(load)) == [minute(3, 9), minute(4, 9)]


def test_several_ticks_of_a_minute_are_one_schedule() -> None:
    (first, *_) = heat([stored(trigger=cron("*/10 0 9 * * *"))], NOW).busiest(5)

    assert (first.at, first.ticks, first.schedules) == (datetime(2026, 7, 2, 9, tzinfo=UTC), 6, 1)


def test_the_busiest_minutes_come_first_and_idle_ones_not_at_all() -> None:
    one, two = datetime(2026, 7, 2, 9, tzinfo=UTC), datetime(2026, 7, 3, 9, tzinfo=UTC)

    load = heat([stored("a", trigger=at(one)), *many(2, at(two))], NOW)

    assert [(minute.at, minute.ticks) for minute in load.busiest(5)] == [(two, 2), (one, 1)]
    assert len(load.busiest(1)) == 1


def test_the_budget_is_spent_on_what_most_have_in_common_and_the_rest_is_told() -> None:
    few, most = many(2, cron("0 9 * * *")), many(3, cron("0 10 * * *"))

    load = heat([*few, *most], NOW, budget=10)

    assert set(busy(load).values()) == {3}
    assert load.left_out == 2
    assert heat([*few, *most], NOW, budget=14).left_out == 0
