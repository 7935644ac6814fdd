"""Sample: add what this process has counted to what the store keeps, now and then, for whoever looks back."""

from __future__ import annotations

import logging

from mainspring.errors import StoreError
from mainspring.service import Loop
from mainspring.store import Store
from mainspring.tally import Tally

EVERY = 10.0
"""Seconds between looks, of which one that finds nothing costs nothing. A process that is killed loses as much."""

log = logging.getLogger("mainspring.worker")


class Sampler:
    """Adds up on a thread of its own: neither claim nor settle waits for it."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self._store = store
        self._tally = tally
        self.loop = Loop("sample", self._look)

    def _look(self) -> float:
        self.add()
        return EVERY

    def add(self) -> None:
        """Add what was counted since the last time."""
        counts = self._tally.take_counts()
        try:
            self._store.add_counts(counts)
        except StoreError as error:
            # Not kept for another try: it may have been added all the same, and would count twice.
            log.warning("what was done in the last seconds is missing from the history: %s", error)
