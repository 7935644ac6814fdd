"""The one connection of a process that writes to a SQLite file, and the turns that threads take at it.

Threads queue up fairly for their turn instead of polling for the file's lock. Whoever has it does the work of all that
wait, in one transaction: to commit means to wait for the disk, and so they wait once.

Every transaction begins IMMEDIATE: a deferred one that turns from reading to writing fails at once when another
process wrote in between, whatever the busy timeout.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar, cast

from mainspring.errors import StoreError, StoreGone, StoreUnavailable
from mainspring.store.database import LEFT_TO_US
from mainspring.store.sqlite.errors import is_forbidden, translated
from mainspring.store.sqlite.file import SqliteFile

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_SHARED = 16
"""Works in one transaction, so that the first does not wait for ever while others come."""

_GLANCE = 0.005
"""Seconds that a listener waits for the turn to look at what other processes did."""

_DATA_VERSION = "PRAGMA data_version"


class Writer:
    """Does the work of any thread in a transaction, one after the other."""

    def __init__(self, file: SqliteFile, scratch: str) -> None:
        """*scratch* makes the temporary tables that writing needs."""
        self._file = file
        self._scratch = scratch
        self._turn = threading.Lock()
        self._waiting: deque[_Wanted[Any]] = deque()
        self._lent_to: int | None = None
        self._connection = self._connect()
        self._durable = True
        self._inode = file.inode()
        self._others = 0
        self._seen = int(file.patiently(self._connection, _DATA_VERSION).fetchone()[0])

    def write(self, work: Work[T], *, durable: bool = True) -> T:
        """Call *work* in a transaction, and return what it returns once that is committed.

        It may be called by another thread, and again if the transaction fails for another's sake. What is not *durable*
        is there for all processes, whatever becomes of this one, but a power loss may take it.
        """
        wanted = _Wanted(work, durable)
        self._waiting.append(wanted)
        try:
            with self._my_turn(), translated(self._file.path):
                while not wanted.done:
                    self._do_some()
        except BaseException:
            with suppress(ValueError):  # done, or tried, by another
                self._waiting.remove(wanted)
            raise
        with translated(self._file.path):
            return wanted.outcome()

    @contextmanager
    def lend(self, finish: Work[object]) -> Iterator[sqlite3.Connection]:
        """Lend the block a connection in a transaction, and call *finish* in it before the commit."""
        with self._my_turn():
            connection = self._begin_to_lend()
            self._lent_to = threading.get_ident()
            try:
                yield connection
                with translated(self._file.path):
                    self._finish_lent(connection, finish)
            except sqlite3.Error as error:
                if is_forbidden(error):
                    raise StoreError(LEFT_TO_US) from error
                raise
            finally:
                self._lent_to = None
                _take_back(connection)
                _roll_back(connection)
                connection.close()

    def commits_of_others(self) -> int | None:
        """Return how many times other processes were seen to commit; None while this one is writing."""
        if not self._turn.acquire(timeout=_GLANCE):
            return None
        try:
            self._look_at_others()
        finally:
            self._turn.release()
        return self._others

    def check_file(self) -> None:
        """Refuse a file that was deleted or replaced: nobody would ever find what is written there."""
        if self._file.inode() != self._inode:
            raise StoreGone(f"{self._file.path} was deleted or replaced while it was open; restart the program")

    def close(self) -> None:
        # Whoever keeps the turn for longer than that has borrowed a connection of his own.
        mine = self._turn.acquire(timeout=self._file.deadline)
        self._connection.close()
        if mine:
            self._turn.release()

    def _connect(self) -> sqlite3.Connection:
        connection = self._file.connect()
        connection.execute(self._scratch)
        connection.execute("PRAGMA busy_timeout = 0")  # `patiently` does the waiting
        return connection

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        self._file.check_usable()
        path, deadline = self._file.path, self._file.deadline
        if self._lent_to == threading.get_ident():
            raise StoreError(
                f"inside a transaction block nothing else can be written to {path}, which has one writer at a "
                "time; do it before or after the block, and let no coroutine await anything inside one"
            )
        if not self._turn.acquire(timeout=deadline):
            raise StoreUnavailable(f"other threads of this process kept {path} busy for {deadline:g} s")
        try:
            yield
        finally:
            self._turn.release()

    def _do_some(self) -> None:
        """Do what waits, in one transaction. If that fails, the first is done alone, the others are tried again."""
        tried = [self._waiting.popleft()]
        try:
            self._do(tried, _SHARED)
        except sqlite3.Error:
            if len(tried) == 1:
                raise
            self._do([self._waiting.popleft()], 1)

    def _do(self, tried: list[_Wanted[Any]], most: int) -> None:
        """Do the one that is in *tried*, and others that wait, up to *most*; all wait again when that fails."""
        try:
            self._begin(tried[0].durable)
            tried[0].attempt(self._connection)
            while tried[0].error is None and len(tried) < most and (joining := self._next_to_join()):
                tried.append(joining)
                self._attempt_beside(joining)
            self._end(commit=tried[0].error is None)
        except BaseException:
            _roll_back(self._connection)
            self._waiting.extendleft(reversed(tried))
            raise
        for wanted in tried:
            wanted.done = True

    def _begin(self, durable: bool) -> None:
        if durable != self._durable:
            level = self._file.synchronous if durable else "normal"
            self._connection.execute(f"PRAGMA synchronous = {level}")
            self._durable = durable
        self._file.patiently(self._connection, "BEGIN IMMEDIATE")
        self.check_file()

    def _next_to_join(self) -> _Wanted[Any] | None:
        """Return the next that waits, if the commit that is to come will do for it."""
        try:
            joining = self._waiting.popleft()
        except IndexError:
            return None
        if self._durable or not joining.durable:
            return joining
        self._waiting.appendleft(joining)
        return None

    def _attempt_beside(self, wanted: _Wanted[Any]) -> None:
        """Attempt a work in a transaction that has done others, which its failure must leave as they are."""
        self._connection.execute("SAVEPOINT beside")
        wanted.attempt(self._connection)
        if wanted.error is not None:
            if not self._connection.in_transaction:  # a full disk, for one, undoes everything
                raise wanted.error
            self._connection.execute("ROLLBACK TO beside")
        self._connection.execute("RELEASE beside")

    def _end(self, *, commit: bool) -> None:
        if commit:
            self._connection.execute("COMMIT")
        else:
            _roll_back(self._connection)

    def _begin_to_lend(self) -> sqlite3.Connection:
        """Return a new connection, for nobody knows what the next borrower would find, in a transaction."""
        with translated(self._file.path):
            connection = self._connect()
            try:
                self._file.patiently(connection, "BEGIN IMMEDIATE")
            except BaseException:
                connection.close()
                raise
        self._look_at_others()
        connection.set_authorizer(_leave_transaction_to_us)
        return connection

    def _finish_lent(self, connection: sqlite3.Connection, finish: Work[object]) -> None:
        if not _take_back(connection):
            raise StoreError(LEFT_TO_US)
        finish(connection)
        connection.execute("COMMIT")
        self._look_at_others(this_is_us=True)

    def _look_at_others(self, *, this_is_us: bool = False) -> None:
        """Count a change that the writing connection did not make; called by whoever has the turn."""
        with suppress(sqlite3.Error):  # the next look will tell as well
            seen = int(self._connection.execute(_DATA_VERSION).fetchone()[0])
            self._others += seen != self._seen and not this_is_us
            self._seen = seen


class _Wanted(Generic[T]):
    """A work that a thread waits for, and what came of it."""

    def __init__(self, work: Work[T], durable: bool = True) -> None:
        self._work = work
        self.durable = durable
        self._result: T | None = None
        self.error: Exception | None = None
        self.done = False

    def attempt(self, connection: sqlite3.Connection) -> None:
        self._result, self.error = None, None
        try:
            self._result = self._work(connection)
        except Exception as error:  # noqa: BLE001 - for the thread that wanted it
            self.error = error

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return cast("T", self._result)


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # some errors have rolled back already
        connection.execute("ROLLBACK")


def _leave_transaction_to_us(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK


def _take_back(connection: sqlite3.Connection) -> bool:
    """Make a lent connection as new; return whether its transaction is still open."""
    try:
        connection.set_authorizer(None)
        connection.row_factory, connection.text_factory = None, str
        return connection.in_transaction
    except sqlite3.ProgrammingError:  # it was closed
        return False
