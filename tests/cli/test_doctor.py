"""`mainspring doctor`."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from mainspring.cli import diagnosis
from mainspring.cli.diagnosis import Diagnosis, with_probes
from mainspring.errors import StoreFull
from mainspring.store.database import Probe
from mainspring.store.migrate import load_migrations
from mainspring.store.sql import SqlStore
from tests.cli.databases import migrated
from tests.cli.program import Done, in_process, mainspring
from tests.support.databases import execute, make_newer
from tests.support.schema import LATEST

ROOT = Path(__file__).parents[2]


def doctor(*arguments: str) -> Done:
    return in_process("doctor", *arguments)


def test_a_sound_database_is_well(safe_url: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    done = mainspring("doctor", "--url", migrated(safe_url))

    assert (done.returncode, done.stderr) == (0, "")
    assert "✗" not in done.stdout
    assert f"version {LATEST}, up to date" in done.stdout
    assert done.stdout.endswith("All is well.\n")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_programs_are_told_the_same_in_json(safe_url: str) -> None:
    done = mainspring("doctor", "--json", "--url", migrated(safe_url))

    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert told["ok"] is True
    assert told["database"]["kind"] in ("sqlite", "postgresql")
    assert told["database"]["version"][0].isdigit()
    assert told["schema"] == {"version": LATEST, "needed": LATEST}
    assert told["durability"].startswith("survives a ")
    assert told["commit_ms"] > 0
    assert abs(told["clock_difference_ms"]) < 1000
    assert (told["remarks"], told["problems"]) == ([], [])


def test_a_file_name_can_not_steer_the_terminal(tmp_path: Path) -> None:
    done = doctor("--url", f"sqlite:///{tmp_path}/red\x1b[31m.db")

    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "red\\x1b[31m.db" in "".join(done.stdout.split())


def test_a_server_that_may_lose_commits_is_a_problem(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off'.encode())

    done = mainspring("doctor", "--url", postgres_url)
    told = json.loads(mainspring("doctor", "--json", "--url", postgres_url).stdout)

    assert done.returncode == 1
    assert "✗  Durability" in done.stdout
    assert "set synchronous_commit = on" in " ".join(done.stdout.split())
    assert told["ok"] is False
    assert any("synchronous_commit is off" in problem for problem in told["problems"])


def test_a_server_that_only_reads_is_a_problem(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())

    done = doctor("--url", postgres_url)

    assert done.returncode == 1
    assert "point the address at the primary" in " ".join(done.stdout.split())


def test_durability_is_that_which_the_address_asks_for(sqlite_url: str) -> None:
    done = doctor("--url", f"{migrated(sqlite_url)}?synchronous=normal")

    assert "a power loss may take the last commits" in " ".join(done.stdout.split())


def test_a_file_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    done = doctor("--url", f"sqlite:///{tmp_path}/deep/jobs.db")

    assert done.returncode == 0
    assert "made on first use" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_left_empty(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch()

    done = doctor("--url", f"sqlite:///{file}")

    assert done.returncode == 0
    assert (list(tmp_path.iterdir()), file.stat().st_size) == ([file], 0)


def test_a_path_that_leads_through_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = doctor("--url", f"sqlite:///{tmp_path}/file/jobs.db")

    assert done.returncode == 1
    assert "name another" in " ".join(done.stdout.split())


def test_a_file_of_somebody_else_was_never_prepared(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE notes (note)")
    connection.close()

    done = doctor("--url", f"sqlite:///{file}")

    assert done.returncode == 1
    assert "run `mainspring migrate`" in " ".join(done.stdout.split())
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]
    connection.close()


def test_an_empty_server_was_never_prepared_and_stays_so(empty_postgres_url: str) -> None:
    done = mainspring("doctor", "--url", empty_postgres_url)
    told = json.loads(mainspring("doctor", "--json", "--url", empty_postgres_url).stdout)

    assert done.returncode == 1
    assert "✗  Schema" in done.stdout
    assert "run `mainspring migrate`" in " ".join(done.stdout.split())
    assert told["schema"]["version"] == 0
    with psycopg.connect(empty_postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace('mainspring')").fetchone() == (None,)


def test_a_database_that_is_newer_than_the_program_is_a_problem(url: str) -> None:
    make_newer(migrated(url))

    done = doctor("--url", url)

    assert done.returncode == 1
    assert "upgrade the mainspring package" in " ".join(done.stdout.split())


def test_a_database_that_is_older_than_the_program_is_a_problem(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrated(url)
    monkeypatch.setattr(diagnosis, "_known_version", lambda: LATEST + 1)

    done = doctor("--url", url)

    assert done.returncode == 1
    assert f"version {LATEST}, but {LATEST + 1} is needed" in done.stdout
    assert "run `mainspring migrate`" in " ".join(done.stdout.split())


def test_a_read_only_file_is_a_problem_and_gets_no_companions(sqlite_url: str, tmp_path: Path) -> None:
    file = Path(migrated(sqlite_url).removeprefix("sqlite:///"))
    file.chmod(0o444)

    done = mainspring("doctor", "--url", sqlite_url, powerless=True)

    assert done.returncode == 1
    assert "change its permissions" in " ".join(done.stdout.split())
    assert list(tmp_path.iterdir()) == [file]


def test_a_read_only_folder_is_a_problem(sqlite_url: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)

    done = mainspring("doctor", "--url", sqlite_url, powerless=True)

    assert done.returncode == 1
    assert "change its permissions" in " ".join(done.stdout.split())


def test_a_file_that_can_not_be_seen_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o000)

    done = mainspring("doctor", "--url", f"sqlite:///{folder}/jobs.db", powerless=True)

    assert done.returncode == 1
    assert "change its permissions" in " ".join(done.stdout.split())


def test_a_file_whose_folder_would_not_be_made_is_a_problem(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"

    done = doctor("--url", f"sqlite:///{missing}/data/jobs.db", "--json")

    assert done.returncode == 1
    assert f"there is no {missing}; make it" in done.stdout
    assert doctor("--url", f"sqlite:///{tmp_path}/data/jobs.db").returncode == 0


def test_a_full_disk_is_a_problem(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: SqlStore) -> Probe:
        raise StoreFull("the disk is full; free some space")

    migrated(sqlite_url)
    monkeypatch.setattr(SqlStore, "probe", full)

    done = doctor("--url", sqlite_url)

    assert done.returncode == 1
    assert "free some space" in done.stdout


def test_doctor_shows_no_password(empty_postgres_url: str, postgres_url: str) -> None:
    for url in (empty_postgres_url, postgres_url):
        parts = urlsplit(url)
        # A server that asks for no password does not mind one.
        password = parts.password or "hunter2"
        user, _, host = parts.netloc.rpartition("@")
        with_password = url if parts.password else parts._replace(netloc=f"{user}:{password}@{host}").geturl()

        done = doctor("--url", with_password)
        told = doctor("--json", "--url", with_password)

        assert done.returncode in (0, 1)
        assert password not in done.stdout + done.stderr + told.stdout + told.stderr


NOTHING = Diagnosis(kind="postgresql", location="here", schema_needed=1, schema_version=1)


def probe(*, commit: float = 1.0, ahead: float = 0.0) -> Probe:
    return Probe(
        kind="postgresql",
        version="PostgreSQL 18.4",
        location="there",
        durability="survives",
        commit=timedelta(milliseconds=commit),
        clock=datetime(2026, 1, 1, tzinfo=UTC),
        clock_difference=timedelta(seconds=ahead),
        problems=(),
    )


def test_one_slow_commit_does_not_decide() -> None:
    found = with_probes(NOTHING, [probe(commit=length) for length in (1, 2, 900, 3, 2)])

    assert found.commit == timedelta(milliseconds=2)


@pytest.mark.parametrize(("ahead", "words"), [(90.5, "90.5 s ahead of"), (-2, "2.0 s behind")])
def test_a_clock_that_is_off_is_worth_a_remark_but_no_problem(ahead: float, words: str) -> None:
    found = with_probes(NOTHING, [probe(ahead=ahead)])

    assert words in found.remarks[0]
    assert found.problems == ()


def test_a_clock_that_is_off_by_less_than_a_second_is_not_worth_a_remark() -> None:
    assert with_probes(NOTHING, [probe(ahead=-0.9)]).remarks == ()


def test_somebody_elses_file_is_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = file.read_bytes()

    done = doctor("--url", f"sqlite:///{file}")

    assert done.returncode == 1
    assert "none yet" in done.stdout
    assert file.read_bytes() == before


TABLES = {
    name
    for migration in load_migrations("mainspring.store.postgres")
    for name in re.findall(r"^CREATE TABLE mainspring\.(\w+)", migration.script, re.MULTILINE)
} - {"tokens", "audit", "audit_head"}  # which a worker can do without


@pytest.fixture
def role(postgres_url: str) -> Iterator[str]:
    """A role that may look into our schema."""
    name = f"worker_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA mainspring TO {name}".encode())
        yield name
        owner.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def lacking(url: str, role: str, *grants: str) -> set[str]:
    """Return what the doctor says that *role* lacks rights on, once it was given these."""
    for grant in grants:
        execute(url, grant)
    told = json.loads(doctor("--json", "--url", url.replace("postgres@", f"{role}@")).stdout)
    found = re.findall(r"lacks rights on (.*); grant what", "\n".join(told["problems"]))
    return set(found[0].split(", ")) if found else set()


def test_a_role_that_may_only_read_is_told_of_every_table_and_function(postgres_url: str, role: str) -> None:
    grant = f"GRANT SELECT ON ALL TABLES IN SCHEMA mainspring TO {role}"

    assert lacking(postgres_url, role, grant) == TABLES | {"open_days()", "drop_day()"}


def test_a_role_with_all_rights_but_one_is_told_of_that(postgres_url: str, role: str) -> None:
    documented = re.findall(r"^GRANT .*;$", (ROOT / "docs" / "operating.md").read_text(), re.MULTILINE)

    assert len(documented) == 3
    assert lacking(postgres_url, role, *(grant.replace("worker;", f"{role};") for grant in documented)) == set()
    assert lacking(postgres_url, role, f"REVOKE DELETE ON mainspring.slots FROM {role}") == {"slots"}


@pytest.mark.parametrize("make", [lambda file: file.symlink_to("nowhere"), os.mkfifo], ids=["dangling link", "fifo"])
def test_what_can_be_no_database_is_a_problem(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "odd.db")

    done = doctor("--url", f"sqlite:///{tmp_path / 'odd.db'}")

    assert done.returncode == 1
    assert "name another" in " ".join(done.stdout.split())
