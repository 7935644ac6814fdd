"""Promote: make jobs ready when their time has come. It sleeps until then, not for a fixed while."""

from __future__ import annotations

from mainspring.errors import StoreError
from mainspring.scheduler.log import log
from mainspring.store import Store
from mainspring.store.protocol import AHEAD

POLL = 5.0
"""Seconds after which to look in any case: a wake is a hint that may get lost."""

_PAUSE_AFTER_ERROR = 0.5


def promote(store: Store) -> float:
    """Promote what is due, and return the seconds until there may be more."""
    try:
        next_due = store.promote(ahead=AHEAD).next_due
    except StoreError as error:
        log.warning("can't promote, trying on: %s", error)
        return _PAUSE_AFTER_ERROR
    return POLL if next_due is None else min(POLL, next_due.total_seconds())
