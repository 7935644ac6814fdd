"""Lint: what is wrong or odd about schedules, and when they all fire at once. Nothing here looks at a database."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import accumulate, islice

import msgspec

from mainspring.clock import EPOCH
from mainspring.errors import did_you_mean
from mainspring.model.cron import DAY, offset_at, zone
from mainspring.model.preview import Preview, dst_remarks
from mainspring.model.schedule import MICROSECOND, Definition, Schedule
from mainspring.model.text import counted
from mainspring.model.trigger import After, Cron, Every, Trigger, ticks

LONG_PAUSE = timedelta(days=30)
CROWD = 100
"""Schedules on one minute that are worth spreading."""

MINUTES = 7 * 24 * 60
BUDGET = 200_000
"""Minutes to look at for a heat map, over all triggers. A trigger takes up to a week of them."""

_MINUTE = timedelta(minutes=1)
_YEAR = 366


class Code(StrEnum):
    """What kind of thing was found, the worst first."""

    NEVER_FIRES = "never_fires"
    UNKNOWN_TASK = "unknown_task"
    NO_HANDLER = "no_handler"
    OVERDUE = "overdue"
    LONG_PAUSED = "long_paused"
    CROWDED = "crowded"
    CLOCK_CHANGE = "clock_change"
    ENDED = "ended"

    @property
    def trouble(self) -> bool:
        """Whether somebody has to do something about it."""
        return self in (Code.NEVER_FIRES, Code.UNKNOWN_TASK, Code.NO_HANDLER, Code.OVERDUE)


class Finding(msgspec.Struct, frozen=True):
    """A code that stays the same, and a sentence with the facts. No schedule means that it is about many."""

    schedule: str | None
    code: Code
    sentence: str


def lint(
    schedules: Sequence[Schedule],
    known_tasks: Collection[str] | None,
    live_tasks: Collection[str] | None,
    now: datetime,
) -> list[Finding]:
    """Return what is wrong or odd about *schedules*.

    Their tasks are looked for among those that an app knows, and those that live workers have handlers for; None means
    that nobody can tell.
    """
    changes = cache(lambda tz: _days_of_change(tz, now))  # to find them takes longer than to look at one schedule
    found: list[Finding] = []
    for one in schedules:
        found += _about_its_end(one)
        found += _about_its_task(one, known_tasks, live_tasks)
        found += _about_its_pause(one, now)
        found += _about_its_success(one, now)
        found += _about_the_clocks(one, changes)
    return [*found, *_about_the_crowd(schedules, now)]


def is_overdue(schedule: Schedule, now: datetime) -> bool:
    """Return whether *schedule* should have had a success by *now*, whether or not somebody was told."""
    return not schedule.paused and schedule.expected_by is not None and schedule.expected_by <= now


def _about_its_end(schedule: Schedule) -> Iterator[Finding]:
    if schedule.ended and not schedule.runs:
        why = f"'{schedule.definition.trigger}' has no tick left"
        yield Finding(schedule.id, Code.NEVER_FIRES, f"has not fired and never will: {why}")
    elif schedule.ended:
        yield Finding(schedule.id, Code.ENDED, f"has ended after {counted(schedule.runs, 'run')}; it can be removed")


def _about_its_task(
    schedule: Schedule, known: Collection[str] | None, live: Collection[str] | None
) -> Iterator[Finding]:
    task = schedule.definition.task
    if known is not None and task not in known:
        hint = did_you_mean(task, known)
        yield Finding(schedule.id, Code.UNKNOWN_TASK, f"enqueues {task!r}, which is no task of the app{hint}")
    elif live is not None and task not in live:
        yield Finding(schedule.id, Code.NO_HANDLER, f"enqueues {task!r}, for which no live worker has a handler")


def _about_its_pause(schedule: Schedule, now: datetime) -> Iterator[Finding]:
    # When it was paused is not recorded; but the first tick that did not come is, and only that one matters.
    held = schedule.tick_at or schedule.ended_at
    if schedule.paused and held is not None and now - held > LONG_PAUSE:
        sentence = f"is paused and has held its ticks since {_shown(held)}; resume it, or remove it"
        yield Finding(schedule.id, Code.LONG_PAUSED, sentence)


def _about_its_success(schedule: Schedule, now: datetime) -> Iterator[Finding]:
    if schedule.expected_by is not None and is_overdue(schedule, now):
        sentence = f"has had no success: one was expected by {_shown(schedule.expected_by)}"
        yield Finding(schedule.id, Code.OVERDUE, sentence)


def _about_the_clocks(schedule: Schedule, changes: Callable[[str], Sequence[datetime]]) -> Iterator[Finding]:
    trigger = schedule.definition.trigger
    if schedule.ended or not isinstance(trigger, Cron):
        return
    first = _first_remark(trigger, changes(trigger.tz))
    if first is not None:
        day = f"{first.local:%Y-%m-%d}"
        yield Finding(schedule.id, Code.CLOCK_CHANGE, f"meets a change of the clocks on {day}: {first.remark}")


def _first_remark(trigger: Cron, days: Sequence[datetime]) -> Preview | None:
    if _fires_every_hour(trigger):
        return None  # every real hour, whatever the clocks show: none is left out, and none comes twice
    return next((remark for day in days for remark in dst_remarks(trigger, day, day + DAY)), None)


def _days_of_change(tz: str, now: datetime) -> list[datetime]:
    """Return the beginnings of the days, in the coming year, in which the clocks of *tz* change."""
    where, days = zone(tz), [now + number * DAY for number in range(_YEAR)]
    return [day for day in days if offset_at(where, day) != offset_at(where, day + DAY)]


def _about_the_crowd(schedules: Sequence[Schedule], now: datetime) -> Iterator[Finding]:
    # One that follows its job's end is where chance has led it.
    aligned = [one for one in schedules if not (one.definition.jitter or isinstance(one.definition.trigger, After))]
    if len(aligned) < CROWD:
        return
    load = heat(aligned, now)
    most = max(load.schedules)
    if most >= CROWD:
        when = _shown(load.begin + load.schedules.index(most) * _MINUTE)
        others = sum(number >= CROWD for number in load.schedules) - 1
        more = f", and {CROWD} or more in {counted(others, 'other minute')} of the week" if others else ""
        sentence = f"{most:,.0f} schedules without jitter fire at {when}{more}; give them jitter"
        yield Finding(None, Code.CROWDED, sentence)


class Minute(msgspec.Struct, frozen=True):
    """A minute, and what is to be expected of it: a tick with jitter counts for a part in each minute it may come."""

    at: datetime
    ticks: float
    schedules: float


class Heat(msgspec.Struct, frozen=True):
    """Ticks, and schedules that fire, in each minute of the week from *begin* on.

    When the budget ran out, `left_out` schedules were not counted.
    """

    begin: datetime
    ticks: Sequence[float]
    schedules: Sequence[float]
    left_out: int = 0

    def busiest(self, most: int) -> list[Minute]:
        """Return the *most* minutes with the most ticks, the first of equal ones first."""
        order = sorted(range(MINUTES), key=lambda number: -self.ticks[number])
        return [self._minute(number) for number in order[:most] if self.ticks[number]]

    def _minute(self, number: int) -> Minute:
        return Minute(self.begin + number * _MINUTE, self.ticks[number], self.schedules[number])


class _Times(msgspec.Struct, frozen=True):
    """What decides when a schedule fires; those that have it in common are looked at once."""

    trigger: Trigger
    jitter: timedelta
    start: datetime | None
    end: datetime | None


class _Stretch(msgspec.Struct, frozen=True):
    """Minutes with the same number of ticks each, and the share of a schedule that fires in each."""

    first: int
    last: int
    ticks: float
    share: float


def heat(schedules: Sequence[Schedule], now: datetime, budget: int = BUDGET) -> Heat:
    """Return when *schedules* fire in the coming week, those most alike first should the budget run out."""
    begin = now.astimezone(UTC).replace(second=0, microsecond=0)
    alike = Counter(_times(one.definition) for one in schedules if not (one.paused or one.ended))
    loads, left_out = (_Load(), _Load()), 0
    for times, count in alike.most_common():
        stretches = list(islice(_stretches(times, begin), budget + 1))
        if len(stretches) > budget:
            left_out += count
        else:
            for stretch in stretches:
                loads[0].add(stretch, count * stretch.ticks)
                loads[1].add(stretch, count * stretch.share)
        budget = max(0, budget - len(stretches))
    return Heat(begin, loads[0].by_minute(), loads[1].by_minute(), left_out)


class _Load:
    """A sum of stretches. Only their ends are noted, so a long one costs no more than a short one."""

    def __init__(self) -> None:
        self._steps = [0.0] * (MINUTES + 1)

    def add(self, stretch: _Stretch, amount: float) -> None:
        self._steps[stretch.first] += amount
        self._steps[min(MINUTES, stretch.last + 1)] -= amount

    def by_minute(self) -> list[float]:
        return [round(amount, 6) for amount in accumulate(self._steps[:MINUTES])]


def _times(definition: Definition) -> _Times:
    return _Times(definition.trigger, definition.jitter, definition.start, definition.end)


def _stretches(times: _Times, begin: datetime) -> Iterator[_Stretch]:
    start, last = max(begin, times.start or begin), begin + MINUTES * _MINUTE - MICROSECOND
    last = min(last, times.end or last)
    tick = times.trigger.next(start - MICROSECOND)
    if tick is None or tick > last:
        return
    rate = _even_rate(times.trigger)
    if rate is not None:
        yield _Stretch((tick - begin) // _MINUTE, (last - begin) // _MINUTE, rate, min(1.0, rate))
        return
    each, wide = _ticks_in_minute(times.trigger, tick), max(1, math.ceil(times.jitter / _MINUTE))
    while tick is not None and tick <= last:
        number = (tick - begin) // _MINUTE
        yield _Stretch(number, number + wide - 1, each / wide, 1 / wide)
        tick = times.trigger.next(begin + (number + 1) * _MINUTE - MICROSECOND)


def _even_rate(trigger: Trigger) -> float | None:
    """Return how many ticks *trigger* has in every minute, if these are alike. Jobs are taken to need no time."""
    if isinstance(trigger, After) or (isinstance(trigger, Every) and trigger.length <= _MINUTE):
        return _MINUTE / trigger.length
    if isinstance(trigger, Cron) and trigger.expression.split()[-5:] == ["*"] * 5:
        return _ticks_in_minute(trigger, EPOCH)
    return None


def _ticks_in_minute(trigger: Trigger, moment: datetime) -> int:
    """Return how many ticks are in the minute of *moment*. A cron expression has as many in each where it has any."""
    minute = moment.replace(second=0, microsecond=0)
    return sum(1 for _ in ticks(trigger, minute - MICROSECOND, minute + _MINUTE - MICROSECOND))


def _fires_every_hour(trigger: Cron) -> bool:
    fields = trigger.expression.lower().split()
    return fields[-4:-3] == ["*"] or fields == ["@hourly"]


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
