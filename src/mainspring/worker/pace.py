"""How many jobs a worker should have at hand, from how long they take and how long a claim takes."""

from __future__ import annotations

import math

MOST = 1_000
"""Two full batches: one that runs and one that is on its way."""

_WEIGHT = 0.1
_SLOW = 1.0


class Pace:
    """Averages that follow a change within some ten jobs.

    Slow jobs get no more than there are slots, so that no worker hoards what another could start. Fast ones are
    taken ahead: as many as will finish while the next claim is under way, twice over.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._job = _SLOW  # seconds; until we know better, jobs are taken for slow
        self._claim = 0.001

    def job_took(self, seconds: float) -> None:
        # Threads may overwrite each other's reading here: an average with a gap will do, and a lock would not.
        self._job += (seconds - self._job) * _WEIGHT

    def claim_took(self, seconds: float) -> None:
        self._claim += (seconds - self._claim) * _WEIGHT

    def stalled(self) -> None:
        """Take jobs for slow from now on: what was taken ahead has not started in a long time."""
        self._job = max(self._job, _SLOW)

    @property
    def at_hand(self) -> int:
        """How many jobs should be at hand, those that run included."""
        ahead = 2 * self._slots * self._claim / max(self._job, 1e-9)
        return self._slots + min(MOST, math.floor(ahead))
