"""Connections to PostgreSQL that can't hang, and the few of them that a process needs."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from mainspring.errors import InvalidURL, StoreError, StoreUnavailable
from mainspring.store.database import LEFT_TO_US

T = TypeVar("T")

CONNECT_TIMEOUT = 5


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection on which no statement waits for longer than `patience` seconds.

    TCP keepalive does not help when something between us and the server still answers for it, and a server can
    be stuck without being gone: only a deadline of our own ends every wait.
    """

    patience: float | None = CONNECT_TIMEOUT

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        return super().wait(gen, interval=interval, timeout=self.patience if timeout is None else timeout)

    @property
    def pooled(self) -> bool:
        """Whether a pooler sits in between: it makes up the process id that a client is told at log-in."""
        (backend,) = self.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        return bool(backend != self.info.backend_pid)


class LentConnection(DeadlineConnection):
    """A connection in the hands of somebody else, who may do with it what he likes, except end its transaction."""

    _own: DeadlineConnection | None = None

    def commit(self) -> None:
        raise StoreError(LEFT_TO_US)

    def rollback(self) -> None:
        raise StoreError(LEFT_TO_US)

    def take_back(self, patience: float) -> DeadlineConnection:
        """Return the same connection as new, whatever row factories and adapters it was given meanwhile."""
        # Kept here, because the driver warns of a connection that is forgotten while it is open.
        self._own = DeadlineConnection(self.pgconn)
        self._own.patience = patience
        self._own.prepare_threshold = None
        return self._own


C = TypeVar("C", bound=DeadlineConnection)

_SIGNS_OF_LIFE = {
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "40000",
}
"""For a connection on which statements may take as long as they like: TCP at least notices that the server is gone."""


def connect(url: str, *, options: str = "", timeout: float = CONNECT_TIMEOUT) -> DeadlineConnection:
    """Open a connection in autocommit mode; *options* are server settings for this session."""
    given = _facts(url)
    settings = {"options": f"{given.get('options') or ''} {options}".strip()} if options else {}
    return _connect(DeadlineConnection, given | settings, timeout, autocommit=True)


def connect_to_lend(url: str, timeout: float) -> LentConnection:
    """Open a connection whose first statement begins a transaction."""
    connection = _connect(LentConnection, _SIGNS_OF_LIFE | _facts(url), timeout, autocommit=False)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


def check_address(url: str) -> None:
    """Refuse what is no address, without asking whether anybody is there."""
    _facts(url)


def _facts(url: str) -> dict[str, Any]:
    try:
        facts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # The driver's own words quote the address, with its password.
        raise InvalidURL(
            "PostgreSQL does not understand the database address; expected one like postgresql://user@host:5432/name, "
            "with special characters in a password written as in %40 for @"
        ) from None
    if not str(facts.get("port") or "0").replace(",", "0").isdigit():
        raise InvalidURL(
            "expected a number as the port in the database address, as in postgresql://user:password@host:5432/name"
        )
    return facts | {"client_encoding": "utf8"}


def _connect(kind: type[C], facts: dict[str, Any], timeout: float, *, autocommit: bool) -> C:
    return kind.connect(make_conninfo("", **facts), autocommit=autocommit, connect_timeout=ceil(timeout))


class Connections:
    """At most *limit* connections, opened when needed and kept for the next call.

    Jobs hold none of them: a claim, a settle, a beat and a look at the same time are the most a worker does.
    """

    def __init__(self, open_connection: Callable[[], DeadlineConnection], *, limit: int) -> None:
        self._open = open_connection
        self._free = threading.BoundedSemaphore(limit)
        self._idle: deque[DeadlineConnection] = deque()
        self._pid = os.getpid()
        self._closed = False

    @property
    def inherited(self) -> bool:
        """Whether the process was forked, so that the connections are its parent's."""
        return os.getpid() != self._pid

    @contextmanager
    def borrow(self, patience: float) -> Iterator[DeadlineConnection]:
        """Lend a connection whose statements take *patience* seconds at most; one that failed is thrown away."""
        self.check_usable()
        if not self._free.acquire(timeout=patience):
            raise StoreUnavailable("all connections of this process stayed busy; give it less to do at once")
        try:
            connection = self._take()
            connection.patience = patience
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def check_usable(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")
        if self.inherited:
            raise StoreError("a PostgreSQL store can't be used after a fork; open it in the child process")

    def drop_idle(self) -> None:
        """Close the idle connections: when one has failed, the others most likely have too."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Close the idle connections, and those in use once they come back."""
        self._closed = True
        self.drop_idle()

    def _take(self) -> DeadlineConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def _give_back(self, connection: DeadlineConnection) -> None:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            discard(connection)
        elif self._closed:
            connection.close()
        else:
            self._idle.append(connection)


def discard(connection: DeadlineConnection) -> None:
    """Close *connection*, and tell the server to stop what it may still be doing for it."""
    if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=1)
    connection.close()
