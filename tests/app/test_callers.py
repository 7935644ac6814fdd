"""`using(conn=…)` with what applications have: SQLAlchemy's and Django's connections, and the app's own interface."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import django.db
import pytest
import sqlalchemy
from django.conf import settings
from django.db import transaction
from django.db.utils import load_backend
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from mainspring import Context, InvalidValue, Mainspring
from mainspring.task_handle import TaskHandle
from mainspring.testing import drain
from tests.support.databases import connected, execute


@pytest.fixture
def app(app: Mainspring) -> Mainspring:
    """An app whose database holds a table of the application's, too."""
    app.jobs()
    execute(app.client.url, "CREATE TABLE orders (number INTEGER)")
    return app


@pytest.fixture
def confirm(app: Mainspring) -> TaskHandle[[int], int]:
    @app.task
    def confirm(number: int) -> int:
        return number

    return confirm


def orders_and_jobs(app: Mainspring) -> tuple[list[int], int]:
    found = execute(app.client.url, "SELECT number FROM orders ORDER BY number")
    return [number for (number,) in found], len(app.jobs())


INSERT = "INSERT INTO orders VALUES (1)"


# --- SQLAlchemy --------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(app: Mainspring) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(app.client.url.replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()


def test_a_connection_of_sqlalchemy(
    app: Mainspring, confirm: TaskHandle[[int], int], engine: sqlalchemy.Engine
) -> None:
    with engine.connect() as conn:
        confirm.using(conn=conn, key="k").enqueue(1)
        conn.execute(sqlalchemy.text(INSERT))
        conn.rollback()
    assert orders_and_jobs(app) == ([], 0)

    with engine.begin() as conn:
        conn.execute(sqlalchemy.text(INSERT))
        confirm.using(conn=conn, key="k").enqueue(1)
        assert orders_and_jobs(app) == ([], 0)
    assert orders_and_jobs(app) == ([1], 1)


def test_a_connection_of_sqlalchemy_that_has_done_nothing_else_commits(
    app: Mainspring, confirm: TaskHandle[[int], int], engine: sqlalchemy.Engine
) -> None:
    with engine.connect() as conn:
        confirm.using(conn=conn).enqueue(1)
        conn.commit()

    assert orders_and_jobs(app) == ([], 1)


def test_a_session_of_sqlalchemy(app: Mainspring, confirm: TaskHandle[[int], int], engine: sqlalchemy.Engine) -> None:
    with Session(engine) as undone:
        confirm.using(conn=undone).enqueue(1)
        undone.execute(sqlalchemy.text(INSERT))
        undone.rollback()
    assert orders_and_jobs(app) == ([], 0)

    sessions = scoped_session(sessionmaker(engine))
    for session in (Session(engine), sessions):
        confirm.using(conn=session).enqueue(1)
        session.execute(sqlalchemy.text(INSERT))
        session.commit()
        session.close()
    assert orders_and_jobs(app) == ([1, 1], 2)


def test_a_raw_connection_of_sqlalchemy(
    app: Mainspring, confirm: TaskHandle[[int], int], engine: sqlalchemy.Engine
) -> None:
    with closing(engine.raw_connection()) as conn:
        confirm.using(conn=conn).enqueue(1)
        conn.commit()

    assert orders_and_jobs(app) == ([], 1)


def test_a_closed_connection_of_sqlalchemy_is_refused_by_it(
    app: Mainspring, confirm: TaskHandle[[int], int], engine: sqlalchemy.Engine
) -> None:
    conn = engine.connect()
    conn.close()

    with pytest.raises(sqlalchemy.exc.ResourceClosedError, match="closed"):
        confirm.using(conn=conn).enqueue(1)


# --- Django ------------------------------------------------------------------------------------------------------


@pytest.fixture
def django_connection(app: Mainspring) -> Iterator[Any]:
    """What `django.db.connection` is in an application."""
    if not settings.configured:
        settings.configure(USE_TZ=True, DATABASES={})
        django.setup()
    url = app.client.url
    if url.startswith("sqlite"):
        named: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    else:
        facts = conninfo_to_dict(url)
        named = {"ENGINE": "django.db.backends.postgresql", "NAME": facts["dbname"]}
        named |= {name.upper(): str(facts.get(name) or "") for name in ("user", "password", "host", "port")}
    handler = django.db.connections
    wanted = handler.configure_settings({"default": named})["default"]
    made = load_backend(wanted["ENGINE"]).DatabaseWrapper(wanted, "default")
    handler["default"] = made
    yield django.db.connection
    made.close()
    del handler["default"]


def test_the_connection_of_django(app: Mainspring, confirm: TaskHandle[[int], int], django_connection: Any) -> None:
    def place(trouble: Exception | None = None) -> None:
        with transaction.atomic():
            confirm.using(conn=django_connection, key="k").enqueue(1)
            with django_connection.cursor() as cursor:
                cursor.execute("INSERT INTO orders VALUES (%s)", [1])
            if trouble:
                raise trouble
            assert orders_and_jobs(app) == ([], 0)

    with pytest.raises(RuntimeError):
        place(RuntimeError("out of stock"))
    assert orders_and_jobs(app) == ([], 0)

    place()
    assert orders_and_jobs(app) == ([1], 1)


def test_the_connection_of_django_commits_by_itself_outside_of_a_block(
    app: Mainspring, confirm: TaskHandle[[int], int], django_connection: Any
) -> None:
    confirm.using(conn=django_connection).enqueue(1)

    assert orders_and_jobs(app) == ([], 1)


# --- the app -----------------------------------------------------------------------------------------------------


@pytest.fixture
def conn(app: Mainspring) -> Iterator[Any]:
    with connected(app.client.url) as opened:
        yield opened


def test_every_way_to_enqueue_takes_a_connection(app: Mainspring, confirm: TaskHandle[[int], int], conn: Any) -> None:
    confirm.using(conn=conn).enqueue(1)
    confirm.using(conn=conn, run_after="1m").enqueue_many([((2,), {}), ((3,), {})])
    app.enqueue("confirm", [4], conn=conn, queue="mail")
    conn.execute(INSERT)
    assert orders_and_jobs(app) == ([], 0)

    conn.commit()
    assert orders_and_jobs(app) == ([1], 4)


def test_a_handle_is_of_use_once_it_is_committed(app: Mainspring, confirm: TaskHandle[[int], int], conn: Any) -> None:
    job = confirm.using(conn=conn).enqueue(7)
    conn.commit()

    drain(app)
    assert job.result(timeout=1) == 7


def test_a_coroutine_is_told_to_call_enqueue(app: Mainspring, confirm: TaskHandle[[int], int], conn: Any) -> None:
    for call in (
        lambda: confirm.using(conn=conn).aenqueue(1),
        lambda: confirm.using(conn=conn).aenqueue_many([((1,), {})]),
        lambda: app.aenqueue("confirm", [1], conn=conn),
    ):
        with pytest.raises(InvalidValue, match=r"expected no conn with aenqueue.* call enqueue"):
            asyncio.run(call())

    assert orders_and_jobs(app) == ([], 0)


def test_coroutines_enqueue_in_a_transaction_of_its_own(app: Mainspring, confirm: TaskHandle[[int], int]) -> None:
    async def work() -> int | None:
        await confirm.aenqueue_many([((1,), {})])
        await app.aenqueue("confirm", [2])
        return (await confirm.aenqueue(3)).id.version

    assert asyncio.run(work()) == 7
    assert orders_and_jobs(app) == ([], 3)


def test_a_handlers_block_takes_the_jobs_that_follow(app: Mainspring, confirm: TaskHandle[[int], int]) -> None:
    @app.task
    def place(ctx: Context, number: int) -> None:
        with ctx.transaction() as db:
            db.execute(INSERT)
            confirm.using(conn=db).enqueue(number)
            assert len(app.jobs()) == 1

    place.enqueue(1)
    drain(app)

    assert orders_and_jobs(app) == ([1], 2)
