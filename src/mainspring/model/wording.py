"""When a trigger fires, in words, and instants by the clocks that it goes by."""

from __future__ import annotations

import calendar
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import product

from cronsim import CronSim

from mainspring.model.cron import expression, zone
from mainspring.model.text import counted
from mainspring.model.trigger import After, At, Cron, Every, Trigger

_MOST_TIMES = 6
"""Times of a day that are named one by one."""

_NTH = ("first", "second", "third", "fourth", "fifth")
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def in_words(trigger: Trigger) -> str:
    """Return when *trigger* fires: `at 09:00 from Monday to Friday (Europe/Berlin)`."""
    match trigger:
        case Cron():
            return f"{cron_words(trigger.expression)} ({trigger.tz})"
        case Every():
            start = f", counted from {instant(trigger.start, UTC)}" if trigger.start else ""
            length = _length(trigger.length)
            return f"every {length.removeprefix('1 ') if length.count(' ') == 1 else length}{start}"
        case After():
            return f"{_length(trigger.length)} after its last job has ended"
        case At():
            return f"once, {instant(trigger.when, UTC)}"


def zone_of(trigger: Trigger) -> tzinfo:
    """Return the time zone whose clocks *trigger* goes by."""
    return zone(trigger.tz) if isinstance(trigger, Cron) else UTC


def instant(moment: datetime, where: tzinfo) -> str:
    """Return *moment* by the clocks of *where*, with its day of the week: `Fri 2026-07-17 09:00 CEST`."""
    return f"{moment.astimezone(where):%a %Y-%m-%d} {clock_time(moment, where)}"


def clock_time(moment: datetime, where: tzinfo) -> str:
    local = moment.astimezone(where)
    return f"{local:%H:%M:%S %Z}" if local.second else f"{local:%H:%M %Z}"


def cron_words(text: str) -> str:
    """Return what a cron expression means. It is told from what its fields name, not from how they are written."""
    fields = expression(text).fields
    times, by_name = _times(fields)
    days, months = _days(fields), _months(fields.months)
    if by_name and not days:
        days = " every day"
    return f"{times}{days}{months}"


def _times(fields: CronSim) -> tuple[str, bool]:
    """Return the times of a day, and whether they are named one by one."""
    seconds, minutes, hours = sorted(fields.seconds), sorted(fields.minutes), sorted(fields.hours)
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        named = [_time(hour, minute, second) for hour, minute, second in product(hours, minutes, seconds)]
        return f"at {_listed(named)}", True
    if seconds == [0]:
        return f"{_minutes(minutes, hours)}{_hours(hours, minutes)}", False
    first = _each(seconds, "second", 60) or f"at {_numbers(seconds, 'second')}"
    if len(minutes) == 60:
        rest = "" if first.startswith("every") else " of every minute"
    else:
        rest = f" of {_numbers(minutes, 'minute')}"
    return f"{first}{rest}{_hours(hours, list(range(60)))}", False


def _minutes(minutes: Sequence[int], hours: Sequence[int]) -> str:
    if len(minutes) > 1:
        whole = " of every hour" if len(hours) == 24 else ""
        return _each(minutes, "minute", 60) or f"at {_numbers(minutes, 'minute')}{whole}"
    around = _each(hours, "hour", 24)
    if _is_run(hours) and not around:
        return "every hour"  # `_hours` says from when to when, to the minute
    return around if around and minutes == [0] else f"{around} at minute {minutes[0]}".strip()


def _hours(hours: Sequence[int], minutes: Sequence[int]) -> str:
    if len(hours) == 24 or (len(minutes) == 1 and _each(hours, "hour", 24)):
        return ""
    if _is_run(hours):
        return f" from {_time(hours[0], minutes[0])} to {_time(hours[-1], minutes[-1])}"
    return f" of {_numbers(hours, 'hour')}"


def _days(fields: CronSim) -> str:
    of_month, of_week = set(fields.days), {day if isinstance(day, tuple) else day % 7 for day in fields.weekdays}
    all_dates, all_weekdays = len(of_month & set(range(1, 32))) == 31, set(range(7)) <= of_week
    if (all_dates and all_weekdays) or (not fields.day_and and (all_dates or all_weekdays)):
        return ""
    if all_weekdays:
        return f" on {_dates(of_month)} of the month"
    if all_dates:
        return f" {_weekdays(of_week)}"
    link = ", but only" if fields.day_and else ", and"
    return f" on {_dates(of_month)} of the month{link} {_weekdays(of_week)}"


def _dates(days: Collection[int]) -> str:
    numbers = sorted(day for day in days if day > 0)
    named = [_numbers(numbers, "day")] if numbers else []
    named += ["the last day"] if CronSim.LAST in days else []
    named += ["the last weekday"] if CronSim.LAST_WEEKDAY in days else []
    return _listed(named)


def _weekdays(days: Collection[int | tuple[int, int]]) -> str:
    # The week begins with Monday here, as people say `Saturday and Sunday`.
    whole = sorted({(day - 1) % 7 for day in days if isinstance(day, int)})
    named = [calendar.day_name[day] for day in whole]
    if len(whole) > 2 and _is_run(whole):
        named = [f"{named[0]} to {named[-1]}"]
    within = "on " if len(named) != 1 or " to " not in named[0] else "from "
    for day, number in sorted(one for one in days if isinstance(one, tuple)):
        which = "last" if number == CronSim.LAST else _NTH[number - 1]
        named.append(f"the {which} {calendar.day_name[(day - 1) % 7]} of the month")
    return f"{within}{_listed(named)}"


def _months(months: Collection[int]) -> str:
    if len(months) == 12:
        return ""
    ordered = sorted(months)
    names = [calendar.month_name[month] for month in ordered]
    return f", {names[0]} to {names[-1]}" if len(names) > 2 and _is_run(ordered) else f", in {_listed(names)}"


def _each(numbers: Sequence[int], unit: str, whole: int) -> str:
    """Return `every 5 minutes` if *numbers* are such, all around the clock; else nothing."""
    if len(numbers) == whole:
        return f"every {unit}"
    step = numbers[1] - numbers[0] if len(numbers) > 1 else whole
    around = whole % step == 0 and list(numbers) == list(range(0, whole, step))
    return f"every {step} {unit}s" if around and len(numbers) > 1 else ""


def _numbers(numbers: Sequence[int], unit: str) -> str:
    if len(numbers) == 1:
        return f"{unit} {numbers[0]}"
    if len(numbers) > 2 and _is_run(numbers):
        return f"{unit}s {numbers[0]} to {numbers[-1]}"
    return f"{unit}s {_listed([str(number) for number in numbers])}"


def _is_run(numbers: Sequence[int]) -> bool:
    return list(numbers) == list(range(numbers[0], numbers[-1] + 1))


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _time(hour: int, minute: int, second: int = 0) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if second else f"{hour:02}:{minute:02}"


def _length(length: timedelta) -> str:
    rest, parts = length.total_seconds(), []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        parts += [counted(int(count), unit)] if count else []
    if rest or not parts:
        shown = f"{rest:.6f}".rstrip("0").rstrip(".")
        parts.append(f"{shown} second" if shown == "1" else f"{shown} seconds")
    return " ".join(parts)
