"""A SQLite file as a Database.

One connection writes, under a lock, so that threads queue up fairly instead of polling for the file's lock;
others read beside it. Every write begins IMMEDIATE: a deferred transaction that turns from reading to writing
fails at once when another process wrote in between, whatever the busy timeout.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from mainspring.clock import MICROSECOND, Clock, SystemClock, microseconds, moment
from mainspring.errors import StoreError, StoreUnavailable
from mainspring.store.database import LEFT_TO_US, Migration, Probe, Row, Runner
from mainspring.store.migrate import load_migrations
from mainspring.store.queries import Query, load_queries, split_statements
from mainspring.store.rows import MODEL_CONVERTERS, Converter, convert_columns, convert_rows, distinct
from mainspring.store.sqlite.errors import is_busy, is_forbidden, is_taken, translated
from mainspring.store.sqlite.wake import SqliteListener

T = TypeVar("T")

_PACKAGE = "mainspring.store.sqlite"
_IDLE_READERS = 4
_GLANCE = 0.005
"""Seconds that a listener waits for the turn to look at what other processes did."""

_DATA_VERSION = "PRAGMA data_version"
_SYNCHRONOUS = {"normal": 1, "full": 2, "extra": 3}
_INSTANTS = ("run_at", "created_at", "started_at", "finished_at", "beat_at", "now_at", "at")
_CONVERTERS: Mapping[str, Converter] = {
    **MODEL_CONVERTERS,
    **dict.fromkeys(("id", "job_id", "session"), lambda column: msgspec.convert(column, list[UUID | None])),
    **dict.fromkeys(_INSTANTS, distinct(moment)),
    "lease": lambda column: [length * MICROSECOND for length in column],
    "alive": lambda column: [bool(value) for value in column],
}

_GATHERED: dict[str, tuple[str, list[str]]] = {}
"""For each SELECT, the one that gathers its rows into one, and the names of its columns."""

_array = msgspec.json.Decoder(list[Any])

_open_files: set[tuple[int, Path]] = set()
"""The files that this process has open, and those that it inherited from a parent that had them open."""


class SqliteDatabase:
    """Runs named queries on a SQLite file."""

    def __init__(
        self, path: str, *, clock: Clock | None = None, synchronous: str = "full", deadline: float = 15
    ) -> None:
        self.migrations = load_migrations(_PACKAGE)
        self._path = Path(path).resolve()
        # A clock that was given tells the time; waits and deadlines are always real.
        self._clock: Clock = SystemClock()
        self._teller = clock or self._clock
        self._synchronous = synchronous
        self._deadline = deadline
        self._queries = load_queries(_PACKAGE)
        self._pid = os.getpid()
        _check_not_forked(self._path)
        self._turn = threading.Lock()
        self._lent_to: int | None = None
        self._writer = self._connect_to_write()
        self._inode = os.stat(self._path).st_ino
        self._others = 0
        self._seen = int(self._patiently(self._writer, _DATA_VERSION).fetchone()[0])
        self._readers: list[sqlite3.Connection] = []
        self._listeners: set[SqliteListener] = set()
        self._closed = False
        _open_files.add((self._pid, self._path))

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        return self.transact(lambda runner: runner.run(query, **parameters))

    def attempt(self, work: Callable[[Runner], T]) -> T:
        return self.transact(work)

    def transact(self, work: Callable[[Runner], T]) -> T:
        try:
            return self._transact(work, in_doubt=False)
        except StoreError as error:
            if not is_taken(error.__cause__):
                raise
        return self._transact(work, in_doubt=True)

    def _transact(self, work: Callable[[Runner], T], *, in_doubt: bool) -> T:
        with self._write_transaction() as connection:
            return work(_Transaction(connection, self._queries, self._ambient(), in_doubt))

    def read(self, query: str, /, **parameters: object) -> list[Row]:
        self._check_usable()
        with translated(self._path):
            connection = self._take_reader()
            try:
                return _Transaction(connection, self._queries, self._ambient()).run(query, **parameters)
            finally:
                self._keep_reader(connection)

    @contextmanager
    def lend(self, finish: Callable[[Runner], T]) -> Iterator[sqlite3.Connection]:
        with self._my_turn():
            connection = self._begin_to_lend()
            self._lent_to = threading.get_ident()
            try:
                yield connection
                with translated(self._path):
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

    def wake(self, topics: Collection[str]) -> None:
        for listener in tuple(self._listeners):
            listener.hear(topics)

    def listen(self, topics: Collection[str]) -> SqliteListener:
        self._check_usable()
        with translated(self._path):
            listener = SqliteListener(self._connect(), topics, self._commits_of_others, self._listeners.discard)
        self._listeners.add(listener)
        return listener

    def version(self) -> int:
        if self.read("version") == [(0,)]:
            return 0
        return int(self.read("last_migration")[0][0] or 0)

    def in_use_by_others(self) -> bool:
        # Our tables carry a prefix, so they can live in anybody's file.
        return False

    def apply(self, migrations: Sequence[Migration]) -> list[Migration]:
        with self._write_transaction() as connection:
            transaction = _Transaction(connection, self._queries, self._ambient())
            transaction.run("begin_schema")
            done = transaction.run("last_migration")[0][0] or 0
            missing = [migration for migration in migrations if migration.number > done]
            for migration in missing:
                for statement in split_statements(migration.script):
                    connection.execute(statement)
                transaction.run("record_migration", version=migration.number, name=migration.name)
            return missing

    def probe(self) -> Probe:
        started = self._clock.steady()
        self.run("trial_commit")
        commit = timedelta(seconds=self._clock.steady() - started)
        now = self._clock.now()
        return Probe(
            kind="sqlite",
            version=sqlite3.sqlite_version,
            location=str(self._path),
            durability=_DURABILITY[self._synchronous],
            commit=commit,
            clock=now,
            clock_difference=timedelta(0),
            problems=(),
        )

    def close(self) -> None:
        if self._inherited:
            return
        self._closed = True
        for listener in tuple(self._listeners):
            listener.close()
        # Whoever keeps the turn for longer than that has borrowed a connection of his own.
        mine = self._turn.acquire(timeout=self._deadline)
        while self._readers:
            self._readers.pop().close()
        self._writer.close()
        _open_files.discard((self._pid, self._path))
        if mine:
            self._turn.release()

    def _connect(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"can't make the folder of {self._path}: {error.strerror}; make it yourself or name another file"
            ) from error
        with translated(self._path):
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 5000")
        if self._patiently(connection, "PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreError(f"SQLite can't use its write-ahead log for {self._path}; is it on a network drive?")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        if connection.execute("PRAGMA synchronous").fetchone() != (_SYNCHRONOUS[self._synchronous],):
            raise StoreError(f"SQLite refused synchronous={self._synchronous} for {self._path}")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")

    def _connect_to_write(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute(*self._queries["scratch"].statements)
        connection.execute("PRAGMA busy_timeout = 0")  # `_patiently` does the waiting
        return connection

    @contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        with self._my_turn(), translated(self._path):
            self._patiently(self._writer, "BEGIN IMMEDIATE")
            try:
                self._check_file()
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                _roll_back(self._writer)
                raise

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        self._check_usable()
        if self._lent_to == threading.get_ident():
            raise StoreError(
                f"inside a transaction block nothing else can be written to {self._path}, which has one writer at a "
                "time; do it before or after the block"
            )
        if not self._turn.acquire(timeout=self._deadline):
            raise StoreUnavailable(f"other threads of this process kept {self._path} busy for {self._deadline:g} s")
        try:
            yield
        finally:
            self._turn.release()

    def _begin_to_lend(self) -> sqlite3.Connection:
        """Return a new connection, for nobody knows what the next borrower would find, in a transaction."""
        with translated(self._path):
            connection = self._connect_to_write()
            try:
                self._patiently(connection, "BEGIN IMMEDIATE")
            except BaseException:
                connection.close()
                raise
        self._look_at_others()
        connection.set_authorizer(_leave_transaction_to_us)
        return connection

    def _finish_lent(self, connection: sqlite3.Connection, finish: Callable[[Runner], T]) -> None:
        if not _take_back(connection):
            raise StoreError(LEFT_TO_US)
        finish(_Transaction(connection, self._queries, self._ambient()))
        connection.execute("COMMIT")
        self._look_at_others(this_is_us=True)

    def _commits_of_others(self) -> int | None:
        """Return how many times other processes were seen to commit; None while this one is writing."""
        if not self._turn.acquire(timeout=_GLANCE):
            return None
        try:
            self._look_at_others()
        finally:
            self._turn.release()
        return self._others

    def _look_at_others(self, *, this_is_us: bool = False) -> None:
        """Count a change that the writing connection did not make; called by whoever has the turn."""
        with suppress(sqlite3.Error):  # the next look will tell as well
            seen = int(self._writer.execute(_DATA_VERSION).fetchone()[0])
            self._others += seen != self._seen and not this_is_us
            self._seen = seen

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> sqlite3.Cursor:
        """Run a statement that takes a lock on the file, looking again while another process has it.

        SQLite's own wait sleeps up to 100 ms between looks, while a transaction here takes a millisecond or so;
        and it does not wait at all where it fears a deadlock, as in the switch to WAL.
        """
        give_up = self._clock.steady() + self._deadline
        pause = 0.0005
        while True:
            try:
                return connection.execute(statement)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or self._clock.steady() > give_up:
                    raise
            self._clock.sleep(pause)
            pause = min(0.01, pause * 1.5)

    def _take_reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return self._connect()

    def _keep_reader(self, connection: sqlite3.Connection) -> None:
        if self._closed or len(self._readers) >= _IDLE_READERS:
            connection.close()
        else:
            self._readers.append(connection)

    def _ambient(self) -> dict[str, object]:
        return {"now": microseconds(self._teller.now()), "steady": int(self._teller.steady() * 1_000_000)}

    @property
    def _inherited(self) -> bool:
        return os.getpid() != self._pid

    def _check_file(self) -> None:
        """Refuse to write to a file that was deleted or replaced: nobody would ever find what is written there."""
        try:
            found = os.stat(self._path).st_ino
        except FileNotFoundError:
            found = 0
        if found != self._inode:
            raise StoreError(f"{self._path} was deleted or replaced while it was open; restart the program")

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")
        if self._inherited:
            raise StoreError("a SQLite store can't be used after a fork; close it before, and open it in the child")


class _Transaction:
    """Runs named queries inside a transaction that is open already."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        queries: Mapping[str, Query],
        ambient: dict[str, object],
        in_doubt: bool = False,
    ) -> None:
        self.in_doubt = in_doubt
        self._connection = connection
        self._queries = queries
        self._ambient = ambient

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        values = {name: _plain(value) for name, value in parameters.items()} | self._ambient
        found: list[Row] = []
        for statement in self._queries[query].statements:
            if statement.startswith("SELECT"):
                found += self._select(statement, values)
                continue
            cursor = self._connection.execute(statement, values)
            if cursor.description:
                found += convert_rows(cursor.fetchall(), _names(cursor), _CONVERTERS)
        return found

    def _select(self, statement: str, values: dict[str, object]) -> list[Row]:
        """Return the rows of *statement*, fetched as one row that holds each column as a JSON array.

        The sqlite3 module lets go of the interpreter at every row, and a thread that computes may then keep it for
        5 ms: row by row, to claim 500 jobs takes up to a second beside one busy handler.
        """
        if statement not in _GATHERED:
            names = _names(self._connection.execute(f"SELECT * FROM ({statement}) LIMIT 0", values))  # noqa: S608
            columns = ", ".join(f'json_group_array("{name}")' for name in names)
            _GATHERED[statement] = f"SELECT {columns} FROM ({statement})", names  # noqa: S608
        gathered, names = _GATHERED[statement]
        try:
            (row,) = self._connection.execute(gathered, values)
        except sqlite3.DataError:  # a column of more than a gigabyte
            return convert_rows(self._connection.execute(statement, values).fetchall(), names, _CONVERTERS)
        return convert_columns(map(_array.decode, row), names, _CONVERTERS)


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


def prepared(path: Path) -> bool:
    """Return whether our tables are in the file, without changing as much as the way it keeps its journal."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'mainspring_schema'")
            return bool(found.fetchone()[0])
    except sqlite3.Error:
        return True  # let it be opened in earnest, which says what is wrong


def _check_not_forked(path: Path) -> None:
    """Refuse a file that was open when this process was forked.

    SQLite would believe that it holds the parent's locks and take none of its own. The parent, closing, would then
    remove the write-ahead log with the jobs that were enqueued here.
    """
    if any(pid != os.getpid() and known == path for pid, known in _open_files):
        raise StoreError(f"{path} was open when this process was forked, so it can't be used here; close it before")


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]


def _plain(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, timedelta):
        return value // MICROSECOND
    return microseconds(value) if isinstance(value, datetime) else value


_DURABILITY = {
    "extra": "survives a killed process and a power loss (synchronous=EXTRA)",
    "full": "survives a killed process and a power loss (synchronous=FULL)",
    "normal": "survives a killed process; a power loss may take the last commits (synchronous=NORMAL)",
}
