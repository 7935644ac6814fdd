"""Connections to PostgreSQL that can't hang, and the few of them that a process needs."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from mainspring.errors import InvalidURL, StoreError, StoreUnavailable

T = TypeVar("T")

CONNECT_TIMEOUT = 5


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection on which no statement waits for longer than `patience` seconds.

    TCP keepalive does not help when something between us and the server still answers for it, and a server can
    be stuck without being gone: only a deadline of our own ends every wait.
    """

    patience: float = CONNECT_TIMEOUT

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        return super().wait(gen, interval=interval, timeout=self.patience if timeout is None else timeout)

    @property
    def pooled(self) -> bool:
        """Whether a pooler sits in between: it makes up the process id that a client is told at log-in."""
        (backend,) = self.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        return bool(backend != self.info.backend_pid)


def connect(url: str, *, options: str = "") -> DeadlineConnection:
    """Open a connection in autocommit mode; *options* are server settings for this session."""
    try:
        given = str(conninfo_to_dict(url).get("options") or "")
        settings = {"options": f"{given} {options}".strip()} if options else {}
        conninfo = make_conninfo(url, **settings, client_encoding="utf8")
    except psycopg.ProgrammingError:
        # The driver's own words quote the address, with its password.
        raise InvalidURL(
            "PostgreSQL does not understand the database address; expected one like postgresql://user@host:5432/name, "
            "with special characters in a password written as in %40 for @"
        ) from None
    if not str(conninfo_to_dict(conninfo).get("port") or "0").replace(",", "0").isdigit():
        raise InvalidURL(
            "expected a number as the port in the database address, as in postgresql://user:password@host:5432/name"
        )
    return DeadlineConnection.connect(conninfo, autocommit=True, connect_timeout=CONNECT_TIMEOUT)


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
            _discard(connection)
        elif self._closed:
            connection.close()
        else:
            self._idle.append(connection)


def _discard(connection: DeadlineConnection) -> None:
    """Close *connection*, and tell the server to stop what it may still be doing for it."""
    if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=1)
    connection.close()
