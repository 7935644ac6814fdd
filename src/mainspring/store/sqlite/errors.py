"""What SQLite's errors mean to a user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainspring.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise our own errors in place of SQLite's, in one sentence with the way out."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, path) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether somebody else has the file locked."""
    return _kind(error) == sqlite3.SQLITE_BUSY


def is_forbidden(error: sqlite3.Error) -> bool:
    """Return whether our own authorizer refused a statement."""
    return _kind(error) == sqlite3.SQLITE_AUTH


def is_taken(error: BaseException | None) -> bool:
    """Return whether a value that must be unique was there already."""
    taken = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE)
    return isinstance(error, sqlite3.IntegrityError) and error.sqlite_errorcode in taken


def _kind(error: sqlite3.Error) -> int:
    # The low byte is the kind; the rest are details, such as that the file is busy because it is being recovered.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _translate(error: sqlite3.Error, path: Path) -> StoreError:
    kind = _kind(error)
    if kind == sqlite3.SQLITE_READONLY:
        return StoreReadOnly(
            f"can't write to {path}: the file, its -wal or -shm, or its folder is read-only; change its permissions"
        )
    if kind == sqlite3.SQLITE_FULL:
        return StoreFull(f"can't write to {path}: the disk is full; free some space and try again")
    if kind == sqlite3.SQLITE_IOERR:
        return StoreUnavailable(f"the disk under {path} failed or is full; look at its free space and health ({error})")
    if kind == sqlite3.SQLITE_CANTOPEN:
        return StoreUnavailable(f"can't open {path}: check that its folder exists and may be written to")
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(f"another process kept {path} locked for too long; find it with `fuser {path}`")
    if kind == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path} is not a SQLite database; name another file")
    if kind == sqlite3.SQLITE_CORRUPT:
        return StoreError(f"{path} is damaged; restore it from a backup")
    return StoreError(f"SQLite failed on {path}: {error}")
