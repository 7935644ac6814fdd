"""What goes is found page by page within its day, and forgotten by keys, in a history of hundreds of thousands."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from mainspring.store import open_store
from mainspring.store.queries import load_queries
from mainspring.store.sqlite.runner import _plain
from tests.plans.test_plans import numbered
from tests.support.factories import new_jobs
from tests.support.postgres import database

pytestmark = pytest.mark.slow

DAY = timedelta(days=1)
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAYS, EACH = 4, 60_000
LOOK = 1_000

GIVEN: dict[str, Any] = {
    "since": TODAY + DAY,
    "until": TODAY + 2 * DAY,
    "after": uuid.UUID(int=0x7 << 124),
    "limit": LOOK,
    "team": "",
    "queue": "",
    "state": "succeeded",
    "others": '[["acme", "", ""]]',
    "edge_at": TODAY + 2 * DAY,
    "edge_id": uuid.UUID(int=0),
    "workflow": uuid.UUID(int=1),
    "ids": '["00000000-0000-0000-0000-000000000001"]',
    "skip": 10,
    "most": 1_000,
    "going": "[" + ", ".join(f'["{uuid.uuid4()}", 0, 0, false]' for _ in range(LOOK)) + "]",
}

_POSTGRES = f"""
INSERT INTO mainspring.jobs_done (id, task, queue, payload, priority, state, run_at, created_at, attempt, losses, fence,
                                  session, started_at, finished_at, outcome, filed_at, workflow)
SELECT gen_random_uuid(), 'greet', 'default', '{{}}', 5, 'succeeded', at, at, 1, 0, 1, gen_random_uuid(), at, at,
       'succeeded', at, CASE WHEN n % 10 = 0 THEN gen_random_uuid() END
FROM (SELECT n, date_trunc('day', now(), 'UTC') + n * interval '1 day' / {EACH} AS at
      FROM generate_series(1, {DAYS * EACH} - 1) AS n) AS ended
"""

_SQLITE = f"""
WITH RECURSIVE numbers (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM numbers WHERE value < {DAYS * EACH} - 1)
INSERT INTO mainspring_jobs_done (id, task, queue, payload, priority, state, run_at, created_at, attempt, losses, fence,
                                  session, started_at, finished_at, outcome, workflow)
SELECT lower(hex(randomblob(16))), 'greet', 'default', '{{}}', 5, 'succeeded', 0, 0, 1, 0, 1, 's', 0,
       :today + value * 86400000000 / {EACH}, 'succeeded', iif(value % 10 = 0, lower(hex(randomblob(16))), NULL)
FROM numbers
"""


@pytest.fixture(scope="module")
def full_postgres(postgres_server: str, migrated_template: str) -> Iterator[str]:
    with database(postgres_server, f"full_{uuid.uuid4().hex}", migrated_template) as url:
        store = open_store(url)
        store.enqueue(new_jobs(5_000, delay=DAY))
        store.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_POSTGRES.encode())
        yield url


@pytest.fixture(scope="module")
def full_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "mainspring.db"
    open_store(f"sqlite:///{path}?synchronous=normal").close()
    connection = sqlite3.connect(path)
    connection.execute(_SQLITE, {"today": _plain(TODAY)})
    connection.commit()
    connection.close()
    return path


def postgres_plan(url: str, name: str, mode: str) -> str:
    statement, names = numbered(load_queries("mainspring.store.postgres")[name])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        connection.execute(f"PREPARE q AS {statement}".encode())
        values = [str(GIVEN[n]) if isinstance(GIVEN[n], uuid.UUID) else GIVEN[n] for n in names]
        arguments = sql.SQL(", ").join(map(sql.Literal, values))
        call = sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF) EXECUTE q ({})").format(arguments)
        return "\n".join(line for (line,) in connection.execute(call))


def sqlite_plan(path: Path, name: str) -> str:
    values = {key: _plain(value) for key, value in GIVEN.items()}
    connection = sqlite3.connect(path)
    try:
        return "\n".join(
            row[3]
            for statement in load_queries("mainspring.store.sqlite")[name].statements
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        )
    finally:
        connection.close()


def day_of(offset: int) -> str:
    return f"jobs_done_{TODAY + offset * DAY:%Y%m%d}"


MODES = ["force_custom_plan", "force_generic_plan"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("name", ["tally_page", "going_page"])
def test_postgres_reads_a_page_of_one_day_and_no_more(full_postgres: str, name: str, analyzed: bool, mode: str) -> None:
    with psycopg.connect(full_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE" if analyzed else b"SELECT")

    plan = postgres_plan(full_postgres, name, mode)

    assert re.search(rf"Index Scan using {day_of(1)}_pkey .*actual rows={LOOK}\b", plan), plan
    filled = "|".join(["jobs", *map(day_of, range(DAYS))])
    assert not re.search(rf"Seq Scan on ({filled})\b", plan), plan
    assert not re.search(r"actual rows=\d{5,}", plan), plan


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("name", ["forget", "members_to_go", "family", "ended_of_team"])
def test_postgres_finds_what_is_forgotten_by_its_key(full_postgres: str, name: str, analyzed: bool, mode: str) -> None:
    with psycopg.connect(full_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE" if analyzed else b"SELECT")

    plan = postgres_plan(full_postgres, name, mode)

    walked = re.findall(rf"Seq Scan on {day_of(1)}\b.*", plan)
    assert not walked, plan
    assert not re.search(r"actual rows=\d{5,}", plan), plan


@pytest.mark.parametrize("mode", MODES)
def test_postgres_finds_the_nth_newest_within_its_minute(
    full_postgres: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GIVEN, "since", TODAY + 1.5 * DAY)
    monkeypatch.setitem(GIVEN, "until", TODAY + 1.5 * DAY + timedelta(minutes=1))

    plan = postgres_plan(full_postgres, "nth_newest", mode)

    assert re.search(rf"{day_of(1)}_finished_at_idx\b", plan), plan
    assert not re.search(rf"Seq Scan on {day_of(1)}\b", plan), plan


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("tally_page", "jobs_done_finished"),
        ("going_page", "jobs_done_finished"),
        ("nth_newest", "jobs_done_finished"),
        ("finished_days", "jobs_done_finished"),
        ("members_to_go", "jobs_done_workflow"),
        ("family", "jobs_done_workflow"),
        ("ended_of_team", "jobs_done_team"),
        ("forget", "jobs_done_1"),
    ],
)
def test_sqlite_finds_what_goes_by_an_index(full_sqlite: Path, name: str, index: str, analyzed: bool) -> None:
    connection = sqlite3.connect(full_sqlite)
    connection.execute("ANALYZE" if analyzed else "PRAGMA user_version")
    connection.commit()
    connection.close()

    plan = sqlite_plan(full_sqlite, name)

    assert f"mainspring_{index}" in plan, plan
    assert not re.search(r"SCAN (done|root|mainspring_\w+)\b(?!.*INDEX)", plan), plan
