"""Watch: ends attempts whose time is up, and all of them when the lease is."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from mainspring.clock import Clock
from mainspring.errors import TimeExpired
from mainspring.service import Loop
from mainspring.worker.held import Held
from mainspring.worker.session import WorkerSession

GRACE = 5.0
"""Seconds that an attempt has to end after it was told to, before the worker stops waiting for it."""

log = logging.getLogger("mainspring.worker")


class Watch:
    """Looks only at attempts that run now and have a timeout, so it costs nothing where there is none."""

    def __init__(self, clock: Clock, session: WorkerSession, abandon: Callable[[Held], None]) -> None:
        self._clock = clock
        self._session = session
        self._abandon = abandon
        self._due: dict[Held, float] = {}
        self._told: set[Held] = set()
        self._next = math.inf
        self.loop = Loop("watch", self._look)

    def begin(self, held: Held) -> None:
        """Watch an attempt that begins now."""
        assert held.task.timeout is not None
        due = self._clock.steady() + held.task.timeout.total_seconds()
        self._due[held] = due
        if due < self._next:
            self.loop.wake()

    def end(self, held: Held) -> None:
        self._due.pop(held, None)
        self._told.discard(held)

    def _look(self) -> float:
        # Later than any, while we look for the soonest: an attempt that begins meanwhile wakes us again.
        self._next = math.inf
        lease_until = self._session.until
        now = self._clock.steady()
        if 0 < lease_until <= now:
            self._session.lose("the database could not be reached in time")
            lease_until = 0
        for held, due in list(self._due.items()):
            if due <= now:
                self._expire(held, now)
        self._next = min([lease_until or math.inf, *list(self._due.values())])
        return max(0.0, self._next - self._clock.steady())

    def _expire(self, held: Held, now: float) -> None:
        assert held.task.timeout is not None
        if held in self._told:
            self.end(held)
            log.error("job %s did not end when its time was up; its worker waits no longer", held.job.id)
            self._abandon(held)
            return
        self._told.add(held)
        self._due[held] = now + GRACE
        held.end(TimeExpired(f"the attempt took longer than its timeout of {held.task.timeout.total_seconds():g} s"))
