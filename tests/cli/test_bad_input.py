"""Databases that can't be used: each is refused in one sentence with the way out, and nothing is left behind."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mainspring.store.sqlite.file import SqliteFile
from tests.cli.databases import migrated
from tests.cli.program import assert_refused, in_process, mainspring
from tests.support.databases import make_newer
from tests.support.postgres import PostgresServer

COMMANDS = ["migrate", "doctor"]
SOON = 8.0
"""Seconds in which even a server that is not there must have been named as missing."""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("url", "way_out"),
    [
        ("", "sqlite:///mainspring.db"),
        ("jobs.db", "sqlite:///mainspring.db"),
        ("mysql://host/name", "postgresql://user@host/name"),
        ("sqllite:///jobs.db", "did you mean 'sqlite'?"),
        ("postgress://host/name", "did you mean 'postgres"),
        ("sqlite://", "sqlite:///relative.db"),
        ("sqlite:///", "sqlite:///relative.db"),
        ("sqlite://jobs.db", "sqlite:///relative.db"),
        ("sqlite://[jobs", "sqlite:///relative.db"),
        ("sqlite:///:memory:", "sqlite:///relative.db"),
        ("sqlite:///jobs%00.db", "sqlite:///relative.db"),
        ("sqlite:///jobs.db?synchronus=full", "did you mean 'synchronous'?"),
        ("sqlite:///jobs.db?synchronous=off", "full, normal, extra"),
        ("postgresql://user@host:5432/name?colour=red", "database address"),
        ("postgresql://user@[host/name", "database address"),
    ],
)
def test_an_address_that_makes_no_sense(
    command: str, url: str, way_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert_refused(in_process(command, "--url", url), way_out)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "host=localhost password=hunter2",
        "host=localhost password='hun ter2'",
        "postgresql:/user:hunter2@localhost/name",
        "sqlite://user:hunter2@localhost/name",
        "mysql://user:hunter2@localhost/name",
        "postgresql://user:hun%ter2@localhost/name",
        "postgresql://user:hunter2@[localhost/name",
        "postgresql://user:hun@ter2@localhost:1/name",
        "postgresql://user:hun/ter2@localhost:1/name",
        "postgresql://user:hunter2@localhost:1/name",
        "postgresql://user@localhost:1/name?password=hunter2",
        "postgresql://user@localhost:1/name?password=hunter2&colour=red",
    ],
)
def test_no_part_of_a_password_is_ever_shown(url: str) -> None:
    done = in_process("doctor", "--url", url)

    assert_refused(done)
    assert "hun" not in done.stderr
    assert "ter2" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_socket_on_which_no_server_listens(command: str, tmp_path: Path) -> None:
    started = time.monotonic()

    done = mainspring(command, "--url", f"postgresql://user:hunter2@/name?host={tmp_path}")

    assert_refused(done, "is it running there?", str(tmp_path))
    assert time.monotonic() - started < SOON


@pytest.mark.parametrize("command", COMMANDS)
def test_a_port_on_which_no_server_listens(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as briefly:
        port = briefly.getsockname()[1]
    started = time.monotonic()

    done = mainspring(command, "--url", f"postgresql://user@127.0.0.1:{port}/name")

    assert_refused(done, "is it running there?", f"127.0.0.1:{port}")
    assert time.monotonic() - started < SOON


def test_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()

        done = mainspring("doctor", "--url", f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/name")

    assert_refused(done, "is it running there?")
    assert time.monotonic() - started < SOON


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_password(command: str, safe_server: PostgresServer) -> None:
    url = safe_server.url().replace("postgres@", "locked:hunter2@")

    done = mainspring(command, "--url", url)

    assert_refused(done, "check user, password and database name")
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_that_the_server_does_not_have(command: str, postgres_server: str) -> None:
    url = urlsplit(postgres_server)._replace(path="/nowhere").geturl()

    assert_refused(mainspring(command, "--url", url), "check user, password and database name", "nowhere")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_no_database(command: str, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Ada, " * 100)

    assert_refused(mainspring(command, "--url", f"sqlite:///{file}"), str(file), "name another file")
    assert file.read_text() == "Dear Ada, " * 100
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_in_place_of_a_file(command: str, tmp_path: Path) -> None:
    assert_refused(mainspring(command, "--url", f"sqlite:///{tmp_path}"), str(tmp_path))


def test_a_path_that_leads_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert_refused(mainspring("migrate", "--url", f"sqlite:///{tmp_path}/file/jobs.db"), "name another file")


def test_migrating_a_database_that_is_newer_than_the_program(url: str) -> None:
    make_newer(migrated(url))

    assert_refused(mainspring("migrate", "--url", url), "version 999", "upgrade the mainspring package")


def test_migrating_a_read_only_file(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE notes (note)")
    connection.close()
    file.chmod(0o444)
    before = file.read_bytes()

    assert_refused(mainspring("migrate", "--url", f"sqlite:///{file}", powerless=True), "change its permissions")
    assert file.read_bytes() == before


@pytest.fixture
def read_only_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    yield folder
    folder.chmod(0o755)


@pytest.mark.parametrize("name", ["jobs.db", "deeper/jobs.db"])
def test_migrating_in_a_read_only_folder(name: str, read_only_folder: Path) -> None:
    done = mainspring("migrate", "--url", f"sqlite:///{read_only_folder}/{name}", powerless=True)

    assert_refused(done, str(read_only_folder))
    assert list(read_only_folder.iterdir()) == []


def test_migrating_where_the_folder_of_the_folder_is_missing(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"

    done = mainspring("migrate", "--url", f"sqlite:///{missing}/data/jobs.db")

    assert_refused(done, f"there is no {missing}; make it")
    assert not missing.exists()


def test_migrating_on_a_full_disk_leaves_no_table(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up = SqliteFile._set_up

    def set_up_small(self: SqliteFile, connection: sqlite3.Connection) -> None:
        set_up(self, connection)
        connection.execute("PRAGMA max_page_count = 4")

    monkeypatch.setattr(SqliteFile, "_set_up", set_up_small)

    assert_refused(in_process("migrate", "--url", sqlite_url), "free some space")
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    connection.close()
