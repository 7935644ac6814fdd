"""Fire: make jobs of the ticks of schedules. It sleeps until the next is due, not for a fixed while."""

from __future__ import annotations

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.errors import StoreError
from mainspring.model.ids import IdSource
from mainspring.scheduler.log import log
from mainspring.service import node_name
from mainspring.store import Store

POLL = 5.0
"""Seconds after which to look in any case: a wake is a hint that may get lost."""

_PAUSE_AFTER_ERROR = 0.5


class Firer:
    """Fires for one node; any number may do so at the same time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._node = node_name()
        clock = SystemClock()
        self._ids = IdSource(lambda: microseconds(clock.now()) // 1000, random_bits)

    def __call__(self) -> float:
        """Fire what is due, and return the seconds until there may be more."""
        try:
            fired = self._store.fire(self._node, self._ids.many)
        except StoreError as error:
            log.warning("can't fire, trying on: %s", error)
            return _PAUSE_AFTER_ERROR
        for schedule, why in fired.failed.items():
            log.error("can't fire schedule %s, trying again in a minute: %s", schedule, why)
        return POLL if fired.next_due is None else min(POLL, fired.next_due.total_seconds())
