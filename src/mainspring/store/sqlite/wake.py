"""Wake on SQLite: a flag within the process, and the file's own change counter across processes."""

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
        self, connection: sqlite3.Connection, topics: Collection[str], forget: Callable[[SqliteListener], None]
    ) -> None:
        self._connection = connection
        self._topics = frozenset(topics)
        self._forget = forget
        self._heard = threading.Event()
        self._waiting = threading.RLock()  # a signal's handler may close what its own thread waits on
        self._closed = False
        self._clock = SystemClock()
        self._seen = self._changes()
        self._changed_at = 0.0

    def hear(self, topics: Collection[str]) -> None:
        """Take note of a wake from this process; called by any thread."""
        if not self._topics.isdisjoint(topics):
            self._heard.set()

    def wait(self, timeout: float) -> bool:
        with self._waiting:
            if self._closed:
                raise StoreError("the listener is closed")
            return self._listen(timeout)

    def close(self) -> None:
        self._closed = True
        self._heard.set()
        self._forget(self)
        with self._waiting:
            self._connection.close()

    def _listen(self, timeout: float) -> bool:
        give_up = self._clock.steady() + timeout
        while (remaining := give_up - self._clock.steady()) > 0:
            busy = self._clock.steady() - self._changed_at < _BUSY_FOR
            heard = self._heard.wait(min(remaining, _BUSY_LOOK if busy else _IDLE_LOOK))
            if self._closed:
                return False
            self._heard.clear()
            # Looked at in any case: the commit that we heard of is not to be news a second time.
            if self._changed() or heard:
                return True
        return False

    def _changed(self) -> bool:
        changes = self._changes()
        changed, self._seen = changes != self._seen, changes
        if changed:
            self._changed_at = self._clock.steady()
        return changed

    def _changes(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
