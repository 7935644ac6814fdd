"""Lint: what is wrong or odd about schedules. Nothing here looks at a database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache

import msgspec

from mainspring.errors import did_you_mean
from mainspring.heat import MINUTE, heat
from mainspring.model.cron import DAY, offset_at, zone
from mainspring.model.preview import Preview, dst_remarks
from mainspring.model.schedule import Schedule
from mainspring.model.text import counted
from mainspring.model.trigger import After, Cron

LONG_PAUSE = timedelta(days=30)
CROWD = 100
"""Schedules on one minute that are worth spreading."""

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
        when = _shown(load.begin + load.schedules.index(most) * MINUTE)
        others = sum(number >= CROWD for number in load.schedules) - 1
        more = f", and {CROWD} or more in {counted(others, 'other minute')} of the week" if others else ""
        sentence = f"{most:,.0f} schedules without jitter fire at {when}{more}; give them jitter"
        yield Finding(None, Code.CROWDED, sentence)


def _fires_every_hour(trigger: Cron) -> bool:
    fields = trigger.expression.lower().split()
    return fields[-4:-3] == ["*"] or fields == ["@hourly"]


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
