"""The scheduler: the sweeps, each on a thread of its own, so that a long one holds up no other."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from mainspring.scheduler.alert import alert
from mainspring.scheduler.fire import Firer
from mainspring.scheduler.promote import promote
from mainspring.scheduler.prune import RETENTION, Pruner
from mainspring.scheduler.rank import rank
from mainspring.scheduler.reap import reap
from mainspring.scheduler.release import release
from mainspring.scheduler.sample import sample
from mainspring.service import Loop, close
from mainspring.store import Store
from mainspring.store.database import DUE, FIRE, RELEASE


class Scheduler:
    """Runs inside workers, or alone; any number of them at once, with no leader."""

    def __init__(self, store: Store, retention: timedelta = RETENTION) -> None:
        self._promote = Loop("promote", lambda: promote(store))
        self._fire = Loop("fire", Firer(store))
        self._release = Loop("release", lambda: release(store))
        self._reap = Loop("reap", lambda: reap(store))
        self._alert = Loop("alert", lambda: alert(store))
        self._rank = Loop("rank", lambda: rank(store))
        self._sample = Loop("sample", lambda: sample(store))
        self._prune = Loop("prune", Pruner(store, retention))

    def start(self) -> None:
        for loop in self._loops():
            loop.start()

    def heard(self, topics: Iterable[str]) -> None:
        """Take note of a wake. Called by any thread."""
        if DUE in topics:
            self._promote.wake()
        if FIRE in topics:
            self._fire.wake()
        if RELEASE in topics:
            self._release.wake()

    def close(self, timeout: float) -> None:
        """End, and wait for a sweep that is under way, for *timeout* seconds at most."""
        close(self._loops(), timeout)

    def _loops(self) -> list[Loop]:
        wakeful = [self._promote, self._fire, self._release]
        return [*wakeful, self._reap, self._alert, self._rank, self._sample, self._prune]
