"""Values as documents have them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from mainspring.model.duration import spelled


def instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def length(said: timedelta | None) -> str | None:
    """Return a length of time that somebody has set as it is set: what was measured is a number of seconds."""
    return None if said is None else spelled(said)


def seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def plain(text: str | None) -> Any:
    """Return the value that is stored as the JSON *text*."""
    return None if text is None else msgspec.json.decode(text)
