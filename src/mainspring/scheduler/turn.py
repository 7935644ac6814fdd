"""A turn of a sweep that sleeps until there may be more to do, not for a fixed while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from mainspring.errors import StoreError
from mainspring.scheduler.log import log

POLL = 5.0
"""Seconds after which to look in any case: a wake is a hint that may get lost."""

_PAUSE_AFTER_ERROR = 0.5


def turn(name: str, sweep: Callable[[], timedelta | None]) -> float:
    """Call *sweep*, which returns how long until it is due again, and return the seconds to sleep."""
    try:
        next_due = sweep()
    except StoreError as error:
        log.warning("can't %s, trying on: %s", name, error)
        return _PAUSE_AFTER_ERROR
    return POLL if next_due is None else min(POLL, next_due.total_seconds())
