"""Open: a new database is prepared on first use, one that does not fit is refused with the way out."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from mainspring import Email, Mainspring
from mainspring.errors import (
    InvalidURL,
    InvalidValue,
    SchemaMissing,
    SchemaNewer,
    SchemaOutdated,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store import open_store
from mainspring.store.database import Migration
from mainspring.store.migrate import load_migrations
from mainspring.store.postgres.database import PostgresDatabase
from mainspring.store.sql import SqlStore
from mainspring.store.sqlite.database import SqliteDatabase
from mainspring.testing import SettableClock
from tests.support.databases import execute, make_newer
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session, stored
from tests.support.postgres import with_database
from tests.support.schema import LATEST, MIGRATIONS

ROOT = Path(__file__).parents[2]


def test_a_new_database_is_prepared_on_first_use(empty_url: str) -> None:
    store = open_store(empty_url)

    assert store.version() == LATEST
    assert store.migrate() == []
    store.close()


def test_jobs_outlive_the_process_that_enqueued_them(url: str) -> None:
    store, job = open_store(url), new_job()
    store.enqueue([job])
    store.close()

    again = open_store(url)
    assert stored(again, job.id).state is JobState.READY
    again.close()


def test_many_nodes_may_prepare_a_database_at_once(empty_url: str) -> None:
    gate = threading.Barrier(6)

    def open_and_enqueue(_: int) -> None:
        gate.wait()
        store = open_store(empty_url)
        store.enqueue([new_job()])
        store.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(open_and_enqueue, range(6)))

    store = open_store(empty_url)
    assert store.counts() == {"default": {JobState.READY: 6}}
    store.close()


def test_migrate_says_what_it_did(empty_url: str) -> None:
    store = open_store(empty_url, prepared=False)

    assert store.version() == 0
    assert [(migration.number, migration.name) for migration in store.migrate()] == [*enumerate(MIGRATIONS, 1)]
    assert store.migrate() == []
    store.close()


def test_a_newer_database_is_refused(url: str) -> None:
    open_store(url).close()
    make_newer(url)

    with pytest.raises(SchemaNewer, match=f"schema version 999, this mainspring knows only up to {LATEST}; upgrade"):
        open_store(url)
    store = open_store(url, prepared=False)
    with pytest.raises(SchemaNewer):
        store.migrate()
    store.close()


def test_an_older_database_is_refused_by_name_of_the_command(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(url).close()
    dialect = "sqlite" if url.startswith("sqlite") else "postgres"
    known = load_migrations(f"mainspring.store.{dialect}")
    monkeypatch.setattr(
        f"mainspring.store.{dialect}.database.load_migrations",
        lambda package: [*known, Migration(LATEST + 1, "next", "CREATE TABLE mainspring_next (id int)")],
    )

    with pytest.raises(SchemaOutdated, match="run `mainspring migrate`"):
        open_store(url)
    store = open_store(url, prepared=False)
    assert [migration.name for migration in store.migrate()] == ["next"]
    assert store.version() == LATEST + 1
    store.close()


def test_a_migration_that_fails_leaves_nothing_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(url).close()
    dialect = "sqlite" if url.startswith("sqlite") else "postgres"
    known = load_migrations(f"mainspring.store.{dialect}")
    broken = Migration(LATEST + 1, "broken", "CREATE TABLE mainspring_half (id int);\nSELECT nonsense FROM nowhere;")
    monkeypatch.setattr(f"mainspring.store.{dialect}.database.load_migrations", lambda package: [*known, broken])
    store = open_store(url, prepared=False)

    with pytest.raises(StoreError):
        store.migrate()

    assert store.version() == LATEST
    with pytest.raises((sqlite3.OperationalError, psycopg.Error)):
        execute(url, "SELECT * FROM mainspring_half")
    store.close()


def test_a_database_of_somebody_else_is_not_touched_unasked(empty_postgres_url: str) -> None:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE customers (id int)")

    with pytest.raises(SchemaMissing, match="run `mainspring migrate`"):
        open_store(empty_postgres_url)

    store = open_store(empty_postgres_url, prepared=False)
    store.migrate()
    store.close()
    open_store(empty_postgres_url).close()


def test_a_sqlite_file_may_be_shared_with_an_application(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE jobs (mine INTEGER)")
    connection.close()

    store = open_store(f"sqlite:///{path}")
    store.enqueue([new_job()])

    assert store.counts() == {"default": {JobState.READY: 1}}
    store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://root:secret@host/db", "begins with 'mysql'"),
        ("postgresq://host/db", "did you mean 'postgresql'?"),
        ("mainspring.db", "sqlite:///mainspring.db"),
        ("sqlite://", "expected the path of a SQLite file"),
        ("sqlite:///:memory:", "no in-memory database"),
        ("sqlite:///x.db?synchronous=off", "expected synchronous to be one of full, normal, extra, got: 'off'"),
        ("sqlite:///x.db?sinchronous=full", "did you mean 'synchronous'?"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidURL) as refusal:
        open_store(url)

    assert message in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_no_server_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"can't reach PostgreSQL at .*; is it running there\?"):
        open_store(f"postgresql://me:secret@/db?host={tmp_path}")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and they go on for more than a hundred characters, as notes do. " * 20)

    with pytest.raises(StoreError, match="is not a SQLite database; name another file"):
        open_store(f"sqlite:///{path}")

    assert path.read_text().startswith("These are notes")


def test_the_folder_of_a_new_file_is_made(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/data/jobs.db").close()

    assert (tmp_path / "data" / "jobs.db").exists()


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        store = open_store(f"sqlite:///{tmp_path}/jobs.db")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(umask)

    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}


def test_a_file_can_be_made_by_a_child_that_was_forked_while_one_was_made(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from mainspring.store import open_store
from mainspring.store.sqlite import file

with file._making:
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        open_store(sys.argv[1]).close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", program, f"sqlite:///{tmp_path}/jobs.db"], timeout=60, check=False)

    assert done.returncode == 0


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch()
    file.chmod(0o664)

    open_store(f"sqlite:///{file}").close()

    assert stat.S_IMODE(file.stat().st_mode) == 0o664


def test_folders_are_not_made_for_a_path_that_is_rather_mistyped(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"

    with pytest.raises(StoreUnavailable, match=re.escape(f"there is no {missing}; make it")):
        open_store(f"sqlite:///{missing}/data/jobs.db")

    assert not missing.exists()


def test_a_full_disk_refuses_the_write_whole_and_goes_on_afterwards(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    database = store._db
    assert isinstance(database, SqliteDatabase)
    (pages,) = database._writer._connection.execute("PRAGMA page_count").fetchone()
    database._writer._connection.execute(f"PRAGMA max_page_count = {pages + 10}")

    with pytest.raises(StoreFull, match="the disk is full; free some space"):
        store.enqueue(new_jobs(2_000))
    assert store.counts() == {}

    database._writer._connection.execute("PRAGMA max_page_count = 1000000")
    store.enqueue(new_jobs(2_000))
    assert store.counts() == {"default": {JobState.READY: 2_000}}
    store.close()


def test_a_write_transaction_on_sqlite_is_one_from_the_start(sqlite_url: str) -> None:
    """Begun as a reader it could be overtaken by another writer, and would then fail whatever its patience."""
    store, job = open_store(sqlite_url), new_job()
    store.enqueue([job])
    hasty = SqliteDatabase(sqlite_url.removeprefix("sqlite:///"), deadline=0.2)

    def look_then_write(tx: object) -> None:
        with pytest.raises(StoreUnavailable, match=r"kept .* locked"):
            hasty.run("promote", limit=1, ahead=0)

    store._db.transact(look_then_write)

    hasty.run("promote", limit=1, ahead=0)
    hasty.close()
    store.close()


def test_a_store_has_the_patience_it_was_given(url: str) -> None:
    store = open_store(url, deadline=3)
    database = store._db

    assert isinstance(database, SqliteDatabase | PostgresDatabase)
    assert (database._file.deadline if isinstance(database, SqliteDatabase) else database._deadline) == 3
    assert isinstance(database, SqliteDatabase) or database._patience == 1
    store.close()


def test_an_impatient_store_gives_up_on_a_locked_file(sqlite_url: str) -> None:
    store, hasty = open_store(sqlite_url), open_store(sqlite_url, deadline=0.05)

    def while_locked(tx: object) -> None:
        with pytest.raises(StoreUnavailable, match=r"kept .* locked"):
            hasty.enqueue([new_job()])

    store._db.transact(while_locked)
    hasty.close()
    store.close()


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), float("inf")])
def test_a_deadline_must_leave_some_time(sqlite_url: str, deadline: float) -> None:
    with pytest.raises(InvalidValue, match="expected deadline to be a number of seconds greater than 0"):
        open_store(sqlite_url, deadline=deadline)


def test_a_closed_store_says_so(url: str) -> None:
    store = open_store(url)
    store.close()

    with pytest.raises(StoreError, match="the store is closed"):
        store.counts()
    with pytest.raises(StoreError, match="the store is closed"):
        store.enqueue([new_job()])


@pytest.mark.parametrize(("option", "level"), [("", 2), ("?synchronous=normal", 1), ("?synchronous=extra", 3)])
def test_sqlite_is_as_durable_as_it_was_asked_to_be(sqlite_url: str, option: str, level: int) -> None:
    store = open_store(sqlite_url + option)
    database = store._db
    assert isinstance(database, SqliteDatabase)

    assert database._writer._connection.execute("PRAGMA synchronous").fetchone() == (level,)
    assert database._writer._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_instants_are_in_utc_whatever_the_servers_time_zone(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'Asia/Tokyo'".encode())
    store, job = open_store(postgres_url), new_job()
    store.enqueue([job])

    found = stored(store, job.id)

    assert found.run_at.utcoffset() == found.created_at.utcoffset() == timedelta(0)
    store.close()


@pytest.fixture
def worker_url(postgres_url: str) -> Iterator[str]:
    """The address of a database under a role that was given what the documentation says."""
    role = f"worker_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN".encode())
        for told in re.findall(r"^(?:GRANT|REVOKE) .*;$", (ROOT / "docs/operating.md").read_text(), re.MULTILINE):
            owner.execute(told.replace(" worker;", f" {role};").encode())
    yield postgres_url.replace("postgres@", f"{role}@")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_workers_need_no_right_to_make_tables(worker_url: str, clock: SettableClock) -> None:
    """The days get their partitions, and lose them, all the same."""
    store = open_store(worker_url, clock=clock)
    clock.advance("100d")
    store.settle([settle(claimed_job(store), Succeeded("1"))])
    clock.advance("10d")

    assert store.prune(timedelta(days=5)) == 1
    store.close()


@pytest.mark.parametrize("deed", ["SELECT * FROM", "DELETE FROM"])
@pytest.mark.parametrize("name", ["tokens", "audit"])
def test_a_worker_learns_nothing_of_who_may_ask_for_what(worker_url: str, deed: str, name: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(worker_url, f"{deed} mainspring.{name}")


def test_a_worker_works_with_the_rights_that_are_documented(worker_url: str) -> None:
    app = Mainspring(worker_url)

    @app.task(notify=[Email("ops@example.org", on=["success"])])
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    with app.worker():
        assert app.within("acme").enqueue("greet", ["Ada"]).result(timeout="30s") == "Hello, Ada!"
    app.close()


def test_a_worker_can_not_borrow_the_rights_of_the_owner(worker_url: str) -> None:
    """A function that acts with its owner's rights must not look for types and tables where its caller makes them."""
    with psycopg.connect(worker_url, autocommit=True) as worker:
        worker.execute(
            "CREATE FUNCTION pg_temp.spy(value pg_catalog.text) RETURNS bool LANGUAGE plpgsql AS $$"
            " BEGIN RAISE EXCEPTION 'called as %', current_user; END $$"
        )
        worker.execute("CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.spy(VALUE::pg_catalog.text))")

        worker.execute("SELECT mainspring.open_days('2030-01-01', 1)")
        worker.execute("SELECT mainspring.drop_day('jobs_done', '1990-01-01')")


def test_a_schema_that_was_made_for_us_is_enough(empty_postgres_url: str) -> None:
    role = f"app_{uuid.uuid4().hex}"
    with psycopg.connect(empty_postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN; CREATE SCHEMA mainspring AUTHORIZATION {role}".encode())
    store = open_store(empty_postgres_url.replace("postgres@", f"{role}@"))

    store.enqueue([new_job()])

    store.close()
    with psycopg.connect(empty_postgres_url, autocommit=True) as owner:
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_column_too_large_to_be_fetched_in_one_piece_is_fetched_in_many(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(sqlite_url)
    store.enqueue(new_jobs(3, payload='{"args":["' + "x" * 60_000 + '"],"kwargs":{}}'))
    for connection in (store._db._writer._connection, store._db._take_reader()):  # type: ignore[attr-defined]
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)

    assert len(store.claim(opened_session(store), "default", 3)) == 3

    store.close()


def test_a_file_that_was_deleted_under_a_store_is_noticed(sqlite_url: str) -> None:
    """Nobody would ever find what is written to it."""
    store = open_store(sqlite_url)
    Path(sqlite_url.removeprefix("sqlite:///")).unlink()

    with pytest.raises(StoreError, match="was deleted or replaced"):
        store.enqueue([new_job()])

    store.close()


def test_a_database_in_another_encoding_is_refused(postgres_server: str) -> None:
    name = f"latin_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'".encode())
    try:
        with pytest.raises(StoreError, match="encoding UTF8, got LATIN1"):
            open_store(with_database(postgres_server, name))
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as owner:
            owner.execute(f"DROP DATABASE {name}".encode())


def test_the_encoding_of_the_client_is_ours(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    store = open_store(postgres_url)

    store.enqueue([given := new_job(payload='{"args":["名前"],"kwargs":{}}')])

    assert stored(store, given.id).payload == given.payload
    store.close()


def test_a_read_only_database_is_said_at_once(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f'ALTER DATABASE "{owner.info.dbname}" SET default_transaction_read_only = on'.encode())
    db = PostgresDatabase(postgres_url, deadline=3600)

    with pytest.raises(StoreReadOnly):
        SqlStore(db).enqueue([new_job()])

    db.close()


def test_a_forgotten_host_does_not_show_the_password() -> None:
    with pytest.raises(InvalidURL) as caught:
        open_store("postgresql://user:secret/name")

    assert "secret" not in str(caught.value)
