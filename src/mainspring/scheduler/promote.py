"""Promote: make jobs ready when their time has come, and end those that have expired."""

from __future__ import annotations

from datetime import timedelta

from mainspring.scheduler.sweep import sweep
from mainspring.store import Store
from mainspring.store.protocol import AHEAD


def promote(store: Store) -> float:
    """Promote what is due, end what has expired, and return the seconds until there may be more."""

    def look() -> timedelta | None:
        looks = store.promote(ahead=AHEAD).next_due, store.expire().next_due
        return min((look for look in looks if look is not None), default=None)

    return sweep("promote", look)
