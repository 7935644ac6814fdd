"""A PostgreSQL server as a Database.

No state lives in a server session: no prepared transaction, no session lock, no temporary table, no SET. So any
call can run on any connection, and a pooler in transaction mode may sit in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryLoader

from mainspring.clock import Clock, SystemClock, microseconds, moment, random_bits
from mainspring.errors import StoreError, StoreReadOnly
from mainspring.store.callers import refused
from mainspring.store.database import LEFT_TO_US, Migration, Probe, Row, Runner
from mainspring.store.migrate import load_migrations
from mainspring.store.postgres.callers import PlainCursor, check_usable, idle
from mainspring.store.postgres.connections import (
    Connections,
    DeadlineConnection,
    LentConnection,
    connect,
    connect_to_lend,
    discard,
)
from mainspring.store.postgres.errors import (
    CONFLICTS,
    commit_in_doubt,
    connection_lost,
    no_partition,
    read_only,
    translate,
)
from mainspring.store.postgres.wake import PostgresListener, Waker
from mainspring.store.queries import load_queries, to_percent_style
from mainspring.store.rows import INSTANTS, MODEL_CONVERTERS, Converter, convert_rows, distinct

T = TypeVar("T")

_PACKAGE = "mainspring.store.postgres"
_CONNECTIONS = 4
_MIGRATION_PATIENCE = 600.0
_YEAR_2000 = microseconds(datetime(2000, 1, 1, tzinfo=UTC))
_CONVERTERS: Mapping[str, Converter] = {
    **MODEL_CONVERTERS,
    **dict.fromkeys(INSTANTS, distinct(lambda since_2000: moment(_YEAR_2000 + since_2000))),
}

PLANNED_ANEW = frozenset(
    {"get", "get_unfinished", "page_schedules", "record_lines", "logs", "few", "page_few"}
    | {"count_waiting", "count_waiting_of", "count_running"}
    | {f"{query}{way}" for query in ("page", "look_back") for way in ("", "_of", "_ended")}
)
"""Queries for which one plan would be a bad one: filters may be absent, or a table was empty when the plan was made."""

_END_WHEN_SILENT = "; SET LOCAL idle_in_transaction_session_timeout = '10s'"


class PostgresDatabase:
    """Runs named queries on a PostgreSQL server."""

    def __init__(self, url: str, *, clock: Clock | None = None, patience: float = 5, deadline: float = 15) -> None:
        """*patience* is for one statement; no new try of a call begins after *deadline*. Both are in seconds."""
        self.migrations = load_migrations(_PACKAGE)
        self._url = url
        # A clock that was given tells the time in place of the server; waits and deadlines are always real.
        self._clock: Clock = SystemClock()
        self._teller = clock
        self._patience = patience
        self._deadline = deadline
        self._statements = {
            query.name: to_percent_style(query.statements[0]) for query in load_queries(_PACKAGE).values()
        }
        self._connections = Connections(self._connect, limit=_CONNECTIONS)
        self._pooled = False
        self._waker = Waker(url, self._clock, self._statements["notify"])
        self._listeners: set[PostgresListener] = set()
        self._joined: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._identity: tuple[str, int] | None = None
        self._check_reachable()

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        return self.attempt(lambda session: session.run(query, **parameters))

    def read(self, query: str, /, **parameters: object) -> list[Row]:
        return self._persist(lambda session: session.run(query, **parameters), writes=False)

    def attempt(self, work: Callable[[Runner], T]) -> T:
        return self._persist(work)

    def transact(self, work: Callable[[Runner], T]) -> T:
        def in_transaction(session: _Session) -> T:
            with _transaction(session.connection):
                return work(session)

        return self._persist(in_transaction)

    @contextmanager
    def lend(self, finish: Callable[[Runner], T]) -> Iterator[LentConnection]:
        lent, begun = self._persist(lambda _: self._begin_to_lend())
        try:
            yield lent
            self._finish_lent(lent, begun, finish)
        except BaseException:
            lent.patience = self._patience
            _roll_back(lent)
            raise
        finally:
            discard(lent)

    def join(self, connection: object, work: Callable[[Runner], T], topics: Collection[str], *, steps: bool) -> T:
        self._connections.check_usable()
        callers = check_usable(connection)
        session = _CallersSession(callers, self._statements, self._told_time(), in_doubt=False)
        if callers not in self._joined:
            self._check_same_database(session)
            self._joined.add(callers)
        if steps and idle(callers) and not callers.autocommit:
            session.run("identity")  # begins the transaction as he wants it, so that ours is not the outer one
        # One statement is atomic by itself; a savepoint each would make a large transaction slow for everybody.
        with callers.transaction() if steps else nullcontext():
            done = work(session)
        if idle(callers):
            self.wake(topics)
        elif not self._pooled:
            self._waker.wake_later(topics)
        return done

    def wake(self, topics: Collection[str]) -> None:
        # Nobody can listen through a pooler in transaction mode, so where there is one, there is only polling.
        if topics and not self._pooled:
            self._waker.wake(topics)

    def listen(self, topics: Collection[str]) -> PostgresListener:
        self._connections.check_usable()
        listener = PostgresListener(self._url, self._clock, topics, forget=self._listeners.discard)
        self._listeners.add(listener)
        return listener

    def version(self) -> int:
        if self.read("version") == [(0,)]:
            return 0
        return int(self.read("last_migration")[0][0] or 0)

    def in_use_by_others(self) -> bool:
        return bool(self.read("tables") != [(0,)])

    def apply(self, migrations: Sequence[Migration]) -> list[Migration]:
        def in_transaction(session: _Session) -> list[Migration]:
            with _transaction(session.connection):
                session.run("lock_migrations")
                # Even where it changes nothing, CREATE SCHEMA needs a right that an application's role may lack.
                if session.run("has_room") == [(False,)]:
                    session.run("make_room")
                session.run("begin_schema")
                done = session.run("last_migration")[0][0] or 0
                missing = [migration for migration in migrations if migration.number > done]
                for migration in missing:
                    session.connection.execute(migration.script.encode())
                    session.run("record_migration", version=migration.number, name=migration.name)
                session.run("open_days")
                return missing

        return self._persist(in_transaction, patience=_MIGRATION_PATIENCE)

    def probe(self) -> Probe:
        asked, ((version, where, *settings, standby, lacking, clock),) = self._clock.now(), self.read("probe")
        # The server read its clock at some moment between our question and its answer; take the middle.
        middle = asked + (self._clock.now() - asked) / 2
        if standby:
            raise StoreReadOnly("the server is read-only (a standby?); point the address at the primary")
        started = self._clock.steady()
        self.run("trial_commit")
        commit = timedelta(seconds=self._clock.steady() - started)
        durability, problems = _judge(*settings)
        if lacking:
            problems.append(f"the database user lacks rights on {lacking}; grant what docs/operating.md says")
        return Probe(
            kind="postgresql",
            version=version.split(" on ")[0],
            location=where,
            durability=durability,
            commit=commit,
            clock=clock,
            clock_difference=clock - middle,
            problems=tuple(problems),
        )

    def close(self) -> None:
        if self._connections.inherited:
            return  # to close them would log the parent out
        listeners = tuple(self._listeners)
        for listener in listeners:
            listener.end()
        for listener in listeners:
            listener.close()
        self._waker.close()
        self._connections.close()

    def _connect(self) -> DeadlineConnection:
        connection = connect(self._url, timeout=self._patience)
        self._pooled = connection.pooled
        if self._pooled:
            connection.prepare_threshold = None
        _take_instants_as_numbers(connection)
        return connection

    def _begin_to_lend(self) -> tuple[LentConnection, str]:
        """Return a new connection, for nobody knows what the next borrower would find, and its transaction's id."""
        connection = connect_to_lend(self._url, self._patience)
        try:
            if self._pooled:
                connection.prepare_threshold = None
            (begun,) = connection.execute(self._statements["transaction_id"].encode()).fetchone() or ("",)
        except BaseException:
            connection.close()
            raise
        connection.patience = None
        return connection, str(begun)

    def _finish_lent(self, lent: LentConnection, begun: str, finish: Callable[[Runner], T]) -> None:
        if lent.closed and not lent.broken:
            raise StoreError(LEFT_TO_US)
        if lent.pgconn.transaction_status == TransactionStatus.INERROR:
            raise StoreError(
                "a statement in the transaction block failed, and its error was not let through; "
                "nothing that was written is kept and the job was not settled"
            )
        own = lent.take_back(self._patience)
        _take_instants_as_numbers(own)
        session = self._session(own, in_doubt=False)
        try:
            # The id tells a transaction that the block has begun by itself, in SQL, from ours.
            if session.run("transaction_id") != [(begun,)]:
                raise StoreError(LEFT_TO_US)
            self._persist_within(session, finish)
        except psycopg.Error as error:
            raise translate(error, self._url) from error
        try:
            own.execute("COMMIT")
        except psycopg.Error as error:
            raise commit_in_doubt(error, self._url) from error

    def _persist_within(self, session: _Session, work: Callable[[Runner], T]) -> None:
        """Call *work* in a transaction that can't be repeated as a whole, until nobody is in its way."""
        give_up = self._clock.steady() + self._deadline
        for pause in _pauses():
            session.connection.execute(f"SAVEPOINT mainspring{_END_WHEN_SILENT}".encode())
            try:
                work(session)
                return
            except psycopg.Error as error:
                passing = no_partition(error) or isinstance(error, CONFLICTS)
                if not passing or self._clock.steady() + pause > give_up:
                    raise
                session.connection.execute("ROLLBACK TO mainspring")
                if no_partition(error):
                    self.run("open_days")
            self._clock.sleep(pause)

    def _check_reachable(self) -> None:
        """Fail at once when the server is not there: patience is for one that was there before."""
        try:
            with self._connections.borrow(self._patience) as connection:
                encoding = connection.info.parameter_status("server_encoding")
        except psycopg.Error as error:
            raise translate(error, self._url) from error
        if encoding != "UTF8":
            self._connections.close()
            raise StoreError(
                f"expected a database with the encoding UTF8, got {encoding}; create one with ENCODING 'UTF8'"
            )

    def _persist(self, work: Callable[[_Session], T], *, patience: float | None = None, writes: bool = True) -> T:
        """Call *work* until it succeeds, fails for good, or the deadline passes."""
        give_up = self._clock.steady() + self._deadline
        in_doubt = False
        for pause in _pauses():
            try:
                with self._connections.borrow(patience or self._patience) as connection:
                    return work(self._session(connection, in_doubt))
            except psycopg.Error as error:
                if no_partition(error):
                    self.run("open_days")
                elif connection_lost(error):
                    # The server may have committed without our hearing of it.
                    in_doubt = True
                    self._connections.drop_idle()
                elif isinstance(error, errors.UniqueViolation):
                    in_doubt = True
                elif not isinstance(error, CONFLICTS):
                    if read_only(error):  # perhaps a primary that became a standby: look for the new one next time
                        self._connections.drop_idle()
                    raise translate(error, self._url) from error
                if self._clock.steady() + pause > give_up:
                    raise translate(error, self._url, in_doubt=in_doubt and writes) from error
            self._clock.sleep(pause)
        raise AssertionError("pauses never end")

    def _session(self, connection: DeadlineConnection, in_doubt: bool) -> _Session:
        return _Session(connection, self._statements, self._told_time(), in_doubt)

    def _told_time(self) -> datetime | None:
        return self._teller.now() if self._teller else None

    def _check_same_database(self, session: _CallersSession) -> None:
        """Refuse a connection to another database, by what the servers say: its address may be that of a pooler."""
        ((database, began, location),) = session.run("identity")
        if (database, began) == self._identity:
            return
        ((own_database, own_began, own_location),) = self.read("identity")
        self._identity = own_database, own_began
        if (database, began) != self._identity:
            raise refused(
                session.connection,
                f"it leads to the database {database!r} on the server at {location}, and the app's is {own_database!r} "
                f"on the server at {own_location}",
            )


def _take_instants_as_numbers(connection: DeadlineConnection) -> None:
    """Take an instant as it is sent: microseconds since 2000, in UTC.

    So it needs no look at the time zone of the session, and is made a datetime once for all the jobs that share it.
    """
    connection.adapters.register_loader("timestamptz", Int8BinaryLoader)


@contextmanager
def _transaction(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Open a transaction around a block.

    The server ends it when we fall silent: a node that is cut off would else hold its row locks until TCP gives up,
    and every other node would skip those rows for hours.
    """
    connection.execute(f"BEGIN ISOLATION LEVEL READ COMMITTED{_END_WHEN_SILENT}".encode())
    try:
        yield
    except BaseException:
        _roll_back(connection)
        raise
    connection.execute("COMMIT")


def _roll_back(connection: psycopg.Connection[Any]) -> None:
    if connection.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")


class _Session:
    """Runs named queries on one borrowed connection."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        statements: Mapping[str, str],
        now: datetime | None,
        in_doubt: bool,
    ) -> None:
        self.connection = connection
        self._statements = statements
        self.in_doubt = in_doubt
        self._ambient: dict[str, object] = {"now": now}

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        cursor = self._cursor()
        cursor.execute(self._statements[query].encode(), parameters | self._ambient, prepare=self._prepared(query))
        if cursor.description is None:
            return []
        return convert_rows(cursor.fetchall(), [column.name for column in cursor.description], _CONVERTERS)

    def _cursor(self) -> psycopg.Cursor[Any]:
        return self.connection.cursor(binary=True)

    def _prepared(self, query: str) -> bool | None:
        return False if query in PLANNED_ANEW else None


class _CallersSession(_Session):
    """Runs named queries on a caller's connection, and leaves nothing behind in his session."""

    def _cursor(self) -> psycopg.Cursor[Any]:
        return PlainCursor(self.connection)

    def _prepared(self, query: str) -> bool | None:  # noqa: ARG002
        return False


def _pauses() -> Iterator[float]:
    """Yield seconds to wait between tries: growing, and jittered so that a fleet does not come back as one."""
    longest = 0.05
    while True:
        yield longest * (0.5 + random_bits(16) / (1 << 17))
        longest = min(1.0, longest * 2)


def _judge(fsync: str, full_page_writes: str, synchronous_commit: str, standbys: str) -> tuple[str, list[str]]:
    """Return in words what an acknowledged commit survives, and what is wrong with that."""
    problems = []
    if fsync != "on":
        problems.append("fsync is off: a crash can corrupt the database; set fsync = on")
    if full_page_writes != "on":
        problems.append("full_page_writes is off: a crash can corrupt the database; set full_page_writes = on")
    if synchronous_commit == "off":
        problems.append("synchronous_commit is off: a crash loses acknowledged jobs; set synchronous_commit = on")
    if problems:
        return "does not survive every crash of the server", problems
    if standbys and synchronous_commit in ("on", "remote_apply", "remote_write"):
        return f"survives a crash of the server and a failover (synchronous standby: {standbys})", []
    return "survives a crash of the server; a failover may lose the last commits (no synchronous standby)", []
