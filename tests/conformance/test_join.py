"""Enqueue on a caller's own connection: the job exists exactly if his rows do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import JsonbDumper

from mainspring.errors import InvalidValue, StoreError
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store import chunks, open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected, execute
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session, stored
from tests.support.postgres import database
from tests.support.refusal import refusing


@pytest.fixture
def sqlite_url(sqlite_url: str) -> str:
    """A SQLite file in which the application has a table of its own, beside ours."""
    execute(sqlite_url, "CREATE TABLE orders (number INTEGER)")
    return sqlite_url


@pytest.fixture
def postgres_url(postgres_url: str) -> str:
    """A PostgreSQL database, likewise."""
    execute(postgres_url, "CREATE TABLE orders (number INTEGER)")
    return postgres_url


@pytest.fixture
def conn(url: str, store: SqlStore) -> Iterator[Any]:
    with connected(url) as opened:
        yield opened


def order(connection: Any, number: int = 1) -> None:
    connection.execute(f"INSERT INTO orders VALUES ({number})")


def orders(url: str) -> list[int]:
    return [number for (number,) in execute(url, "SELECT number FROM orders ORDER BY number")]


# --- both or neither -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order_first", [True, False])
def test_a_commit_keeps_the_rows_and_the_job(url: str, store: SqlStore, conn: Any, order_first: bool) -> None:
    given = new_job()
    if order_first:
        order(conn)
    assert store.enqueue([given], conn) == [given.id]
    if not order_first:
        order(conn)
    assert (orders(url), store.get([given.id])) == ([], {})

    conn.commit()

    assert orders(url) == [1]
    assert stored(store, given.id).state is JobState.READY


@pytest.mark.parametrize("order_first", [True, False])
@pytest.mark.parametrize("wishes", [{}, {"key": "k"}, {"delay": timedelta(hours=1)}])
def test_a_rollback_keeps_neither(
    url: str, store: SqlStore, conn: Any, order_first: bool, wishes: dict[str, Any]
) -> None:
    for _ in range(2):  # at the second time the connection is known already
        if order_first:
            order(conn)
        store.enqueue([new_job(**wishes)], conn)
        if not order_first:
            order(conn)

        conn.rollback()

        assert orders(url) == []
        assert store.page() == []


def test_a_connection_that_closes_uncommitted_keeps_neither(url: str, store: SqlStore) -> None:
    with connected(url) as conn:
        order(conn)
        store.enqueue([new_job()], conn)

    assert orders(url) == []
    assert store.page() == []


def test_a_batch_is_part_of_it_whole_and_in_order(store: SqlStore, conn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST", 2)
    jobs = new_jobs(5)

    assert store.enqueue(jobs, conn) == [job.id for job in jobs]
    assert store.page() == []
    conn.commit()

    claimed = store.claim(opened_session(store), "default", 9)
    assert [job.id for job in claimed] == [job.id for job in jobs]


def test_a_delay_counts_from_the_enqueue_by_the_databases_clock(
    store: SqlStore, conn: Any, clock: SettableClock
) -> None:
    given = new_job(delay=timedelta(minutes=10))

    store.enqueue([given], conn)
    conn.commit()

    assert stored(store, given.id).run_at == clock.now() + timedelta(minutes=10)


def test_a_key_stands_for_the_unfinished_job_inside_and_outside(store: SqlStore, conn: Any) -> None:
    first, inside = new_job(key="a"), new_job(key="b")
    store.enqueue([first])

    assert store.enqueue([new_job(key="a"), inside], conn) == [first.id, inside.id]
    assert store.enqueue([new_job(key="b")], conn) == [inside.id]
    conn.commit()

    assert store.enqueue([new_job(key="a"), new_job(key="b")]) == [first.id, inside.id]


def test_the_drivers_own_block_decides(url: str, store: SqlStore, conn: Any) -> None:
    def change_my_mind() -> None:
        with conn:
            order(conn)
            store.enqueue([new_job()], conn)
            raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError):
        change_my_mind()

    assert orders(url) == []
    assert store.page() == []


def test_a_savepoint_of_the_callers_takes_the_job_back_alone(url: str, store: SqlStore, conn: Any) -> None:
    order(conn)
    conn.execute("SAVEPOINT mine")
    store.enqueue([new_job(key="k")], conn)
    conn.execute("ROLLBACK TO mine")
    kept = new_job()
    store.enqueue([kept], conn)
    conn.commit()

    assert orders(url) == [1]
    assert [job.id for job in store.page()] == [kept.id]


# --- outside of a transaction ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wishes", [{}, {"key": "k"}])
def test_in_autocommit_mode_it_commits_by_itself(url: str, store: SqlStore, wishes: dict[str, Any]) -> None:
    own: dict[str, Any] = {"isolation_level": None} if url.startswith("sqlite") else {"autocommit": True}
    with connected(url, **own) as conn:
        given = new_job(**wishes)
        assert store.enqueue([given], conn) == [given.id]

        assert stored(store, given.id).key == given.key


def test_a_transaction_begun_in_sql_in_autocommit_mode_counts(url: str, store: SqlStore) -> None:
    own: dict[str, Any] = {"isolation_level": None} if url.startswith("sqlite") else {"autocommit": True}
    with connected(url, **own) as conn:
        for end in ("ROLLBACK", "COMMIT"):
            conn.execute("BEGIN")
            order(conn)
            store.enqueue([new_job(key="k")], conn)
            assert store.page() == []
            conn.execute(end)

    assert orders(url) == [1]
    assert len(store.page()) == 1


def test_the_first_statement_begins_the_transaction_as_the_caller_wants_it(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with connected(postgres_url) as conn:
        conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        for wishes in ({}, {"key": "k"}):
            store.enqueue([new_job(**wishes)], conn)
            assert conn.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
            conn.rollback()
    assert store.page() == []
    store.close()


# --- what fails leaves nothing ---------------------------------------------------------------------------------


def test_a_batch_that_fails_on_the_way_leaves_the_callers_transaction_as_it_was(
    url: str, store: SqlStore, conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST", 2)
    jobs = [*new_jobs(4), new_job(task="last")]

    with refusing(url, "INSERT", "jobs", when="NEW.task = 'last'"):
        order(conn)
        with pytest.raises((sqlite3.IntegrityError, psycopg.errors.RaiseException), match="refused"):
            store.enqueue(jobs, conn)
        order(conn, 2)
        conn.commit()

    assert orders(url) == [1, 2]
    assert store.page() == []


def test_an_error_is_passed_on_and_nothing_tried_again(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with connected(postgres_url) as conn, connected(postgres_url) as other:
        conn.execute("SET lock_timeout = '50ms'")
        store.enqueue([new_job(key="k")], other)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            store.enqueue([new_job(key="k")], conn)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            store.enqueue([new_job(key="k")], conn)
    store.close()


def test_a_file_that_another_has_locked_is_the_drivers_matter(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    with connected(sqlite_url) as other, connected(sqlite_url, timeout=0) as conn:
        order(other)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            store.enqueue([new_job()], conn)
    store.close()


# --- the caller's own taste -------------------------------------------------------------------------------------


def test_the_callers_taste_is_neither_in_the_way_nor_changed(url: str, store: SqlStore, conn: Any) -> None:
    if url.startswith("sqlite"):
        conn.row_factory = lambda cursor, row: {"only": row[0]}
        conn.text_factory = bytes
        taste = ["row_factory", "text_factory", "isolation_level"]
    else:
        conn.row_factory = dict_row
        conn.cursor_factory = psycopg.ClientCursor
        conn.prepare_threshold = 0
        for name in ("uuid", "text", "timestamptz", "int8"):
            conn.adapters.register_loader(name, psycopg.types.string.TextLoader)
        conn.adapters.register_dumper(str, JsonbDumper)
        taste = ["row_factory", "cursor_factory", "prepare_threshold", "autocommit", "isolation_level"]
    before = [getattr(conn, name) for name in taste]
    first = new_job(key="k")

    store.enqueue([first], conn)
    assert store.enqueue([new_job(key="k"), new_job()], conn)[0] == first.id
    conn.commit()

    assert [getattr(conn, name) for name in taste] == before
    assert len(store.page()) == 2


def test_the_callers_session_is_left_as_it_was(postgres_url: str) -> None:
    store = open_store(postgres_url)
    settings = "SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'transaction%' ORDER BY name"
    with connected(postgres_url) as conn:
        conn.execute("SET search_path = pg_catalog")
        before = conn.execute(settings).fetchall()
        conn.commit()

        for _ in range(7):
            store.enqueue([new_job(), new_job(key="k")], conn)
        assert conn.execute(settings).fetchall() == before
        conn.commit()

        assert conn.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    store.close()


# --- what will not do ------------------------------------------------------------------------------------------


def closed(conn: Any) -> Any:
    conn.close()
    return conn


class Later(psycopg.AsyncConnection[Any]):
    """One for coroutines, made without a server."""

    def __init__(self) -> None:
        pass

    def __del__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (closed, "closed"),
        (lambda conn: conn.cursor(), "for which it must be one of"),
        (lambda conn: "sqlite:///shop.db", "'sqlite:///shop.db'"),
        (lambda conn: None, "got: None; leave conn out"),
        (lambda conn: Later(), "it is one for coroutines"),
    ],
)
def test_what_is_no_open_connection_is_refused(
    url: str, store: SqlStore, conn: Any, make: Callable[[Any], object], words: str
) -> None:
    with pytest.raises(InvalidValue, match=f"expected conn to be an open connection.*{words}"):
        store.enqueue([new_job()], make(conn))

    assert store.page() == []


def test_a_connection_to_another_file_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    store = open_store(sqlite_url)
    open_store(f"sqlite:///{tmp_path / 'other.db'}").close()
    for place, named in ((str(tmp_path / "other.db"), "other.db"), (":memory:", "in memory")):
        with connected(f"sqlite:///{place}") as other:
            with pytest.raises(InvalidValue, match=f"its main database is .*{named}, and the app's is .*mainspring.db"):
                store.enqueue([new_job()], other)
            other.execute("ATTACH ? AS ours", [sqlite_url.removeprefix("sqlite:///")])
            with pytest.raises(InvalidValue, match="its main database is"):
                store.enqueue([new_job()], other)
    assert store.page() == []
    store.close()


def test_a_file_by_another_path_is_the_same_file(sqlite_url: str, tmp_path: Path) -> None:
    store = open_store(sqlite_url)
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    with connected(f"sqlite:///{tmp_path / 'link' / 'mainspring.db'}") as conn:
        store.enqueue([new_job()], conn)
        conn.commit()
    assert len(store.page()) == 1
    store.close()


def test_a_connection_to_another_database_of_the_server_is_refused(
    postgres_url: str, postgres_server: str, migrated_template: str
) -> None:
    store = open_store(postgres_url)
    with database(postgres_server, "other_shop", migrated_template) as other, connected(other) as conn:
        for _ in range(2):
            with pytest.raises(
                InvalidValue, match=r"leads to the database 'other_shop' on the server at .* the app's is"
            ):
                store.enqueue([new_job()], conn)
    assert store.page() == []
    store.close()


def test_a_connection_of_the_other_kind_is_refused(sqlite_url: str, postgres_url: str) -> None:
    for own, others, words in ((sqlite_url, postgres_url, "a SQLite file"), (postgres_url, sqlite_url, "PostgreSQL")):
        store = open_store(own)
        with connected(others) as conn, pytest.raises(InvalidValue, match=f"the app's database is {words}"):
            store.enqueue([new_job()], conn)
        store.close()


def test_a_failed_transaction_is_refused(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with connected(postgres_url) as conn:
        with pytest.raises(psycopg.Error):
            conn.execute("SELECT * FROM nowhere")
        with pytest.raises(InvalidValue, match="a statement in its transaction has failed"):
            store.enqueue([new_job()], conn)
        conn.rollback()
        with conn.pipeline(), pytest.raises(InvalidValue, match="pipeline mode"):
            store.enqueue([new_job()], conn)
    assert store.page() == []
    store.close()


def test_a_connection_of_another_thread_is_refused(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    with connected(sqlite_url) as conn, ThreadPoolExecutor(1) as threads:
        with pytest.raises(InvalidValue, match="created in a thread can only be used in that same thread"):
            threads.submit(store.enqueue, [new_job()], conn).result()
    assert store.page() == []
    store.close()


def test_a_closed_store_takes_nothing(url: str) -> None:
    store = open_store(url)
    with connected(url) as conn:
        store.close()
        with pytest.raises(StoreError, match="the store is closed"):
            store.enqueue([new_job()], conn)


# --- beside the rest ---------------------------------------------------------------------------------------------


def test_a_job_enqueued_in_a_handlers_block_is_part_of_it(url: str, store: SqlStore) -> None:
    def work(trouble: Exception | None) -> None:
        job = claimed_job(store)
        with store.transaction(lambda: settle(job, Succeeded("1"))) as connection:
            order(connection)
            assert store.enqueue([new_job(key="k", queue="next")], connection)
            if trouble:
                raise trouble

    with pytest.raises(RuntimeError, match="out of stock"):
        work(RuntimeError("out of stock"))
    assert "next" not in store.counts()

    work(None)
    assert store.counts()["next"] == {JobState.READY: 1}
    assert orders(url) == [1]


def test_listeners_hear_of_it_soon_after_the_commit(url: str) -> None:
    store = open_store(url)
    with closing(store.listen({"default", "other"})) as listener, connected(url) as conn:
        while listener.wait(0.3):
            pass
        store.enqueue([new_job()], conn)
        conn.commit()

        # SQLite can't tell which of them there is news of.
        assert "default" in listener.wait(20)
    store.close()


def test_a_store_that_closes_says_first_what_it_was_to_say_later(postgres_url: str) -> None:
    store, other = open_store(postgres_url), open_store(postgres_url)
    with closing(other.listen({"default"})) as listener, connected(postgres_url) as conn:
        while listener.wait(0.3):
            pass
        store.enqueue([new_job()], conn)
        conn.commit()
        store.close()

        assert listener.wait(20) == {"default"}
    other.close()
