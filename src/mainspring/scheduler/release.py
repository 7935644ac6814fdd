"""Release: let jobs go on that wait for a limit. It sleeps until there may be room, not for a fixed while."""

from __future__ import annotations

from mainspring.errors import StoreError
from mainspring.scheduler.log import log
from mainspring.store import Store

POLL = 5.0
"""Seconds after which to look in any case: a wake is a hint that may get lost."""

_PAUSE_AFTER_ERROR = 0.5


def release(store: Store) -> float:
    """Release what may go on, and return the seconds until there may be more."""
    try:
        next_due = store.release().next_due
    except StoreError as error:
        log.warning("can't release, trying on: %s", error)
        return _PAUSE_AFTER_ERROR
    return POLL if next_due is None else min(POLL, next_due.total_seconds())
