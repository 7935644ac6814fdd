"""When a cron expression fires, in a time zone.

An expression has five fields (minute, hour, day of the month, month, day of the week) or six, with the seconds first.
If both days are given, either will do; but if one of them begins with `*`, both must match, as in Debian's cron.

When the clocks change, its first fields decide, down to the hour:

*Times of day.* None of them begins with `*`: `30 2 * * *`, `0 0-23 * * *`, `0,30 1-3 * * *`. Each time that they name
comes once a day. One that the clocks skip comes right after the gap (several of them: once, together); one that happens
twice comes the first time only.

*Real time.* One of them begins with `*`: `0 * * * *`, `*/30 1-3 * * *`, `30 */2 * * *`. It fires whenever the clock on
the wall matches. What the clocks skip is not made up for, and what happens twice fires twice; so `0 * * * *` fires once
in every real hour (where clocks change by whole hours), and `0 0-23 * * *` leaves the repeated one out.

The reading of fields and days is cronsim's. Its way from one time to the next is not used: it steps hour by hour and
minute by minute, which is slow, and leaves ticks out where the clocks change at or by other than a whole hour.
"""

from __future__ import annotations

import calendar
import re
from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.text import shortened

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)

LAST_YEAR = 2199
"""No job is due later, so nothing fires later."""

_LONGEST = 200
_FIELDS = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of month": "1 to 31, L or LW",
    "month": "1 to 12 or jan to dec",
    "day of week": "0 to 7 or sun to sat, 5L or 5#3",
}
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_ODD = ("localtime", "Factory", "posix", "right/")
"""Beginnings of names that mean something else on each machine, or clocks that count leap seconds."""

_SOME_TIME = datetime(2000, 1, 1)  # noqa: DTZ001 - local times have no zone here
# Years of every length, beginning on every day of the week: a date that none of them has, no year has.
_ALL_KINDS_OF_YEARS = range(2000, 2028)


class Expression:
    """A cron expression that was read: the local times that it names."""

    def __init__(self, text: str) -> None:
        fields = _fields(text)
        self._days = _read(text, fields)
        self._hours = sorted(self._days.hours)
        self._minutes = sorted(self._days.minutes)
        self._seconds = sorted(self._days.seconds)
        self._earliest = time(self._hours[0], self._minutes[0], self._seconds[0])
        self.real_time = any(field[0].startswith("*") for field in fields[:-3])
        if self._first_day(_SOME_TIME.date(), _ALL_KINDS_OF_YEARS[-1]) is None:
            raise _never(text, fields, "no such day of the month is such a day of the week")

    @property
    def fields(self) -> CronSim:
        """What each of its fields names."""
        return self._days

    def first(self, local: datetime) -> datetime | None:
        """Return the first time at or after *local* that the expression names; both are without a zone."""
        today = local.date()
        day = self._first_day(today, LAST_YEAR)
        if day is None:
            return None
        if day > today:
            return datetime.combine(day, self._earliest)
        later = self._first_time(local.hour, local.minute, local.second)
        return datetime.combine(day, later) if later else self.first(datetime.combine(today + DAY, time()))

    def _first_day(self, day: date, last_year: int) -> date | None:
        months, matches = self._days.months, self._days.match_day
        while day.year <= last_year:
            if day.month not in months:
                day = day.replace(day=1) + timedelta(days=calendar.monthrange(day.year, day.month)[1])
            elif matches(day):
                return day
            else:
                day += DAY
        return None

    def _first_time(self, hour: int, minute: int, second: int) -> time | None:
        hours, minutes, seconds = self._hours, self._minutes, self._seconds
        at_hour = bisect_left(hours, hour)
        if at_hour < len(hours) and hours[at_hour] == hour:
            at_minute = bisect_left(minutes, minute)
            if at_minute < len(minutes) and minutes[at_minute] == minute:
                at_second = bisect_left(seconds, second)
                if at_second < len(seconds):
                    return time(hour, minute, seconds[at_second])
                at_minute += 1
            if at_minute < len(minutes):
                return time(hour, minutes[at_minute], seconds[0])
            at_hour += 1
        return time(hours[at_hour], minutes[0], seconds[0]) if at_hour < len(hours) else None


@lru_cache(maxsize=4_096)  # to read one takes longer than to find its next time
def expression(text: str) -> Expression:
    """Return what *text* means; refuse what means nothing or never comes."""
    return Expression(text)


@lru_cache(maxsize=1_000)  # ZoneInfo itself keeps few, and reads the others from disk again
def zone(name: str) -> tzinfo:
    """Return the time zone of that name."""
    if name == "UTC":
        return UTC  # known even where no zones are installed
    try:
        found = ZoneInfo(name) if name and not name.startswith(_ODD) else None
    except (LookupError, ValueError, OSError):
        found = None
    if found is None:
        known = zones()
        hint = did_you_mean(name, known) if known else "; none are installed here: pip install tzdata"
        raise InvalidValue(
            f"expected tz to be the name of a time zone such as 'Europe/Berlin', got: {shortened(name)}{hint}"
        )
    return found


@lru_cache(maxsize=1)  # to look for them takes longer than anything else here
def zones() -> frozenset[str]:
    """Return the names of the time zones that are known here."""
    return frozenset(zone for zone in available_timezones() if not zone.startswith(_ODD))


def next_tick(expression: Expression, zone: tzinfo, after: datetime) -> datetime | None:
    """Return when *expression* fires first after *after*, in UTC as that is."""
    find = _in_real_time if expression.real_time else _by_the_day
    return find(expression, zone, after.replace(microsecond=0))


def first_change(zone: tzinfo, start: datetime, end: datetime) -> datetime:
    """Return when the clocks change between *start* and *end*, whole seconds in UTC at which they do differ.

    Not one zone has changed its clocks twice within three days, or by more than a day.
    """
    offset = offset_at(zone, start)
    low, high = 0, (end - start) // SECOND
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_at(zone, start + middle * SECOND) == offset else (low, middle)
    return start + high * SECOND


def offset_at(zone: tzinfo, instant: datetime) -> timedelta:
    """Return how far the clocks of *zone* are ahead of UTC at *instant*."""
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def offsets_of(zone: tzinfo, local: datetime) -> tuple[timedelta, timedelta]:
    """Return how far the clocks are ahead of UTC when they show *local* the first and the last time.

    The first is larger if they show it twice. It is smaller if they never do: then these are before and after the gap.
    """
    first = zone.utcoffset(local.replace(tzinfo=zone, fold=0))
    last = zone.utcoffset(local.replace(tzinfo=zone, fold=1))
    assert first is not None
    assert last is not None
    return first, last


def _in_real_time(expression: Expression, zone: tzinfo, after: datetime) -> datetime | None:
    start = after + SECOND
    while True:
        offset = offset_at(zone, start)
        local = expression.first(start.replace(tzinfo=None) + offset)
        if local is None:
            return None
        tick = (local - offset).replace(tzinfo=UTC)
        # Clocks that are set back within a day may show what matches before they come to `local`. Those that are set
        # back later can't: they are not set back by more than a day.
        end = min(tick, start + DAY)
        if offset_at(zone, end) != offset:
            start = first_change(zone, start, end)
        elif end == tick:
            return tick
        else:
            start = max(end, tick - 2 * DAY)


def _by_the_day(expression: Expression, zone: tzinfo, after: datetime) -> datetime | None:
    here = after.astimezone(zone)
    local = here.replace(tzinfo=None, fold=0)
    due = local + SECOND  # on the clock as it was: it may jump, and what it jumps over is due as well
    if here.fold:
        first, last = offsets_of(zone, local)
        change = first_change(zone, after - (first - last), after)
        due = change.replace(tzinfo=None) + first  # all before that has had its turn
    named = expression.first(due)
    if named is None:
        return None
    first, last = offsets_of(zone, named)
    tick = (named - first).replace(tzinfo=UTC)
    return first_change(zone, (named - last).replace(tzinfo=UTC), tick) if first < last else tick


_Fields = list[tuple[str, int]]
"""Fields, each with its column."""


def _fields(text: str) -> _Fields:
    if len(text) > _LONGEST:
        raise InvalidValue(f"expected a cron expression of at most {_LONGEST} characters, got {len(text)}")
    if odd := re.search(r"[^ -~]", text):
        raise InvalidValue(
            f"expected a cron expression of plain ASCII characters, got: {shortened(text)} (column {odd.start() + 1})"
        )
    name = text.strip()
    if name.startswith("@"):
        if name.lower() not in _ALIASES:
            hint = did_you_mean(name.lower(), _ALIASES) or f"; known are {', '.join(_ALIASES)}"
            raise InvalidValue(f'no cron expression is named "{name}"{hint}')
        text = _ALIASES[name.lower()]
    fields = [(field[0], field.start() + 1) for field in re.finditer(r"[^ ]+", text)]
    if len(fields) not in (5, 6):
        raise InvalidValue(
            f"expected a cron expression of 5 fields ({', '.join([*_FIELDS][1:])}), or of 6 with the second first, "
            f'got {len(fields)}: "{text}"'
        )
    return fields


def _read(text: str, fields: _Fields) -> CronSim:
    try:
        return _cronsim([word for word, _ in fields])
    except CronSimError:
        raise _fault(text, fields) from None


def _fault(text: str, fields: _Fields) -> InvalidValue:
    """Return what is wrong with *fields*: one of them by itself, or else the day, which none of the months has."""
    for place, (word, column) in enumerate(fields):
        alone = ["*"] * len(fields)
        alone[place] = word
        try:
            _cronsim(alone)
        except CronSimError:
            why = _what_is_wrong(word, [*_FIELDS][place - len(fields)])
            return InvalidValue(f'expected a cron expression, got "{text}": {why} (column {column})')
    day, month = fields[-3][0], fields[-2][0]
    months = " or ".join(calendar.month_name[number] for number in sorted(_cronsim([*"***", month, "*"]).months))
    return _never(text, fields, f"no {months} has a day {min(_cronsim([*'**', day, *'**']).days)}")


def _cronsim(words: list[str]) -> CronSim:
    return CronSim(" ".join(words), _SOME_TIME)


def _what_is_wrong(word: str, name: str) -> str:
    if re.search(r"/0+(,|$)", word):
        return f'"{word}" has a step of 0'
    return f'"{word}" is no {name}, which is {_FIELDS[name]}, or lists (,), upward ranges (-) and steps (/) of these'


def _never(text: str, fields: _Fields, why: str) -> InvalidValue:
    return InvalidValue(f'expected a cron expression that can fire, got "{text}": {why} (column {fields[-3][1]})')
