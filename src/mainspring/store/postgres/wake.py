"""Wake on PostgreSQL: NOTIFY after the commit, on a connection of its own.

NOTIFY takes a lock that all committing transactions share, so it never rides along with a job's transaction, and
what is to be said while one is under way goes out with the next.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from math import inf

import psycopg

from mainspring.clock import Clock
from mainspring.errors import MainspringError, StoreError
from mainspring.store.postgres.connections import CONNECT_TIMEOUT, DeadlineConnection, connect
from mainspring.store.rows import document

_SILENCE = 20.0
_PAUSE_AFTER_ERROR = 1.0
_LOOK_UP = 0.5
"""Seconds after which a waiting listener notices that it was closed."""


_LATER = (0.005, 0.05)
"""Seconds after which listeners are told of what was enqueued in a transaction that is still open."""


class Waker:
    """Sends wakes from a thread of its own, started with the first."""

    def __init__(self, url: str, clock: Clock, notify: str) -> None:
        self._url = url
        self._clock = clock
        self._notify = notify
        self._changed = threading.Condition()
        self._topics: set[str] = set()
        self._later: list[tuple[float, frozenset[str]]] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def wake(self, topics: Collection[str]) -> None:
        with self._changed:
            self._topics.update(topics)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._send_all, name="mainspring-wake", daemon=True)
                self._thread.start()
            self._changed.notify()

    def wake_later(self, topics: Collection[str]) -> None:
        """Send the wakes of what somebody is about to commit.

        Nobody tells us when he does. Sent now, they would nearly always come too early; inside his transaction, they
        would have all that commit at the same time wait for each other. So they are sent when a short transaction is
        over, and once more for a longer one. What takes longer still is found by polling.
        """
        with self._changed:
            now = self._clock.steady()
            self._later += [(now + delay, frozenset(topics)) for delay in _LATER]
        self.wake(())

    def close(self) -> None:
        """Stop once what was to be said is out, and what was to be said later with it."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CONNECT_TIMEOUT)

    def _send_all(self) -> None:
        connection: DeadlineConnection | None = None
        while topics := self._next():
            try:
                connection = connection or self._connect()
                connection.execute(self._notify.encode(), {"topics": document(topics)})
            except Exception:  # noqa: BLE001 - whatever went wrong, the next hint must find this thread alive
                # A lost hint costs no more than one poll interval; what counts is not to hammer a sick server.
                _close(connection)
                connection = None
                self._clock.sleep(_PAUSE_AFTER_ERROR)
        _close(connection)

    def _next(self) -> set[str]:
        with self._changed:
            while not (topics := self._take()) and not self._closed:
                soonest = min((at for at, _ in self._later), default=None)
                self._changed.wait(None if soonest is None else max(0.0, soonest - self._clock.steady()))
            return topics

    def _take(self) -> set[str]:
        now = inf if self._closed else self._clock.steady()
        topics = self._topics.union(*(topics for at, topics in self._later if at <= now))
        self._later = [(at, topics) for at, topics in self._later if at > now]
        self._topics = set()
        return topics

    def _connect(self) -> DeadlineConnection:
        # A notification writes a commit record, but nobody relies on it after a crash.
        return connect(self._url, options="-c synchronous_commit=off")


class PostgresListener:
    """Waits for notifications on a connection of its own, and mends it when it breaks."""

    def __init__(
        self, url: str, clock: Clock, topics: Collection[str], forget: Callable[[PostgresListener], None]
    ) -> None:
        self._url = url
        self._clock = clock
        self._topics = frozenset(topics)
        self._forget = forget
        self._waiting = threading.RLock()  # a signal's handler may close what its own thread waits on
        self._pid = os.getpid()
        self._closed = False
        self._connection: DeadlineConnection | None = None
        self._heard_at = 0.0

    def wait(self, timeout: float) -> frozenset[str]:
        with self._waiting:
            if self._closed:
                raise StoreError("the listener is closed")
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    return self._topics  # there may have been news while nobody listened
                return self._hear(self._connection, timeout)
            except (psycopg.Error, MainspringError):
                if self._closed:
                    return frozenset()
                self._disconnect()
                self._clock.sleep(min(timeout, _PAUSE_AFTER_ERROR))
                return frozenset() if self._closed else self._topics

    def end(self) -> None:
        """Have a wait that is under way return soon."""
        self._closed = True

    def close(self) -> None:
        self.end()
        self._forget(self)
        if os.getpid() == self._pid:  # else the connection is the parent's
            with self._waiting:
                self._disconnect()

    def _disconnect(self) -> None:
        _close(self._connection)
        self._connection = None

    def _connect(self) -> DeadlineConnection:
        connection = connect(self._url)
        # Behind a pooler LISTEN would stick to a server connection that is then lent to others.
        if not connection.pooled:
            connection.execute("LISTEN mainspring")
        self._heard_at = self._clock.steady()
        return connection

    def _hear(self, connection: DeadlineConnection, timeout: float) -> frozenset[str]:
        self._check_alive(connection)
        remaining, give_up = timeout, self._clock.steady() + timeout
        while remaining >= 0 and not self._closed:
            # All that came at once: the driver forgets what is left of it when we look away.
            notes = [note.payload for note in connection.notifies(timeout=min(remaining, _LOOK_UP), stop_after=1)]
            if notes:
                self._heard_at = self._clock.steady()
            if heard := self._topics.intersection(notes):
                return heard
            remaining = give_up - self._clock.steady()
        return frozenset()

    def _check_alive(self, connection: DeadlineConnection) -> None:
        """Ask the server for a sign of life after a long silence: a half-open connection is silent for ever."""
        if self._clock.steady() - self._heard_at > _SILENCE:
            connection.execute("SELECT 1")
            self._heard_at = self._clock.steady()


def _close(connection: DeadlineConnection | None) -> None:
    if connection is not None:
        connection.close()
