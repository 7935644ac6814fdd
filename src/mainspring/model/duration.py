"""Lengths of time as people write them."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, tzinfo

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

Duration = timedelta | int | float | str

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])\s*")
LONGEST = timedelta(days=36_525)


def duration(value: Duration, name: str = "duration") -> timedelta:
    """Return *value* as a timedelta: a timedelta, a number of seconds, or text such as `10m` or `1h30m`."""
    length = _read(value)
    if length is None:
        raise InvalidValue(f"expected {name} to be a duration such as '90s' or '1h30m', got: {shortened(value)}")
    if not timedelta(0) <= length <= LONGEST:
        raise InvalidValue(f"expected {name} to be between 0 and 100 years, got: {shortened(value)}")
    return length


def instant_or_ago(text: str, name: str, zone: tzinfo | None = None) -> datetime | timedelta:
    """Return the instant that *text* says, or how long ago it was; one without a time zone is of *zone*, or refused."""
    if _text(text) is not None:
        return duration(text, name)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(
            f"expected {name} to be an instant like 2026-11-18T09:00Z, or a length of time like 90m for how long ago "
            f"that was, got: {shortened(text)}"
        ) from None
    if moment.tzinfo is None and zone is None:
        raise InvalidValue(f"expected {name} to have a time zone, like 2026-11-18T09:00Z, got: {shortened(text)}")
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def spelled(length: timedelta) -> str:
    """Return *length* as `duration` reads it, the same for equal lengths: `3d`, `1h30m`, `0.25s`."""
    minutes, rest = divmod(length, _UNITS["m"])
    days, minutes = divmod(minutes, 24 * 60)
    seconds = f"{rest.total_seconds():f}".rstrip("0").rstrip(".")
    parts = [(days, "d"), (minutes // 60, "h"), (minutes % 60, "m"), (seconds if seconds != "0" else 0, "s")]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def _read(value: Duration) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _seconds(value)
    return _text(value) if isinstance(value, str) else None


def _seconds(value: float) -> timedelta | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # Clamped before it becomes a timedelta, which would overflow; the caller refuses what is out of range.
    beyond = LONGEST.total_seconds() + 1
    return timedelta(seconds=max(-1.0, min(beyond, value)))


def _text(value: str) -> timedelta | None:
    text = value.strip()
    if not text:
        return None
    total, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        total += float(part[1]) * _UNITS[part[2]].total_seconds()
        position = part.end()
    return _seconds(total)
