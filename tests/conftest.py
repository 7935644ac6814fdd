"""Databases, stores and apps for all tests: each gets a fresh SQLite file or PostgreSQL database of its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mainspring import Mainspring
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.postgres import FAST_AND_LOOSE, PostgresServer, database, running_server

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session")
def own_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server from the wheel, started for this process of tests."""
    with running_server(FAST_AND_LOOSE) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> str:
    """The URL of a PostgreSQL server: MAINSPRING_TEST_POSTGRES, or our own."""
    given = os.environ.get("MAINSPRING_TEST_POSTGRES")
    own: str = given or request.getfixturevalue("own_server").url()
    return own


@pytest.fixture(scope="session")
def migrated_template(postgres_server: str) -> Iterator[str]:
    """The name of a migrated database, which is quicker to copy than to migrate."""
    name = f"template_{uuid.uuid4().hex}"
    with database(postgres_server, name) as url:
        open_store(url).close()
        yield name


@pytest.fixture
def postgres_url(postgres_server: str, migrated_template: str) -> Iterator[str]:
    """A migrated PostgreSQL database of the test's own."""
    with database(postgres_server, f"test_{uuid.uuid4().hex}", migrated_template) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file of the test's own, not made yet."""
    return f"sqlite:///{tmp_path / 'mainspring.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of each kind in turn."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> Iterator[str]:
    """A PostgreSQL database that was never migrated."""
    with database(postgres_server, f"empty_{uuid.uuid4().hex}") as url:
        yield url


@pytest.fixture(params=["sqlite", "empty_postgres"])
def empty_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind in turn that was never migrated."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def store(url: str, clock: SettableClock) -> Iterator[SqlStore]:
    """A store of each kind in turn, on the test's clock."""
    opened = open_store(url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def real_store(url: str) -> Iterator[SqlStore]:
    """A store of each kind in turn, on its real clock."""
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def app(url: str) -> Iterator[Mainspring]:
    """An app on each kind of database in turn, with no tasks yet."""
    made = Mainspring(url)
    yield made
    made.close()
