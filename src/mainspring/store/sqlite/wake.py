"""Wake on SQLite: a flag within the process, and the file's own change counter across processes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection

_LOOK_EVERY = 0.005
"""Seconds between looks at the change counter: a look costs some 10 µs, so this is well under 1 % of a core."""


class SqliteListener:
    """Hears wakes of its own process at once, and commits of other processes within a few milliseconds."""

    def __init__(
        self, connection: sqlite3.Connection, topics: Collection[str], forget: Callable[[SqliteListener], None]
    ) -> None:
        self._connection = connection
        self._topics = frozenset(topics)
        self._forget = forget
        self._heard = threading.Event()
        self._seen = self._changes()

    def hear(self, topics: Collection[str]) -> None:
        """Take note of a wake from this process; called by any thread."""
        if not self._topics.isdisjoint(topics):
            self._heard.set()

    def wait(self, timeout: float) -> bool:
        remaining = timeout
        while True:
            if self._heard.wait(min(remaining, _LOOK_EVERY)) or self._changed():
                self._heard.clear()
                return True
            remaining -= _LOOK_EVERY
            if remaining <= 0:
                return False

    def close(self) -> None:
        self._forget(self)
        self._connection.close()

    def _changed(self) -> bool:
        changes = self._changes()
        changed, self._seen = changes != self._seen, changes
        return changed

    def _changes(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
