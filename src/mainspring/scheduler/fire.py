"""Fire: make jobs of the ticks of schedules."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.model.ids import IdSource
from mainspring.scheduler.log import log
from mainspring.scheduler.sweep import sweep
from mainspring.service import node_name
from mainspring.store import Store


class Firer:
    """Fires for one node; any number may do so at the same time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._node = node_name()
        clock = SystemClock()
        self._ids = IdSource(lambda: microseconds(clock.now()) // 1000, random_bits)

    def __call__(self) -> float:
        """Fire what is due, and return the seconds until there may be more."""
        return sweep("fire", self._fire)

    def _fire(self) -> timedelta | None:
        fired = self._store.fire(self._node, self._ids.many)
        for schedule, why in fired.failed.items():
            log.error("can't fire schedule %s, trying again in a minute: %s", schedule, why)
        return fired.next_due
