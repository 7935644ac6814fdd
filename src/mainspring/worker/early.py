"""Early: jobs that were claimed a moment ahead of their time, so that they start on the dot."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from mainspring.clock import Clock
from mainspring.service import Loop
from mainspring.store.protocol import AHEAD
from mainspring.worker.held import Held


class Early:
    """Keeps what was claimed ahead, on a thread of its own: the one that claims may be waiting for the database."""

    def __init__(self, clock: Clock, start: Callable[[list[Held]], None]) -> None:
        self._clock = clock
        self._start = start
        self._lock = threading.Lock()
        self._waiting: list[tuple[float, int, Held]] = []
        self._numbers = itertools.count()
        self.loop = Loop("early", self._start_due)

    def __len__(self) -> int:
        return len(self._waiting)

    def keep(self, taken: list[Held]) -> list[Held]:
        """Return what is due of *taken*, and start the rest when it is.

        What seems to be due later than anything is promoted has been due already, before the clock was set back.
        """
        early = [held for held in taken if held.job.run_at > _claimed_at(held) and _wait(held) <= AHEAD]
        if not early:
            return taken
        now = self._clock.steady()  # after the reply, so that none starts before its time, however long that took
        with self._lock:
            for held in early:
                heapq.heappush(self._waiting, (now + _wait(held).total_seconds(), next(self._numbers), held))
        self.loop.wake()
        kept = set(early)
        return [held for held in taken if held not in kept]

    def take_back(self) -> list[Held]:
        """Return all that has not started; it will not be started any more."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return [held for _, _, held in waiting]

    def _start_due(self) -> float:
        due: list[Held] = []
        with self._lock:
            now = self._clock.steady()
            while self._waiting and self._waiting[0][0] <= now:
                due.append(heapq.heappop(self._waiting)[2])
            until_the_next = self._waiting[0][0] - now if self._waiting else math.inf
        if due:
            self._start(due)
        return until_the_next


def _wait(held: Held) -> timedelta:
    return held.job.run_at - _claimed_at(held)


def _claimed_at(held: Held) -> datetime:
    """Return when the database gave us the job, by its clock."""
    claimed_at = held.job.started_at
    assert claimed_at is not None
    return claimed_at
