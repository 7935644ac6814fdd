"""Wake on SQLite: a note within the process, and the file's own change counter across processes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection

from mainspring.clock import SystemClock
from mainspring.errors import StoreError

_BUSY_LOOK, _IDLE_LOOK = 0.005, 0.025
"""Seconds between looks at the change counter, while other processes write and when none has for a while."""

_BUSY_FOR = 1.0


class SqliteListener:
    """Hears wakes of its own process at once, and commits of other processes within a few milliseconds."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        topics: Collection[str],
        others: Callable[[], int | None],
        forget: Callable[[SqliteListener], None],
    ) -> None:
        """*others* returns how many times other processes have been seen to commit, or None if it can't tell now."""
        self._connection = connection
        self._topics = frozenset(topics)
        self._others = others
        self._forget = forget
        self._news = threading.Event()
        self._noting = threading.Lock()
        self._noted: set[str] = set()
        self._waiting = threading.RLock()  # a signal's handler may close what its own thread waits on
        self._closed = False
        self._clock = SystemClock()
        self._seen = self._changes()
        self._seen_of_others = self._others()
        self._changed_at = 0.0

    def hear(self, topics: Collection[str]) -> None:
        """Take note of a wake from this process; called by any thread."""
        if heard := self._topics.intersection(topics):
            with self._noting:
                self._noted |= heard
                self._news.set()

    def wait(self, timeout: float) -> frozenset[str]:
        with self._waiting:
            if self._closed:
                raise StoreError("the listener is closed")
            return self._listen(timeout)

    def close(self) -> None:
        self._closed = True
        self._news.set()
        self._forget(self)
        with self._waiting:
            self._connection.close()

    def _listen(self, timeout: float) -> frozenset[str]:
        remaining, give_up = timeout, self._clock.steady() + timeout
        while True:
            busy = self._clock.steady() - self._changed_at < _BUSY_FOR
            self._news.wait(min(remaining, _BUSY_LOOK if busy else _IDLE_LOOK))
            if self._closed:
                return frozenset()
            heard = self._take_notes()
            if self._others_changed_something():
                return self._topics
            remaining = give_up - self._clock.steady()
            if heard or remaining <= 0:
                return heard

    def _take_notes(self) -> frozenset[str]:
        with self._noting:
            self._news.clear()
            noted, self._noted = self._noted, set()
            return frozenset(noted)

    def _others_changed_something(self) -> bool:
        """Return whether another process has committed.

        Our connection sees every commit that is not its own, also those of this process, which tell their topics by
        themselves. To take them for news would have a worker that looks, and so commits, wake itself for ever.
        """
        changes = self._changes()
        if changes == self._seen:
            return False
        others = self._others()
        if others is None:
            return False
        changed = others != self._seen_of_others
        self._seen, self._seen_of_others = changes, others
        if changed:
            self._changed_at = self._clock.steady()
        return changed

    def _changes(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
