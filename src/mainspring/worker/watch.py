"""Watch: ends attempts whose time is up, and all of them when the lease is."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from mainspring.clock import Clock
from mainspring.errors import TimeExpired
from mainspring.service import Loop
from mainspring.worker.execute import expiry
from mainspring.worker.held import Held, about
from mainspring.worker.session import WorkerSession

GRACE = 5.0
"""Seconds that an attempt has to end after it was told to, before the worker stops waiting for it."""

_AGAIN = 0.01
"""Seconds until such an attempt is told again: it may be where it can't be interrupted, and we wait for nobody here."""

log = logging.getLogger("mainspring.worker")


class Watch:
    """Looks only at attempts that run now and have a timeout, so it costs nothing where there is none."""

    def __init__(self, clock: Clock, session: WorkerSession, abandon: Callable[[Held], None]) -> None:
        self._clock = clock
        self._session = session
        self._abandon = abandon
        self._watched: dict[Held, _Watched] = {}
        self._next = math.inf
        self.loop = Loop("watch", self._look)

    def begin(self, held: Held) -> None:
        """Watch an attempt that begins now."""
        assert held.task.timeout is not None
        due = self._clock.steady() + held.task.timeout.total_seconds()
        self._watched[held] = _Watched(due)
        if due < self._next:
            self.loop.wake()

    def end(self, held: Held) -> None:
        self._watched.pop(held, None)

    def _look(self) -> float:
        # Later than any, while we look for the soonest: an attempt that begins meanwhile wakes us again.
        self._next = math.inf
        lease_until = self._session.until
        now = self._clock.steady()
        if 0 < lease_until <= now:
            self._session.expire(lease_until)
            lease_until = self._session.until
        for held, watched in list(self._watched.items()):
            if watched.due <= now:
                self._expire(held, watched, now)
        self._next = min([lease_until or math.inf, *(watched.due for watched in list(self._watched.values()))])
        return max(0.0, self._next - self._clock.steady())

    def _expire(self, held: Held, watched: _Watched, now: float) -> None:
        if watched.stop is None:
            watched.stop, watched.until, watched.due = expiry(held.task), now + GRACE, now + _AGAIN
            held.end(watched.stop)
        elif now < watched.until:
            watched.due = now + _AGAIN
            interrupt = held.interrupt  # read once: the attempt may end meanwhile
            if interrupt is not None:
                interrupt(watched.stop)
        elif self._watched.pop(held, None) is not None:  # or else it has ended just now
            self._abandon(held)
            told = "job %s did not end when its time was up; its worker waits no longer"
            log.error(told, held.job.id, extra=about(held.job))


class _Watched:
    """When to look at an attempt next; once its time is up, what it was told and until when it may end."""

    __slots__ = ("due", "stop", "until")

    def __init__(self, due: float) -> None:
        self.due = due
        self.stop: TimeExpired | None = None
        self.until = math.inf
