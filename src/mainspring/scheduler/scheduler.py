"""The scheduler: the sweeps, each on a thread of its own, so that a long one holds up no other."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.scheduler.promote import promote
from mainspring.scheduler.prune import Pruner
from mainspring.scheduler.reap import reap
from mainspring.service import Loop, close
from mainspring.store import Store
from mainspring.store.database import DUE


class Scheduler:
    """Runs inside workers, or alone; any number of them at once, with no leader."""

    def __init__(self, store: Store) -> None:
        self._promote = Loop("promote", lambda: promote(store))
        self._reap = Loop("reap", lambda: reap(store))
        self._prune = Loop("prune", Pruner(store))

    def start(self) -> None:
        for loop in self._loops():
            loop.start()

    def heard(self, topics: Iterable[str]) -> None:
        """Take note of a wake. Called by any thread."""
        if DUE in topics:
            self._promote.wake()

    def close(self, timeout: float) -> None:
        """End, and wait for a sweep that is under way, for *timeout* seconds at most."""
        close(self._loops(), timeout)

    def _loops(self) -> list[Loop]:
        return [self._promote, self._reap, self._prune]
