"""The file: how it is opened, and when it must not be."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

from mainspring.clock import SystemClock
from mainspring.errors import StoreError, StoreUnavailable
from mainspring.store.sqlite.ears import Ears
from mainspring.store.sqlite.errors import is_busy, translated

_SYNCHRONOUS = {"normal": 1, "full": 2, "extra": 3}

# Where what is sealed is kept, and how it is told from what is not. Where it takes least to look comes first.
_SEALED = r"""
SELECT EXISTS (SELECT 1 FROM mainspring_secrets)
    OR EXISTS (SELECT 1 FROM mainspring_schedules WHERE definition LIKE '%{ \"sealed\":\"%')
    OR EXISTS (SELECT 1 FROM mainspring_signals WHERE value LIKE '{ "sealed":"%')
    OR EXISTS (SELECT 1 FROM mainspring_steps WHERE result LIKE '{ "sealed":"%')
    OR EXISTS (SELECT 1 FROM mainspring_jobs WHERE payload LIKE '{ "sealed":"%' OR plan LIKE '%{ \"sealed\":\"%')
    OR EXISTS (
        SELECT 1
        FROM mainspring_jobs_done
        WHERE payload LIKE '{ "sealed":"%' OR result LIKE '{ "sealed":"%' OR plan LIKE '%{ \"sealed\":\"%'
    )
"""

_open_files: set[tuple[int, Path]] = set()
"""The files that this process has open, and those that it inherited from a parent that had them open."""


_making = threading.Lock()
"""Held while a file is made: to close it would let go of locks that SQLite has on it for another thread by then."""


class SqliteFile:
    """A SQLite file that this process has open until it is closed."""

    def __init__(self, path: str, *, synchronous: str, deadline: float) -> None:
        self.path = Path(path).resolve()
        self.synchronous = synchronous
        self.deadline = deadline
        self.closed = False
        self._clock = SystemClock()
        self._pid = os.getpid()
        _check_not_forked(self.path)
        _open_files.add((self._pid, self.path))

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that opened it."""
        return os.getpid() != self._pid

    def check_usable(self) -> None:
        if self.closed:
            raise StoreError("the store is closed")
        if self.inherited:
            raise StoreError("a SQLite store can't be used after a fork; close it before, and open it in the child")

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which waits for a lock by itself."""
        try:
            # Without its parents: where more than one folder is missing, the path is rather mistyped than new.
            self.path.parent.mkdir(exist_ok=True)
        except FileNotFoundError:
            raise StoreUnavailable(
                f"can't make the folder of {self.path}: there is no {self.path.parents[1]}; "
                "make it yourself or name another file"
            ) from None
        except OSError as error:
            raise StoreUnavailable(
                f"can't make the folder of {self.path}: {error.strerror}; make it yourself or name another file"
            ) from error
        _make_private(self.path)
        with translated(self.path):
            connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def patiently(self, connection: sqlite3.Connection, statement: str) -> sqlite3.Cursor:
        """Run a statement that takes a lock on the file, looking again while another process has it.

        SQLite's own wait sleeps up to 100 ms between looks, while a transaction here takes a millisecond or so;
        and it does not wait at all where it fears a deadlock, as in the switch to WAL.
        """
        give_up = self._clock.steady() + self.deadline
        pause = 0.0005
        while True:
            try:
                return connection.execute(statement)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or self._clock.steady() > give_up:
                    raise
            self._clock.sleep(pause)
            pause = min(0.01, pause * 1.5)

    def ears(self) -> Ears:
        """Return what hears when anybody commits: every commit is written to the log first."""
        return Ears(self.path.with_name(f"{self.path.name}-wal"))

    def inode(self) -> int:
        """Return what tells this file from another of its name; 0 when it is gone."""
        try:
            return os.stat(self.path).st_ino
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        self.closed = True
        _open_files.discard((self._pid, self.path))

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 5000")
        if self.patiently(connection, "PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreError(f"SQLite can't use its write-ahead log for {self.path}; is it on a network drive?")
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        if connection.execute("PRAGMA synchronous").fetchone() != (_SYNCHRONOUS[self.synchronous],):
            raise StoreError(f"SQLite refused synchronous={self.synchronous} for {self.path}")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")


def prepared(path: Path) -> bool:
    """Return whether our tables are in the file, without changing as much as the way it keeps its journal."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'mainspring_schema'")
            return bool(found.fetchone()[0])
    except sqlite3.Error:
        return True  # let it be opened in earnest, which says what is wrong


def holds_sealed(path: Path) -> bool:
    """Return whether anything in the file is sealed: with a key that somebody has, or has lost.

    All jobs are looked at where there is nothing. But that is asked once, when the first key is made.
    """
    if not path.exists():
        return False
    _check_not_forked(path)
    with translated(path), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        known = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'mainspring_secrets'")
        return bool(known.fetchone()[0]) and bool(connection.execute(_SEALED).fetchone()[0])


def _make_private(path: Path) -> None:
    """Make the file for its owner only, if it is not there: it holds the arguments of all jobs.

    SQLite would make it for everybody whom the umask lets read; its logs take over the mode that it has.
    """
    with _making, suppress(OSError):  # what is wrong with the place is told when it is opened
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _after_fork() -> None:
    global _making  # noqa: PLW0603 - the thread that had it, perhaps, is not there to let go
    _making = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _check_not_forked(path: Path) -> None:
    """Refuse a file that was open when this process was forked.

    SQLite would believe that it holds the parent's locks and take none of its own. The parent, closing, would then
    remove the write-ahead log with the jobs that were enqueued here.
    """
    if any(pid != os.getpid() and known == path for pid, known in _open_files):
        raise StoreError(
            f"{path} was open when this process was forked, so it can't be used here; call app.close() before the fork"
        )
