"""Transaction: what a handler writes and the settlement of its job are kept together, or neither is."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from mainspring.errors import LeaseLost, StoreError, StoreUnavailable
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import Settlement, settle
from mainspring.model.outcome import Cancelled, Failed, Returned, Snoozed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute
from tests.support.factories import claimed_job, new_job, opened_session, stored

BOOM = Failure(type="ValueError", message="boom")


@pytest.fixture
def sqlite_url(sqlite_url: str) -> str:
    """A SQLite file in which the application has a table of its own, beside ours."""
    execute(sqlite_url, "CREATE TABLE letters (text TEXT)")
    return sqlite_url


@pytest.fixture
def postgres_url(postgres_url: str) -> str:
    """A PostgreSQL database, likewise."""
    execute(postgres_url, "CREATE TABLE letters (text TEXT)")
    return postgres_url


def letters(url: str) -> list[str]:
    return [text for (text,) in execute(url, "SELECT text FROM letters ORDER BY text")]


def write(connection: Any, text: str = "dear") -> None:
    connection.execute(f"INSERT INTO letters VALUES ('{text}')")


def succeeding(job: Job) -> Callable[[], Settlement]:
    return lambda: settle(job, Succeeded('"sent"'))


def in_transaction(store: SqlStore, job: Job, *steps: Callable[[Any], object]) -> None:
    with store.transaction(succeeding(job)) as connection:
        for step in steps:
            step(connection)


def sql(statement: str) -> Callable[[Any], object]:
    return lambda connection: connection.execute(statement)


# --- both or neither -----------------------------------------------------------------------------------------


def test_what_was_written_and_the_outcome_are_kept_together(url: str, store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    clock.advance("2s")

    with store.transaction(succeeding(job)) as connection:
        write(connection)
        assert letters(url) == []
        assert stored(store, job.id).state is JobState.RUNNING

    assert letters(url) == ["dear"]
    done = stored(store, job.id)
    assert (done.state, done.result, done.finished_at) == (JobState.SUCCEEDED, '"sent"', clock.now())


def test_an_exception_keeps_neither(url: str, store: SqlStore) -> None:
    job = claimed_job(store)
    trouble = RuntimeError("out of ink")

    def fail(connection: Any) -> None:
        raise trouble

    with pytest.raises(RuntimeError) as caught:
        in_transaction(store, job, write, fail)

    assert caught.value is trouble
    assert letters(url) == []
    assert stored(store, job.id) == job
    assert store.settle([succeeding(job)()]) == {job.id}


def test_an_error_of_the_database_reaches_the_handler_as_it_is(url: str, store: SqlStore) -> None:
    job = claimed_job(store)

    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        in_transaction(store, job, write, sql("SELECT * FROM nowhere"))

    assert letters(url) == []
    assert stored(store, job.id) == job


def test_a_stale_holder_keeps_nothing(url: str, store: SqlStore, clock: SettableClock) -> None:
    stale = claimed_job(store)
    clock.advance("1m")
    store.reap()
    (held,) = store.claim(opened_session(store), "default", 1)

    with pytest.raises(LeaseLost, match=f"job {stale.id} is no longer held under fence 1: its lease has ended"):
        with store.transaction(succeeding(stale)) as connection:
            write(connection)

    assert letters(url) == []
    assert stored(store, held.id) == held


def test_a_job_that_is_lost_while_the_block_runs_keeps_nothing(postgres_url: str) -> None:
    """On SQLite nobody can take it meanwhile."""
    store = open_store(postgres_url)
    job = claimed_job(store)

    with pytest.raises(LeaseLost):
        in_transaction(store, job, write, lambda _: store.settle([settle(job, Returned())]))

    assert stored(store, job.id).state is JobState.READY
    assert letters(postgres_url) == []
    store.close()


def test_what_becomes_of_the_job_is_asked_at_the_end_of_the_block(url: str, store: SqlStore) -> None:
    job = claimed_job(store)
    outcome: Succeeded | Cancelled = Succeeded("1")

    with store.transaction(lambda: settle(job, outcome)) as connection:
        write(connection)
        outcome = Cancelled("changed my mind")

    assert letters(url) == ["dear"]
    assert stored(store, job.id).state is JobState.CANCELLED


def test_a_settlement_that_cannot_be_made_keeps_nothing(url: str, store: SqlStore) -> None:
    job = claimed_job(store)

    def fail() -> Settlement:
        raise ValueError("no result")

    with pytest.raises(ValueError, match="no result"), store.transaction(fail) as connection:
        write(connection)

    assert letters(url) == []
    assert stored(store, job.id) == job


def test_a_job_may_go_on_after_the_block(url: str, store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)

    with store.transaction(lambda: settle(job, Snoozed(timedelta(hours=1)))) as connection:
        write(connection)

    assert letters(url) == ["dear"]
    assert stored(store, job.id).run_at == clock.now() + timedelta(hours=1)
    assert [past.outcome for past in store.attempts(job.id)] == ["snoozed"]


def test_a_wish_that_comes_before_the_end_of_the_block_is_granted(store: SqlStore) -> None:
    job = claimed_job(store)
    store.cancel([job.id], "stop")

    with store.transaction(lambda: settle(job, Failed(BOOM), Retry())):
        pass

    assert (stored(store, job.id).state, stored(store, job.id).reason) == (JobState.CANCELLED, "stop")


def test_a_job_given_back_wakes_its_queue(real_store: SqlStore) -> None:
    job = claimed_job(real_store)
    listener = real_store.listen({"default", "other"})
    while listener.wait(0.3):
        pass

    with real_store.transaction(lambda: settle(job, Returned())):
        pass

    assert listener.wait(20) == {"default"}
    listener.close()


def test_a_job_that_ends_wakes_nobody(real_store: SqlStore) -> None:
    job = claimed_job(real_store)
    listener = real_store.listen({"default"})
    while listener.wait(0.3):
        pass

    with real_store.transaction(succeeding(job)):
        pass

    assert listener.wait(0.3) == frozenset()
    listener.close()


def test_a_job_ends_in_a_block_on_a_day_that_nobody_prepared(url: str, store: SqlStore, clock: SettableClock) -> None:
    clock.advance("40d")
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        write(connection)

    assert letters(url) == ["dear"]
    assert stored(store, job.id).state is JobState.SUCCEEDED


# --- the block leaves the transaction alone --------------------------------------------------------------------


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_block_that_ends_its_transaction_is_told_so(url: str, store: SqlStore, end: str) -> None:
    job = claimed_job(store)

    with pytest.raises(StoreError, match="must leave commit and rollback to Mainspring"):
        in_transaction(store, job, write, lambda connection: getattr(connection, end)())

    assert letters(url) == []
    assert stored(store, job.id) == job


@pytest.mark.parametrize("again", [[], ["BEGIN"]])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_block_that_ends_its_transaction_in_sql_is_told_so(
    url: str, store: SqlStore, end: str, again: list[str]
) -> None:
    job = claimed_job(store)

    steps = [sql(statement) for statement in (end, *again)]
    with pytest.raises(StoreError, match="must leave commit and rollback to Mainspring"):
        in_transaction(store, job, write, *steps, lambda connection: write(connection, "late"))

    # SQLite refuses the statement; PostgreSQL can only be asked afterwards, when what was committed is committed.
    gone = url.startswith("postgres") and end == "COMMIT"
    assert letters(url) == (["dear"] if gone else [])
    assert stored(store, job.id) == job


def test_a_block_that_closes_the_connection_is_told_so(url: str, store: SqlStore) -> None:
    job = claimed_job(store)

    with pytest.raises(StoreError, match="must leave commit and rollback to Mainspring"):
        in_transaction(store, job, write, lambda connection: connection.close())

    assert letters(url) == []
    assert stored(store, job.id) == job


def test_the_drivers_own_block_would_commit_and_is_refused(url: str, store: SqlStore) -> None:
    job = claimed_job(store)

    with pytest.raises(StoreError, match="must leave commit and rollback to Mainspring"):
        with store.transaction(succeeding(job)) as connection, connection:
            write(connection)

    assert letters(url) == []
    assert stored(store, job.id) == job


def test_a_script_does_not_commit_on_sqlite(sqlite_url: str) -> None:
    """The driver commits before it runs a script, unless it is kept from that."""
    store = open_store(sqlite_url)
    job = claimed_job(store)

    with pytest.raises(StoreError, match="must leave commit and rollback to Mainspring"):
        in_transaction(store, job, write, lambda connection: connection.executescript("SELECT 1"))

    assert letters(sqlite_url) == []
    store.close()


def test_savepoints_are_the_blocks_own_matter(url: str, store: SqlStore) -> None:
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        write(connection, "one")
        connection.execute("SAVEPOINT mine")
        write(connection, "two")
        connection.execute("ROLLBACK TO mine")
        write(connection, "three")

    assert letters(url) == ["one", "three"]
    assert stored(store, job.id).state is JobState.SUCCEEDED


def test_the_driver_may_make_savepoints(postgres_url: str) -> None:
    store = open_store(postgres_url)
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        with connection.transaction():
            write(connection, "one")
        with suppress(psycopg.Error), connection.transaction():
            write(connection, "two")
            connection.execute("SELECT * FROM nowhere")

    assert letters(postgres_url) == ["one"]
    assert stored(store, job.id).state is JobState.SUCCEEDED
    store.close()


def test_a_statement_whose_failure_was_hidden_keeps_nothing(postgres_url: str) -> None:
    """PostgreSQL gives up a transaction in which a statement failed; SQLite goes on."""
    store = open_store(postgres_url)
    job = claimed_job(store)

    def fail_and_hide_it(connection: Any) -> None:
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT * FROM nowhere")

    with pytest.raises(StoreError, match="a statement in the transaction block failed"):
        in_transaction(store, job, write, fail_and_hide_it)

    assert letters(postgres_url) == []
    assert stored(store, job.id).state is JobState.RUNNING
    store.close()


def test_a_block_may_shape_the_connection_to_its_taste(url: str, store: SqlStore) -> None:
    job = claimed_job(store)

    with store.transaction(lambda: settle(job, Failed(BOOM), Retry())) as connection:
        if url.startswith("sqlite"):
            connection.row_factory = lambda cursor, row: {"only": row[0]}
            connection.text_factory = bytes
        else:
            connection.row_factory = dict_row
            connection.cursor_factory = psycopg.ClientCursor
            connection.adapters.register_loader("uuid", psycopg.types.string.TextLoader)
        write(connection)

    assert letters(url) == ["dear"]
    assert stored(store, job.id).state is JobState.RETRYING


def test_instants_are_what_the_driver_makes_of_them(postgres_url: str) -> None:
    """Our own connections take them as numbers."""
    store = open_store(postgres_url)
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        cursor = connection.cursor(binary=True)
        (moment,) = cursor.execute("SELECT timestamptz '2026-01-01 12:00:00+00'").fetchone()

    assert moment == datetime(2026, 1, 1, 12, tzinfo=UTC)
    store.close()


# --- beside other work ---------------------------------------------------------------------------------------


def test_more_blocks_than_the_store_has_connections_run_at_once(postgres_url: str) -> None:
    store = open_store(postgres_url)
    jobs = [claimed_job(store) for _ in range(8)]
    gate = threading.Barrier(len(jobs))

    def work(job: Job) -> None:
        with store.transaction(succeeding(job)) as connection:
            connection.execute("SELECT 1")
            gate.wait(20)
            store.cancel([new_job().id])

    with ThreadPoolExecutor(len(jobs)) as threads:
        list(threads.map(work, jobs))

    assert {job.state for job in store.get([job.id for job in jobs]).values()} == {JobState.SUCCEEDED}
    store.close()


def test_blocks_on_one_file_take_turns(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    jobs = [claimed_job(store) for _ in range(8)]

    def work(job: Job) -> None:
        with store.transaction(succeeding(job)) as connection:
            write(connection)
        store.enqueue([new_job()])

    with ThreadPoolExecutor(len(jobs)) as threads:
        list(threads.map(work, jobs))

    assert len(letters(sqlite_url)) == 8
    assert store.counts() == {"default": {JobState.READY: 8}}
    store.close()


def test_a_block_on_sqlite_that_would_wait_for_itself_is_told_so(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        write(connection)
        with pytest.raises(StoreError, match="inside a transaction block nothing else can be written"):
            store.cancel([job.id])
        assert store.get([job.id])

    assert letters(sqlite_url) == ["dear"]
    store.enqueue([new_job()])
    store.close()


def test_what_would_not_be_part_of_a_block_is_refused_in_it(url: str) -> None:
    """Also by another store, as the app's is beside its worker's."""
    store, other = open_store(url), open_store(url)
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        write(connection)
        for one in (store, other):
            with pytest.raises(StoreError, match="enqueue it before or after the block"):
                one.enqueue([new_job()])
            with pytest.raises(StoreError, match="a transaction block can't stand inside another"):
                in_transaction(one, job, write)

    assert letters(url) == ["dear"]
    assert stored(store, job.id).state is JobState.SUCCEEDED
    store.enqueue([new_job()])
    store.close()
    other.close()


def test_a_store_can_be_closed_while_a_block_runs(url: str) -> None:
    store = open_store(url, deadline=0.1)
    job = claimed_job(store)

    with store.transaction(succeeding(job)) as connection:
        write(connection)
        store.close()

    assert letters(url) == ["dear"]
    again = open_store(url)
    assert stored(again, job.id).state is JobState.SUCCEEDED
    again.close()


def test_a_closed_store_lends_nothing(url: str) -> None:
    store = open_store(url)
    job = claimed_job(store)
    store.close()

    with pytest.raises(StoreError, match="the store is closed"), store.transaction(succeeding(job)):
        pass


# --- the server goes away --------------------------------------------------------------------------------------


def kill_from(url: str) -> Callable[[Any], object]:
    return lambda connection: execute(url, f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")


def test_a_connection_that_is_killed_in_the_block_keeps_nothing(postgres_url: str) -> None:
    store = open_store(postgres_url)
    job = claimed_job(store)

    with pytest.raises(psycopg.OperationalError):
        in_transaction(store, job, write, kill_from(postgres_url), sql("SELECT 1"))

    assert stored(store, job.id) == job
    assert letters(postgres_url) == []
    assert store.settle([succeeding(job)()]) == {job.id}
    store.close()


def test_a_connection_that_is_killed_unnoticed_keeps_nothing(postgres_url: str) -> None:
    store = open_store(postgres_url)
    job = claimed_job(store)

    with pytest.raises(StoreUnavailable):
        in_transaction(store, job, write, kill_from(postgres_url))

    assert stored(store, job.id) == job
    assert letters(postgres_url) == []
    with store.transaction(succeeding(job)):
        pass
    assert stored(store, job.id).state is JobState.SUCCEEDED
    store.close()
