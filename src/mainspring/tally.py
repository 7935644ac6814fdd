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
