"""A SQLite file as a Database: one connection writes, see `writer`, and others read beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TypeVar

from mainspring.clock import Clock, SystemClock, microseconds
from mainspring.errors import StoreError
from mainspring.store.database import Migration, Probe, Row, Runner
from mainspring.store.migrate import load_migrations
from mainspring.store.queries import load_queries, split_statements
from mainspring.store.sqlite.callers import check_usable, joined
from mainspring.store.sqlite.errors import is_taken, translated
from mainspring.store.sqlite.file import SqliteFile
from mainspring.store.sqlite.runner import Executes, SqliteRunner
from mainspring.store.sqlite.wake import SqliteListener
from mainspring.store.sqlite.writer import Writer

T = TypeVar("T")

_PACKAGE = "mainspring.store.sqlite"
_IDLE_READERS = 4

FLEETING = frozenset({"promote", "claim", "beat", "take_alert"})
"""Queries whose work need not wait for the disk. A power loss ends every worker of the file along with it, so to find
a job ready there instead of held, or due instead of ready, or a lease as it was, or an alert not looked at yet, is no
loss. Until then all processes see what was done."""


class SqliteDatabase:
    """Runs named queries on a SQLite file."""

    def __init__(
        self, path: str, *, clock: Clock | None = None, synchronous: str = "full", deadline: float = 15
    ) -> None:
        self.migrations = load_migrations(_PACKAGE)
        # A clock that was given tells the time; waits and deadlines are always real.
        self._clock: Clock = SystemClock()
        self._teller = clock or self._clock
        self._queries = load_queries(_PACKAGE)
        self._file = SqliteFile(path, synchronous=synchronous, deadline=deadline)
        try:
            self._writer = Writer(self._file, *self._queries["scratch"].statements)
        except BaseException:
            self._file.close()
            raise
        self._readers: list[sqlite3.Connection] = []
        self._listeners: set[SqliteListener] = set()

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        def work(runner: Runner) -> list[Row]:
            return runner.run(query, **parameters)

        if query in FLEETING:
            return self._writer.write(lambda connection: work(self._runner(connection)), durable=False)
        return self.transact(work)

    def attempt(self, work: Callable[[Runner], T]) -> T:
        return self.transact(work)

    def transact(self, work: Callable[[Runner], T]) -> T:
        try:
            return self._writer.write(lambda connection: work(self._runner(connection)))
        except StoreError as error:
            if not is_taken(error.__cause__):
                raise
        return self._writer.write(lambda connection: work(self._runner(connection, in_doubt=True)))

    def read(self, query: str, /, **parameters: object) -> list[Row]:
        self._file.check_usable()
        self._writer.check_file()  # or what is told would be of jobs that are nowhere any more
        with translated(self._file.path):
            connection = self._take_reader()
            try:
                return self._runner(connection).run(query, **parameters)
            finally:
                self._keep_reader(connection)

    def lend(self, finish: Callable[[Runner], T]) -> AbstractContextManager[sqlite3.Connection]:
        return self._writer.lend(lambda connection: finish(self._runner(connection)))

    def join(
        self,
        connection: object,
        work: Callable[[Runner], T],
        topics: Collection[str],  # noqa: ARG002 - listeners see every commit to the file, whoever made it
        *,
        steps: bool,  # noqa: ARG002 - a savepoint costs nothing here
    ) -> T:
        self._file.check_usable()
        with joined(check_usable(connection, self._file.path)) as plain:
            return work(self._runner(plain))

    def wake(self, topics: Collection[str]) -> None:
        for listener in tuple(self._listeners):
            listener.hear(topics)

    def listen(self, topics: Collection[str]) -> SqliteListener:
        self._file.check_usable()
        with translated(self._file.path):
            listener = SqliteListener(
                self._file.connect(),
                self._file.ears,
                topics,
                self._writer.commits_of_others,
                self._listeners.discard,
            )
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
        def apply_missing(connection: sqlite3.Connection) -> list[Migration]:
            runner = self._runner(connection)
            runner.run("begin_schema")
            done = runner.run("last_migration")[0][0] or 0
            missing = [migration for migration in migrations if migration.number > done]
            for migration in missing:
                for statement in split_statements(migration.script):
                    connection.execute(statement)
                runner.run("record_migration", version=migration.number, name=migration.name)
            return missing

        return self._writer.write(apply_missing)

    def probe(self) -> Probe:
        started = self._clock.steady()
        self.run("trial_commit")
        commit = timedelta(seconds=self._clock.steady() - started)
        now = self._clock.now()
        return Probe(
            kind="sqlite",
            version=sqlite3.sqlite_version,
            location=str(self._file.path),
            durability=_DURABILITY[self._file.synchronous],
            commit=commit,
            clock=now,
            clock_difference=timedelta(0),
            problems=(),
        )

    def close(self) -> None:
        if self._file.inherited:
            return
        self._file.close()
        for listener in tuple(self._listeners):
            listener.close()
        while self._readers:
            self._readers.pop().close()
        self._writer.close()

    def _runner(self, connection: Executes, *, in_doubt: bool = False) -> SqliteRunner:
        ambient = {"now": microseconds(self._teller.now()), "steady": int(self._teller.steady() * 1_000_000)}
        return SqliteRunner(connection, self._queries, ambient, in_doubt)

    def _take_reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return self._file.connect()

    def _keep_reader(self, connection: sqlite3.Connection) -> None:
        if self._file.closed or len(self._readers) >= _IDLE_READERS:
            connection.close()
        else:
            self._readers.append(connection)


_DURABILITY = {
    "extra": "survives a killed process and a power loss (synchronous=EXTRA)",
    "full": "survives a killed process and a power loss (synchronous=FULL)",
    "normal": "survives a killed process; a power loss may take the last commits (synchronous=NORMAL)",
}
