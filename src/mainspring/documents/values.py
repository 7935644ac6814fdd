"""Values as documents have them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from mainspring.model.duration import duration, spelled

Told = Mapping[str, Any]
T = TypeVar("T")


def read(told: object, kind: type[T]) -> T:
    """Return what was *told* as a *kind* that has the same names."""
    return msgspec.convert(told, kind, strict=False)


def instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def length(said: timedelta | None) -> str | None:
    """Return a length of time that somebody has set as it is set: what was measured is a number of seconds."""
    return None if said is None else spelled(said)


def seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def length_of(told: str | None) -> timedelta | None:
    """Return the length of time that `length` has told."""
    return None if told is None else duration(told)


def seconds_of(told: float | None) -> timedelta | None:
    """Return the length of time that `seconds` has told."""
    return None if told is None else timedelta(seconds=told)


def plain(text: str | None) -> Any:
    """Return the value that is stored as the JSON *text*."""
    return None if text is None else msgspec.json.decode(text)


def stored(value: Any) -> str | None:
    """Return *value* as the JSON text that `plain` was told of."""
    return None if value is None else msgspec.json.encode(value).decode()
