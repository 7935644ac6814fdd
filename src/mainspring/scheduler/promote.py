"""Promote: make jobs ready when their time has come, and end those that have expired.

It sleeps until then, not for a fixed while.
"""

from __future__ import annotations

from mainspring.errors import StoreError
from mainspring.scheduler.log import log
from mainspring.store import Store
from mainspring.store.protocol import AHEAD

POLL = 5.0
"""Seconds after which to look in any case: a wake is a hint that may get lost."""

_PAUSE_AFTER_ERROR = 0.5


def promote(store: Store) -> float:
    """Promote what is due, end what has expired, and return the seconds until there may be more."""
    try:
        looks = store.promote(ahead=AHEAD).next_due, store.expire().next_due
    except StoreError as error:
        log.warning("can't promote, trying on: %s", error)
        return _PAUSE_AFTER_ERROR
    return min([POLL, *(look.total_seconds() for look in looks if look is not None)])
