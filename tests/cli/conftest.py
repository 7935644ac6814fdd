"""What a user of the command line meets: a folder, jobs, and databases that are safe or locked."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.server import Server
from tests.cli.jobs import Jobs, jobs_in
from tests.support.postgres import PostgresServer, database, running_server


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [name for name in os.environ if name.startswith("MAINSPRING_") and "_TEST_" not in name]
    for name in (*ours, "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have the program take its output for a terminal that is so many columns wide, and knows no colours."""

    def pretend(columns: int) -> None:
        for name, value in {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": str(columns), "LINES": "24"}.items():
            monkeypatch.setenv(name, value)

    return pretend


@pytest.fixture(autouse=True)
def _no_logging_set_up() -> Iterator[None]:
    yield
    logging.getLogger("mainspring").setLevel(logging.NOTSET)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, which is the present one; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path, modules = list(sys.path), set(sys.modules)
    yield folder
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(scope="session")
def safe_server() -> Iterator[PostgresServer]:
    """A server as PostgreSQL ships it, which loses nothing, and on which the user `locked` needs a password."""
    with running_server({}) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE locked LOGIN PASSWORD 'open sesame'")
            rules = server.folder / "data" / "pg_hba.conf"
            rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
            connection.execute("SELECT pg_reload_conf()")
        yield server


@pytest.fixture
def safe_postgres_url(safe_server: PostgresServer) -> Iterator[str]:
    """An empty database on the safe server."""
    with database(safe_server.url(), f"safe_{uuid.uuid4().hex}") as url:
        yield url


@pytest.fixture(params=["sqlite", "safe_postgres"])
def safe_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind in turn with which nothing is wrong but that it was never migrated."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that is `ALSO_FROM_AFAR` twice: commands use the database, and a server."""
    if "jobs" in metafunc.fixturenames and hasattr(metafunc.module, "ALSO_FROM_AFAR"):
        metafunc.parametrize("jobs", ["database", "server"], indirect=True)


@pytest.fixture
def jobs(request: pytest.FixtureRequest, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Jobs in a SQLite file, which is the database that commands use unless they are told another, or a server's."""
    afar = getattr(request, "param", "database") == "server"
    with jobs_in(sqlite_url) as jobs, served(sqlite_url) if afar else nullcontext(sqlite_url) as address:
        monkeypatch.setenv("MAINSPRING_URL", address)
        yield jobs


@contextmanager
def served(url: str) -> Iterator[str]:
    """Serve the database at *url* while the block lasts, by the address that this gives."""
    with closing(Mainspring(url)) as app:
        server = Server(app, "127.0.0.1", 0)
        server.start()
        try:
            yield server.url
        finally:
            server.stop()
