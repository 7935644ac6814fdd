"""Tally: what the workers of an app have counted in this process, for whoever asks how they are."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class Histogram:
    """How many values lie up to each of *bounds*, and what all of them amount to."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def merge(self, other: Histogram) -> None:
        """Add all that *other*, which has the same bounds, has counted."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def quantile(self, share: float) -> float | None:
        """Return about what *share* of the values do not exceed; None where there are none.

        Values are taken to lie evenly between two bounds, and those above the last to lie on it.
        """
        wanted, below = share * sum(self.counts), 0.0
        for lower, upper, count in zip((0.0, *self.bounds), (*self.bounds, self.bounds[-1]), self.counts, strict=True):
            if count and below + count >= wanted:
                return lower + (upper - lower) * (wanted - below) / count
            below += count
        return None


class Counts:
    """What became of the jobs of one team in one queue, since it was last taken to the store."""

    __slots__ = ("failed", "retried", "succeeded", "waits")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0  # for good
        self.retried = 0  # attempts that failed and are made again
        self.waits = Histogram(SECONDS)

    @property
    def jobs(self) -> int:
        return self.succeeded + self.failed + self.retried

    def merge(self, other: Counts) -> None:
        """Add all that *other* has counted."""
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.retried += other.retried
        self.waits.merge(other.waits)


Place = tuple[str | None, str]
"""Whose the jobs are, as that is stored, and the queue that they came from."""


class Tally:
    """Plain numbers, which cost a worker next to nothing. Who adds to them or reads them holds the `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waits: dict[str, Histogram] = {}  # by queue: seconds from when a job was due until it began
        self.runs: dict[str, Histogram] = {}  # by queue: seconds that attempts took
        self.attempts: Counter[tuple[str, str]] = Counter()  # by task and outcome
        self.finished: Counter[tuple[str, str]] = Counter()  # by task and final state
        self.claims = Histogram(SIZES)
        self.settles = Histogram(SIZES)
        self.renewals: Counter[str] = Counter()  # by whether they held: renewed, failed, lost
        self.errors: Counter[str] = Counter()  # of the database, by step
        self._counts: dict[Place, Counts] = {}

    def counts(self, place: Place) -> Counts:
        """Return where to count what becomes of jobs of *place*, for who holds the lock."""
        if place not in self._counts:
            self._counts[place] = Counts()
        return self._counts[place]

    def take_counts(self) -> dict[Place, Counts]:
        """Return what was counted since this was last asked for."""
        with self.lock:
            taken, self._counts = self._counts, {}
        return taken

    def failed(self, step: str) -> None:
        """Take note that the database has failed us in *step*, which is tried again."""
        with self.lock:
            self.errors[step] += 1

    def beat(self, came_to: str) -> None:
        with self.lock:
            self.renewals[came_to] += 1

    def claimed(self, jobs: int) -> None:
        with self.lock:
            self.claims.add(jobs)
