"""What alerts measure is found by an index and within bounds, in tables of hundreds of thousands of rows."""

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

from mainspring.clock import MICROSECOND, SystemClock, microseconds
from mainspring.store import open_store, rows
from mainspring.store.queries import load_queries
from mainspring.store.sqlite.runner import _plain
from tests.plans.test_plans import numbered
from tests.support.factories import claimed_job, new_id, new_jobs, opened_session
from tests.support.postgres import database
from tests.support.schedules import new_schedule

pytestmark = pytest.mark.slow

DONE = 300_000
LIVE = 60_000

PAST = datetime(2026, 1, 1, tzinfo=UTC)

GIVEN: dict[str, Any] = {
    "longer_than": timedelta(hours=1),
    "over": timedelta(minutes=10),
    "queue": "default",
    "queues": rows.document(["default"]),
    "task": None,
    "team": None,
    "look": 1_000,
    "most": 100,
    "limit": 1_000,
    "span": 60,
    "spans": "[60, 900, 7200]",
    "age": timedelta(hours=1),
    "at": PAST,
    "counts": rows.document((team, "mail", 1, 0, 0) for team in ("acme", "beta")),
    "waits": rows.document((team, "mail", 3, 1) for team in ("acme", "beta")),
    "levels": rows.document((team, "mail", 3, 1) for team in ("acme", "beta")),
}

# Jobs that ended one after the other until now, every hundredth of which failed.
_DONE_POSTGRES = f"""
INSERT INTO mainspring.jobs_done (id, task, queue, payload, priority, state, run_at, created_at, attempt, losses, fence,
                                  session, started_at, finished_at, outcome, filed_at, fingerprint)
SELECT gen_random_uuid(), 'greet', 'default', '{{}}', 5, CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'succeeded' END,
       at, at, 1, 0, 1, gen_random_uuid(), at, at, 'succeeded', at, 'f'
FROM (SELECT n, clock_timestamp() - (1 - n / {DONE}.0) * least(interval '12 hours',
             clock_timestamp() - date_trunc('day', clock_timestamp(), 'UTC')) AS at
      FROM generate_series(1, {DONE}) AS n) AS ended
"""

_DONE_SQLITE = f"""
WITH RECURSIVE numbers (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM numbers WHERE value < {DONE})
INSERT INTO mainspring_jobs_done (id, task, queue, payload, priority, state, run_at, created_at, attempt, losses, fence,
                                  session, started_at, finished_at, outcome, fingerprint)
SELECT hex(randomblob(16)), 'greet', 'default', '{{}}', 5, iif(value % 100 = 0, 'failed', 'succeeded'),
       :now - value * 100000, 0, 1, 0, 1, 's', 0, :now - value * 100000, 'succeeded', 'f'
FROM numbers
"""


def fill(url: str) -> None:
    store = open_store(url)
    store.put_schedules([new_schedule(f"s{n}") for n in range(5_000)])
    claimed_job(store, opened_session(store, lease=timedelta(hours=1)))
    store.enqueue(new_jobs(LIVE // 2))
    store.enqueue(new_jobs(LIVE // 2, delay=timedelta(hours=1)))
    for n in range(20):
        store.backfill("s0", {PAST + timedelta(minutes=m): new_id() for m in range(n * 500, n * 500 + 500)}, "n")
    store.close()


@pytest.fixture(scope="module")
def filled_postgres(postgres_server: str, migrated_template: str) -> Iterator[str]:
    with database(postgres_server, f"filled_{uuid.uuid4().hex}", migrated_template) as url:
        fill(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_DONE_POSTGRES.encode())
        yield url


def plan_of(url: str, name: str, mode: str, **changes: Any) -> str:
    statement, names = numbered(load_queries("mainspring.store.postgres")[name])
    values = GIVEN | {"now": None} | changes
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        connection.execute(f"PREPARE q AS {statement}".encode())
        arguments = sql.SQL(", ").join(sql.Literal(values[name]) for name in names)
        explain = sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS) EXECUTE q")
        call = explain + sql.SQL(" ({})").format(arguments)
        return "\n".join(line for (line,) in connection.execute(call))


INDEX = {
    "stuck_jobs": "jobs_held",
    "late_job": "jobs_due",
    "late_schedule": "schedules_due",
    "ready_jobs": "jobs_ready",
    "oldest_ready": "jobs_ready",
    "ready_queues": "jobs_ready",
    "ready_by_team": "jobs_ready",
    "ready_beyond": "jobs_ready",
    "missed_ticks": "ticks_missed",
    "overdue_schedules": "schedules_overdue",
}
MODES = ["force_custom_plan", "force_generic_plan"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("name", INDEX)
def test_postgres_measures_what_lives_by_an_index(filled_postgres: str, name: str, analyzed: bool, mode: str) -> None:
    with psycopg.connect(filled_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE" if analyzed else b"SELECT")

    plan = plan_of(filled_postgres, name, mode)

    assert re.search(rf"\b{INDEX[name]}\b", plan), plan
    assert not re.search(r"Seq Scan on (jobs|schedules|ticks)\b", plan), plan
    assert not re.search(r"actual rows=\d{5,}", plan), plan


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize(("name", "columns"), {"lately_ended": "finished_at", "lately_dead": "finished_at"}.items())
def test_postgres_measures_what_has_ended_without_walking_the_day(
    filled_postgres: str, name: str, columns: str, analyzed: bool, mode: str
) -> None:
    with psycopg.connect(filled_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE" if analyzed else b"SELECT")
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM mainspring.jobs_done").fetchone()
    today = (found or ("",))[0].removeprefix("mainspring.")

    plan = plan_of(filled_postgres, name, mode)

    assert re.search(rf"{today}_{columns}_idx1?\b", plan), plan
    assert not re.search(rf"Seq Scan on {today}\b", plan), plan
    assert not re.search(r"Heap Scan .*actual rows=\d{5,}", plan), plan


@pytest.fixture(scope="module")
def filled_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "mainspring.db"
    fill(f"sqlite:///{path}?synchronous=normal")
    connection = sqlite3.connect(path)
    connection.execute(_DONE_SQLITE, {"now": microseconds(SystemClock().now())})
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize(
    ("name", "index"), [*INDEX.items(), ("lately_ended", "jobs_done_finished"), ("lately_dead", "jobs_done_failed")]
)
def test_sqlite_measures_by_an_index(filled_sqlite: Path, name: str, index: str, analyzed: bool) -> None:
    clock = SystemClock()
    values = {key: _plain(value) for key, value in GIVEN.items()}
    values |= {"now": microseconds(clock.now()), "steady": timedelta(seconds=clock.steady()) // MICROSECOND}
    connection = sqlite3.connect(filled_sqlite)
    connection.execute("ANALYZE" if analyzed else "PRAGMA user_version")
    (statement,) = load_queries("mainspring.store.sqlite")[name].statements
    plan = "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))
    connection.close()

    assert f"mainspring_{index}" in plan, plan
    assert not re.search(r"SCAN (job|mainspring_(jobs|jobs_done|schedules|ticks))\b(?!.*INDEX)", plan), plan


@pytest.mark.parametrize("mode", MODES)
def test_postgres_looks_for_lower_priorities_only_where_there_may_be_more(filled_postgres: str, mode: str) -> None:
    plans = [plan_of(filled_postgres, "oldest_ready", mode, look=look) for look in (10, 2 * LIVE)]
    leaps = [int(rows) for plan in plans for rows in re.findall(r"Recursive Union .*actual rows=(\d+)", plan)]

    assert leaps == [1, 0], plans  # the last that was seen, with none beyond; and none where all were seen


def test_sqlite_leaps_from_priority_to_priority_rather_than_ask_for_each(filled_sqlite: Path) -> None:
    values = {key: _plain(value) for key, value in GIVEN.items()} | {"now": 0, "look": 10}
    connection = sqlite3.connect(filled_sqlite)
    steps: list[None] = []
    connection.set_progress_handler(lambda: steps.append(None), 1)
    (statement,) = load_queries("mainspring.store.sqlite")["oldest_ready"].statements
    connection.execute(statement, values).fetchall()
    connection.close()

    assert len(steps) < 2_000  # to ask for each of a hundred takes five thousand


@pytest.fixture
def sampled_postgres(filled_postgres: str) -> Iterator[str]:
    """The database with waits of an hour in it, which are shown to whoever looks back, and some that are old."""
    with psycopg.connect(filled_postgres, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO mainspring.waits "
            "SELECT 60, date_trunc('minute', now()) + (minute - 60) * interval '1 minute', "
            "'acme', 'q' || queue, 3, 1 FROM generate_series(-10, 60) AS minute, generate_series(1, 500) AS queue"
        )
        yield filled_postgres
        connection.execute("TRUNCATE mainspring.waits")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
def test_postgres_prunes_waits_without_a_look_at_those_that_stay(
    sampled_postgres: str, analyzed: bool, mode: str
) -> None:
    with psycopg.connect(sampled_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE mainspring.waits" if analyzed else b"SELECT")

    plan = plan_of(sampled_postgres, "prune_waits", mode)

    assert re.search(r"Index Scan using waits_pkey", plan), plan
    assert not re.search(r"Seq Scan on waits\b|Sort", plan), plan
    assert not re.search(r"actual rows=\d{4,}", plan), plan


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add_counts", "add_waits", "put_levels"])
def test_postgres_adds_samples_in_the_order_in_which_they_are_given(
    sampled_postgres: str, name: str, mode: str
) -> None:
    plan = plan_of(sampled_postgres, name, mode)

    assert re.search(r"Sort Key: .*\bposition\b", plan), plan
