"""What sweeps have in common that sleep until there may be more to do, not for a fixed while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from mainspring.errors import StoreError
from mainspring.scheduler.log import log

POLL = 5.0
"""Seconds after which to look in any case: a wake is a hint that may get lost."""

_PAUSE_AFTER_ERROR = 0.5


def sweep(name: str, look: Callable[[], timedelta | None]) -> float:
    """Call *look*, which does what is due and says how long until there is more, and return the seconds to sleep."""
    try:
        next_due = look()
    except StoreError as error:
        log.warning("can't %s, trying on: %s", name, error)
        return _PAUSE_AFTER_ERROR
    return POLL if next_due is None else min(POLL, next_due.total_seconds())
