"""Threads that write to one SQLite file: they share transactions, and nothing else."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from mainspring.errors import StoreError, StoreFull, StoreUnavailable
from mainspring.store.sqlite.file import SqliteFile
from mainspring.store.sqlite.writer import Writer, _Wanted
from tests.support.waiting import until

Work = Callable[[sqlite3.Connection], object]


class Turns:
    """A writer whose turn the test keeps until several threads wait for it."""

    def __init__(self, path: Path) -> None:
        file = SqliteFile(str(path), synchronous="normal", deadline=10)
        self.writer = Writer(file, "CREATE TEMP TABLE scratch (n)")
        self.connection = self.writer._connection
        self.writer.write(lambda connection: connection.execute("CREATE TABLE numbers (n INTEGER UNIQUE, text TEXT)"))
        self.commits = 0
        self.connection.set_trace_callback(self._trace)
        self._pool = ThreadPoolExecutor(32)

    def together(self, *works: Work) -> list[Future[object]]:
        """Have *works* wait, in this order, and then be done."""
        with self.writer._turn:
            futures: list[Future[object]] = []
            for number, work in enumerate(works, 1):
                futures.append(self._pool.submit(self.writer.write, work))
                until(lambda: len(self.writer._waiting) == number)  # noqa: B023
        return futures

    def numbers(self) -> list[int]:
        with closing(self.writer._file.connect()) as reader:
            return [n for (n,) in reader.execute("SELECT n FROM numbers ORDER BY n")]

    def _trace(self, statement: str) -> None:
        self.commits += statement == "COMMIT"


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Turns]:
    turns = Turns(tmp_path / "numbers.db")
    yield turns
    turns._pool.shutdown()
    turns.writer.close()
    turns.writer._file.close()


def put(n: int, text: str = "") -> Work:
    def work(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO numbers VALUES (?, ?)", (n, text))
        return n

    return work


def test_those_who_wait_share_a_commit_and_each_gets_its_own_answer(turns: Turns) -> None:
    futures = turns.together(*(put(n) for n in range(10)))

    assert [future.result() for future in futures] == list(range(10))
    assert turns.numbers() == list(range(10))
    assert turns.commits == 1


def test_a_transaction_is_shared_by_so_many_at_most(turns: Turns) -> None:
    futures = turns.together(*(put(n) for n in range(20)))

    assert [future.result() for future in futures] == list(range(20))
    assert turns.commits == 2


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_fails_on_the_way_takes_back_its_own_and_nothing_else(turns: Turns, place: int) -> None:
    def half(connection: sqlite3.Connection) -> None:
        put(100)(connection)
        raise RuntimeError("on the way")

    works = [put(0), put(1)]
    works.insert(place, half)
    futures = turns.together(*works)

    assert isinstance(futures.pop(place).exception(), RuntimeError)
    assert [future.result() for future in futures] == [0, 1]
    assert turns.numbers() == [0, 1]


def test_an_error_of_the_database_reaches_the_one_whose_it_is_as_ours(turns: Turns) -> None:
    first, twice, other = turns.together(put(1), put(1), put(2))

    assert (first.result(), other.result()) == (1, 2)
    error = twice.exception()
    assert isinstance(error, StoreError)
    assert isinstance(error.__cause__, sqlite3.IntegrityError)


def test_a_disk_that_one_of_them_fills_loses_nothing_that_was_answered(turns: Turns) -> None:
    turns.connection.execute("PRAGMA max_page_count = 12")
    futures = turns.together(put(0), put(1, "x" * 100_000), put(2))

    answered = [future.result() for future in futures if future.exception() is None]
    assert isinstance(futures[1].exception(), StoreFull)
    assert answered == [0, 2]
    assert sorted(turns.numbers()) == answered


def test_one_whose_transaction_failed_for_the_sake_of_another_is_done_by_itself(turns: Turns) -> None:
    waiting = _Wanted(put(0))
    turns.writer._waiting.append(waiting)
    turns.connection.execute("PRAGMA max_page_count = 12")

    with pytest.raises(StoreFull):
        turns.writer.write(put(1, "x" * 100_000))

    assert (waiting.done, waiting.outcome()) == (True, 0)
    assert turns.numbers() == [0]


def test_one_whose_thread_is_interrupted_in_the_work_of_another_leaves_that_to_the_other(turns: Turns) -> None:
    """As Ctrl-C does to a main thread that enqueues."""
    interrupted: list[int] = []

    def once(connection: sqlite3.Connection) -> int:
        if not interrupted:
            interrupted.append(threading.get_ident())
            raise KeyboardInterrupt
        return put(1)(connection)  # type: ignore[return-value]

    first, second, third = turns.together(put(0), once, put(2))

    errors = [type(future.exception()) for future in (first, second, third)]
    assert errors.count(KeyboardInterrupt) == 1
    written = {0: first, 1: second, 2: third}
    assert turns.numbers() == [n for n, future in written.items() if future.exception() is None]


def test_one_that_has_waited_for_too_long_is_not_done_later(turns: Turns) -> None:
    turns.writer._file.deadline = 0.05
    with turns.writer._turn, pytest.raises(StoreUnavailable, match="other threads of this process kept"):
        turns.writer.write(put(1))

    turns.writer.write(put(2))
    assert turns.numbers() == [2]


def test_what_must_be_durable_waits_for_no_commit_that_is_not(turns: Turns) -> None:
    levels: list[int] = []

    def look(connection: sqlite3.Connection) -> None:
        levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])

    turns.writer._file.synchronous = "full"
    turns.writer.write(look, durable=False)
    fleeting = _Wanted(look, durable=False)
    turns.writer._waiting.append(fleeting)
    turns.writer.write(look)
    turns.writer._waiting.append(_Wanted(look, durable=False))
    turns.writer.write(look, durable=False)

    assert fleeting.done
    assert levels == [1, 1, 2, 1, 1]


def test_what_need_not_be_durable_joins_what_must(turns: Turns) -> None:
    turns.writer.write(put(0))
    turns.writer._waiting.extend([_Wanted(put(1)), _Wanted(put(2), durable=False)])
    turns.commits = 0

    turns.writer.write(put(3))

    assert turns.commits == 1
    assert turns.numbers() == [0, 1, 2, 3]
