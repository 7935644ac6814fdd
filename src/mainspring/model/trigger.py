"""What makes a schedule fire, as values that can be stored and compared."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import force_setattr

from mainspring.errors import InvalidValue
from mainspring.model.cron import LAST_YEAR, expression, next_tick, zone
from mainspring.model.duration import Duration, duration
from mainspring.model.text import shortened

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)
_MOMENT = timedelta(microseconds=1)
_SHORTEST = timedelta(milliseconds=100)
"""Below that, a schedule would keep the scheduler and the database busy with little else."""


class At(msgspec.Struct, frozen=True, tag="at", tag_field="kind"):
    """Once, at an instant."""

    when: datetime

    def __post_init__(self) -> None:
        force_setattr(self, "when", _instant(self.when, "when"))

    def next(self, after: datetime) -> datetime | None:
        """Return the instant, if it is later than *after*."""
        return self.when if self.when > utc(after) else None

    def __str__(self) -> str:
        return f"at {self.when}"


class Cron(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    """Whenever a cron expression matches the clocks of a time zone; `model/cron.py` has the rules."""

    expression: str
    tz: str = "UTC"

    def check(self) -> None:
        """Refuse what never fires, and a zone that is not known here.

        Not done whenever one is made: another node may have stored it that knows more zones, and to look at it must
        not fail.
        """
        if not isinstance(self.expression, str):
            raise InvalidValue(
                f"expected a cron expression such as '0 9 * * mon-fri', got: {shortened(self.expression)}"
            )
        if not isinstance(self.tz, str):
            raise InvalidValue(
                f"expected tz to be the name of a time zone such as 'Europe/Berlin', got: {shortened(self.tz)}"
            )
        expression(self.expression)
        zone(self.tz)

    def next(self, after: datetime) -> datetime | None:
        """Return the first tick later than *after*."""
        return _within_reach(next_tick(expression(self.expression), zone(self.tz), utc(after)))

    def __str__(self) -> str:
        return f"cron {self.expression} ({self.tz})"


class Every(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    """At a fixed rate in real time, counted from a start so that every node finds the same ticks."""

    length: timedelta
    start: datetime | None = None

    def __post_init__(self) -> None:
        _check_length(self.length, "every")
        if self.start is not None:
            force_setattr(self, "start", _instant(self.start, "start"))

    def next(self, after: datetime) -> datetime | None:
        """Return the first tick later than *after*."""
        return _within_reach((self.start or _EPOCH) + self.past(after) * self.length)

    def past(self, until: datetime) -> int:
        """Return how many ticks there are until then, that instant included."""
        return max(0, (utc(until) - (self.start or _EPOCH)) // self.length + 1)

    def __str__(self) -> str:
        return f"every {_written(self.length)}" + (f" from {self.start}" if self.start else "")


class After(msgspec.Struct, frozen=True, tag="after", tag_field="kind"):
    """A fixed delay after the previous job has ended: each tick depends on the one before."""

    length: timedelta

    def __post_init__(self) -> None:
        _check_length(self.length, "after")

    def next(self, after: datetime) -> datetime | None:
        """Return the tick that follows a job which ended at *after*."""
        return _within_reach(utc(after) + self.length)

    def __str__(self) -> str:
        return f"{_written(self.length)} after the last job ended"


Trigger = At | Cron | Every | After

_decoder: msgspec.json.Decoder[Trigger] = msgspec.json.Decoder(Trigger)


def at(when: datetime) -> At:
    """Fire once, at *when*."""
    return At(when)


def cron(expression: str, tz: str | ZoneInfo = "UTC") -> Cron:
    """Fire when the clocks of *tz* match *expression*: `0 9 * * mon-fri`, or `@daily`, or with the seconds first."""
    trigger = Cron(expression, tz.key if isinstance(tz, ZoneInfo) else tz)
    trigger.check()
    return trigger


def every(length: Duration, start: datetime | None = None) -> Every:
    """Fire at *start* and every *length* after it; without a start, at multiples of *length* since 1970 in UTC."""
    return Every(duration(length, "every"), start)


def after(length: Duration) -> After:
    """Fire *length* after the previous job has ended."""
    return After(duration(length, "after"))


def ticks(trigger: Trigger, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the ticks in (*after*, *until*], of After the only one that can be told."""
    tick = trigger.next(after)
    while tick is not None and tick <= until:
        yield tick
        tick = None if isinstance(trigger, After) else trigger.next(tick)


def count_ticks(trigger: Trigger, after: datetime, until: datetime, most: int) -> int | None:
    """Return how many ticks lie in (*after*, *until*]; None if they can only be counted and are more than *most*."""
    if isinstance(trigger, Every):
        return trigger.past(until) - trigger.past(after)
    count = sum(1 for _ in islice(ticks(trigger, after, until), most + 1))
    return count if count <= most else None


def last_ticks(trigger: Trigger, after: datetime, until: datetime, most: int) -> list[datetime]:
    """Return the last *most* ticks in (*after*, *until*].

    They are looked for backwards in windows, each twice as long as the one before, so that years of a schedule of
    every second cost no more than its last minute. A window that turns out to be crowded, because the ticks come in
    bursts, is left for a shorter one.
    """
    if isinstance(trigger, After):
        return list(ticks(trigger, after, until))[:most]
    found: list[datetime] = []
    after, end, length = utc(after), utc(until), _SHORTEST
    while len(found) < most and end > after:
        start = max(after, end - length)
        window = list(islice(ticks(trigger, start, end), 2 * most + 1))
        if len(window) > 2 * most:
            length /= 16
            continue
        found = window + found
        end, length = start, 2 * length
    return found[-most:] if most else []


def utc(moment: datetime) -> datetime:
    """Return *moment* in UTC; as nothing fires outside of our years, any moment there is as good as their ends."""
    return min(max(_aware(moment, "the moment"), _EPOCH - _MOMENT), _END).astimezone(UTC)


def _instant(moment: datetime, name: str) -> datetime:
    if not _EPOCH <= _aware(moment, name) < _END:
        raise InvalidValue(f"expected {name} to lie between 1970 and {LAST_YEAR + 1}, got: {moment!r}")
    return moment.astimezone(UTC)


def _aware(moment: datetime, name: str) -> datetime:
    if not isinstance(moment, datetime):
        raise InvalidValue(f"expected {name} to be a datetime with a time zone, got: {shortened(moment)}")
    if moment.tzinfo is None:
        raise InvalidValue(f"expected {name} to have a time zone, got the naive datetime {moment!r}")
    return moment


def _check_length(length: timedelta, name: str) -> None:
    if duration(length, name) < _SHORTEST:
        raise InvalidValue(f"expected {name} to be at least 0.1 s, got: {_written(length)}")


def _within_reach(tick: datetime | None) -> datetime | None:
    return tick if tick is not None and tick < _END else None


def _written(length: timedelta) -> str:
    minutes, seconds = divmod(length, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    whole = "".join(f"{number}{unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if number)
    return whole + (f"{seconds.total_seconds():.6f}".rstrip("0").rstrip(".") + "s" if seconds or not whole else "")
