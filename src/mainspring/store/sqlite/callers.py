"""A caller's own connection to a SQLite file: may we write on it, and how to without disturbing him."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mainspring.store.callers import refused


class PlainConnection:
    """Somebody's connection without the row factory and the kind of cursor that he set there."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        return sqlite3.Cursor(self._connection).execute(statement, values)


def check_usable(connection: object, path: Path) -> sqlite3.Connection:
    """Return *connection*, or say why nothing can be written on it to the file at *path*."""
    if not isinstance(connection, sqlite3.Connection):
        raise refused(connection, "the app's database is a SQLite file, for which it must be one of sqlite3")
    try:
        with _plain_text(connection):
            _, _, file = PlainConnection(connection).execute("PRAGMA database_list").fetchone()
    except sqlite3.ProgrammingError as error:  # closed, or made by another thread
        raise refused(connection, str(error).rstrip(".")) from None
    # Not one that is attached: where a crash comes between, SQLite commits to one of two files and not to the other.
    if not file or not _same(Path(file), path):
        raise refused(connection, f"its main database is {file or 'in memory'}, and the app's is {path}")
    return connection


@contextmanager
def joined(connection: sqlite3.Connection) -> Iterator[PlainConnection]:
    """Let the block write in the transaction of *connection*, all or nothing.

    Where none is open, one is left open if that is what the driver does at the first INSERT. It does not see that ours
    begin with WITH, and would commit each of them at once.
    """
    plain = PlainConnection(connection)
    with _plain_text(connection):
        if not connection.in_transaction and _begins_by_itself(connection):
            plain.execute(f"BEGIN {connection.isolation_level}")
        plain.execute("SAVEPOINT mainspring")  # in autocommit mode that begins a transaction, and its release commits
        try:
            yield plain
            plain.execute("RELEASE mainspring")
        except BaseException:
            if connection.in_transaction:  # a full disk, for one, undoes everything
                plain.execute("ROLLBACK TO mainspring")
                plain.execute("RELEASE mainspring")
            raise


def _begins_by_itself(connection: sqlite3.Connection) -> bool:
    autocommit = getattr(connection, "autocommit", -1)  # from Python 3.12 on; -1 leaves it to isolation_level
    return autocommit == -1 and connection.isolation_level is not None


@contextmanager
def _plain_text(connection: sqlite3.Connection) -> Iterator[None]:
    before = connection.text_factory
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = before


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
