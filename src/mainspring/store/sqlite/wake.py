"""Wake on SQLite: a note within the process, and the file's own change counter across processes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection

from mainspring.clock import SystemClock
from mainspring.errors import StoreError
from mainspring.store.sqlite.ears import Ears

_AGAIN = 0.005
"""Seconds until the next look when this process was writing at the last."""


class SqliteListener:
    """Hears wakes of its own process at once, and commits of other processes within a few milliseconds."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        ears: Callable[[], Ears],
        topics: Collection[str],
        others: Callable[[], int | None],
        forget: Callable[[SqliteListener], None],
    ) -> None:
        """*others* returns how many times other processes have been seen to commit, or None if it can't tell now."""
        self._connection = connection
        self._topics = frozenset(topics)
        self._others = others
        self._forget = forget
        self._noting = threading.Lock()
        self._noted: set[str] = set()
        self._waiting = threading.RLock()  # a signal's handler may close what its own thread waits on
        self._in_use = False
        self._closed = False
        self._clock = SystemClock()
        self._seen = self._changes()
        self._seen_of_others = self._others()
        self._ears = ears()  # after the first look, for which the file is made that they listen to

    def hear(self, topics: Collection[str]) -> None:
        """Take note of a wake from this process; called by any thread."""
        if heard := self._topics.intersection(topics):
            with self._noting:
                first = not self._noted
                self._noted |= heard
            if first:
                self._ears.ring()

    def wait(self, timeout: float) -> frozenset[str]:
        with self._waiting:
            if self._closed:
                raise StoreError("the listener is closed")
            self._in_use = True
            try:
                return self._listen(timeout)
            finally:
                self._in_use = False
                if self._closed:
                    self._free()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._forget(self)
        self._ears.ring()
        with self._waiting:
            if not self._in_use:  # or else by the wait that we have interrupted
                self._free()

    def _free(self) -> None:
        self._ears.close()
        self._connection.close()

    def _listen(self, timeout: float) -> frozenset[str]:
        give_up = self._clock.steady() + timeout
        while not self._closed:
            # Looked at first: a wake that came between two waits has rung already.
            heard, changed = self._take_notes(), self._others_changed_something()
            if changed:
                return self._topics
            remaining = give_up - self._clock.steady()
            if heard or remaining <= 0:
                return heard
            self._ears.wait(min(remaining, _AGAIN) if changed is None else remaining)
        return frozenset()

    def _take_notes(self) -> frozenset[str]:
        with self._noting:
            noted, self._noted = self._noted, set()
            return frozenset(noted)

    def _others_changed_something(self) -> bool | None:
        """Return whether another process has committed; None if that can't be told now.

        Our connection sees every commit that is not its own, also those of this process, which tell their topics by
        themselves. To take them for news would have a worker that looks, and so commits, wake itself for ever.
        """
        changes = self._changes()
        if changes == self._seen:
            return False
        self._ears.seen()
        others = self._others()
        if others is None:
            return None
        changed = others != self._seen_of_others
        self._seen, self._seen_of_others = changes, others
        return changed

    def _changes(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
