"""Alert: raise the alarm when something that should have happened has not."""

from __future__ import annotations

import logging

from mainspring.errors import StoreError
from mainspring.store import Store

EVERY = 5.0
"""Seconds between looks, which cost one small query."""

log = logging.getLogger("mainspring.alerts")


def alert(store: Store) -> float:
    """Look once, and return the seconds until the next look. One node among all raises each alarm, once."""
    try:
        overdue = store.find_overdue()
    except StoreError as error:
        log.warning("can't look for what is overdue, trying on: %s", error)
        return EVERY
    for one in overdue:
        log.error(
            "schedule %s has had no success: one was expected by %s, %s after its tick",
            one.schedule,
            one.expected_by.isoformat(timespec="seconds"),
            one.within,
        )
    return EVERY
