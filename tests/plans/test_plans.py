"""The hot queries use their index, in a large table that has been churned and never vacuumed."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql

from mainspring.clock import MICROSECOND, SystemClock, microseconds
from mainspring.model.failure import Failure
from mainspring.model.ids import first_id
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import open_store, rows
from mainspring.store.postgres.database import PLANNED_ANEW
from mainspring.store.queries import Query, load_queries
from mainspring.store.sql import SqlStore
from mainspring.store.sqlite.runner import _plain
from tests.support.databases import execute
from tests.support.factories import new_id, new_job, new_jobs, opened_session
from tests.support.postgres import database
from tests.support.schedules import new_schedule
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SESSION = new_id()
LIVE = 100_000
CHILDREN = 10_000

IN_STATE = {"ready": "jobs_ready", "running": "jobs_held", "paused": "jobs_aside"}

INDEX = {
    "claim": "jobs_ready",
    "claim of known tasks": "jobs_ready",
    "settle_done": "jobs_pkey",
    "settle_again": "jobs_pkey",
    "promote": "jobs_due",
    "next_due": "jobs_due",
    "next_expiry": "jobs_expiring",
    "lock_expired": "jobs_expiring",
    "misranked": "jobs_ready",
    "held": "jobs_held",
    "lock_held": "jobs_held",
    "lock_live": "jobs_pkey",
    "ask": "jobs_pkey",
    "holders": "jobs_key",
    "get": "jobs_pkey",
    "get_unfinished": "jobs_pkey",
    "page": "jobs_pkey",
    "page by its error": "jobs_pkey",
    **{f"{query} {state}": index for query in ("few", "page_few") for state, index in IN_STATE.items()},
    "look_back": "jobs_pkey",
    "look_back_of": "jobs_team",
    "any_teams": "jobs_team",
    "backlog_kinds": "jobs_aside",
    "backlog_kinds_of": "jobs_backlog",
    "count_waiting": "jobs_ready",
    "count_waiting_of": "jobs_backlog",
    "count_running": "jobs_held",
    "changes": "jobs_pkey",
    "page_of": "jobs_team",
    "pending_of_team": "jobs_team",
    "backlog_of": "jobs_team",
    "page_schedules_of": "schedules_team",
    "coming_schedules": "schedules_due",
    "coming_schedules_of": "schedules_team",
    "jobs_ahead": "jobs_ready",
    "waiting_ahead": "jobs_waiting",
    "release": "jobs_waiting",
    "lock_running": "jobs_pkey",
    "record_lines": "jobs_pkey",
    "record_progress": "jobs_pkey",
    "record_step": "jobs_pkey",
    "begin_step": "jobs_pkey",
    "take_signal": "jobs_pkey",
    "unfinished_of": "jobs_schedule",
    "lock_due_schedules": "schedules_due",
    "next_fire": "schedules_due",
    "move_schedules": "schedules_pkey",
    "follow": "schedules_pkey",
    "lock_parents": "jobs_pkey",
    "count_down": "jobs_pkey",
    "unlink": "edges_pkey",
    "unfinished_members": "jobs_workflow",
}
"""By query, which may be followed by what is special about the case."""


DEAD = ["dead_groups", "dead_fingerprints", "dead_count", "dead_among", "dead_letters", "dead_page"]


OF_PAGES: dict[str, dict[str, Any]] = {
    "page by its error": {"error": "no such error"},
    **{f"{query} {state}": {"state": state, "team": None} for query in ("few", "page_few") for state in IN_STATE},
    **{f"{query}_ended failed": {"state": "failed"} for query in ("page", "look_back")},
}


def parameters(name: str) -> dict[str, Any]:
    """Return plausible arguments of the query *name*; 500 settlements, as in a busy worker."""
    ids = [new_id() for _ in range(500)]
    decided = dict.fromkeys(ids, (1, "running", "retrying", 1, 0, "failed", "{}", None, 5))
    everything = {
        "session": SESSION,
        "queue": "default",
        "limit": 500,
        "settlements": msgspec.json.encode(decided).decode(),
        "wishes": rows.document((job_id, 1, "cancel", None) for job_id in ids[:5]),
        "ids": rows.ids(ids[:5]),
        "name": "charge",
        "result": "1",
        "delay": timedelta(hours=1),
        "signal": "go",
        "keys": rows.document(["a", "b"]),
        "before": ids[0],
        "state": None,
        "task": None,
        "key": None,
        "contains": "hello",
        "left_out": '["debug"]',
        "tasks": None,
        "attempts": rows.document((job_id, 1) for job_id in ids[:20]),
        "lines": rows.document((job_id, 1, number, "INFO", "hello") for job_id in ids[:20] for number in range(20)),
        "progress": rows.document((job_id, 1, "{}") for job_id in ids[:20]),
        "job_id": ids[0],
        "age": 0,
        "ahead": timedelta(milliseconds=50),
        "most": 100,
        "looked": 10_000,
        "room": 100,
        "newest": 1_000,
        "lately": timedelta(minutes=5),
        "beyond": timedelta(seconds=1),
        "schedules": rows.document(f"s{n}" for n in range(250)),
        "positions": msgspec.json.encode({f"s{n}": (False, 0, 0, 1, None, False, False) for n in range(250)}).decode(),
        "parents": rows.ids(ids),
        "except": "wait",
        "counts": rows.counts(dict.fromkeys(ids, 1)),
        "workflows": rows.ids(ids[:5]),
        "ended": msgspec.json.encode({f"s{n}": True for n in range(250)}).decode(),
        "fence": 1,
        "number": 1,
        "group": None,
        "prefix": "a",
        "after": None,
        "team": "acme",
        "nobodys": False,
        "unfinished": True,
        "finished": True,
        "first": uuid.UUID(int=0),
        "error": None,
        "finished_since": None,
        "finished_until": None,
        "kinds": rows.document([("default", "ready"), ("mail", "ready"), ("default", "scheduled")]),
        "origin": None,
    }
    everything |= OF_PAGES.get(name, {})
    if name == "claim of known tasks":
        everything["tasks"] = rows.document(f"package.module.task_{n}" for n in range(50))
    if name.startswith(("page", "dead_")):
        everything["queue"] = None
    if name == "page_schedules_of":
        everything["after"] = ""
    if name in DEAD:
        everything["team"] = None
    if name == "find_logs":
        everything["team"] = None
        everything["since"] = SystemClock().now() - timedelta(minutes=1)
        everything["before"] = SystemClock().now() + timedelta(minutes=1)
    if name == "changes":
        since, until = (SystemClock().now() + way * timedelta(hours=1) for way in (-1, 1))
        everything |= {"since": since, "first": first_id(since), "last": first_id(until)}
    if name == "release":
        everything["key"] = "smtp"
    if name == "pace of an idle queue":
        everything["queue"] = "idle"
    if name == "settle_done":
        alike = msgspec.json.encode(dict.fromkeys(ids, (1, "1"))).decode()
        everything |= {"settlements": alike, "source": "running", "losses": 0, "expected": 500}
        everything |= {"state": "succeeded", "outcome": "succeeded", "awaited": False, "forgets": True}
    return everything


def churn(store: SqlStore) -> None:
    """Leave many dead rows and dead index entries behind, and LIVE jobs in all states."""
    session = opened_session(store, lease=timedelta(hours=1))
    store.put_schedules([new_schedule(f"s{n}") for n in range(20_000)])
    store.put_schedules([new_schedule(f"@acme/s{n}", team="acme") for n in range(20)])
    store.enqueue([*new_jobs(20_000), *new_jobs(500, team="acme")])
    while jobs := store.claim(session, "default", 2_000):
        store.settle([settle(job, Succeeded("1")) for job in jobs])
    store.enqueue(new_jobs(LIVE * 6 // 10))
    store.enqueue([*new_jobs(LIVE * 2 // 10, queue="mail"), *new_jobs(500, queue="mail", team="acme")])
    store.enqueue(new_jobs(LIVE * 2 // 10, delay=timedelta(hours=1)))
    parents = new_jobs(CHILDREN, delay=timedelta(hours=1))
    store.enqueue([*parents, *(new_job(parents=(Edge(parent.id),)) for parent in parents)])
    for job in (failed := store.claim(session, "default", 1_000)):
        assert job.fence == 1
    store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry(base="1h")) for job in failed])
    for n, job in enumerate(store.claim(session, "default", 200)):
        store.settle([settle(job, Failed(Failure(type="E", message="e", fingerprint=f"a{n % 9}")))])
    for job in store.claim(session, "default", 1_000)[:20]:
        store.record([LogLine(job.id, job.fence, number, "INFO", "hello") for number in range(1, 501)], [])


# --- PostgreSQL ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def churned_postgres(postgres_server: str, migrated_template: str) -> Iterator[str]:
    with database(postgres_server, f"churned_{uuid.uuid4().hex}", migrated_template) as url:
        store = open_store(url)
        churn(store)
        store.close()
        yield url


def numbered(query: Query) -> tuple[str, list[str]]:
    """Return the statement with $1, $2 … and the names that these stand for."""
    names = sorted(query.parameters)
    statement = re.sub(r"(?<![:\w]):([a-z_]+)", lambda match: f"${names.index(match[1]) + 1}", query.statements[0])
    return statement, names


def postgres_plan(url: str, name: str, mode: str, options: str = "") -> str:
    statement, names = numbered(load_queries("mainspring.store.postgres")[name.split()[0]])
    values = parameters(name) | {"now": None}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        connection.execute(f"PREPARE q AS {statement}".encode())
        arguments = sql.SQL(", ").join(
            sql.Literal(str(values[n]) if isinstance(values[n], uuid.UUID) else values[n]) for n in names
        )
        explain = sql.SQL(f"EXPLAIN ({options or 'COSTS'}) EXECUTE q")
        call = explain + sql.SQL(" ({})").format(arguments) if names else explain
        return "\n".join(line for (line,) in connection.execute(call))


CASES = [
    (name, index, mode)
    for name, index in INDEX.items()
    for mode in ("force_custom_plan", "force_generic_plan")
    if not (name.split()[0] in PLANNED_ANEW and mode == "force_generic_plan")
]


STATISTICS = {
    "never-analyzed": "SELECT",
    # What vacuum leaves behind when it comes by while the queue is empty.
    "taken-for-empty": "UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE oid = 'mainspring.jobs'::regclass",
    "analyzed": "ANALYZE mainspring.jobs, mainspring.edges, mainspring.schedules",
}


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize(("name", "index", "mode"), CASES, ids=[f"{name}-{mode}" for name, _, mode in CASES])
def test_postgres_uses_the_index(churned_postgres: str, name: str, index: str, mode: str, statistics: str) -> None:
    with psycopg.connect(churned_postgres, autocommit=True) as connection:
        connection.execute(STATISTICS[statistics].encode())

    plan = postgres_plan(churned_postgres, name, mode)

    assert re.search(rf"\b{index}\b", plan), plan
    assert not re.search(r"Seq Scan on (jobs|edges)\b", plan), plan


@pytest.fixture(scope="module")
def flooded_postgres(postgres_server: str, migrated_template: str) -> Iterator[str]:
    """A database with many jobs that are ready or due, of which the planner knows only that the table is large."""
    with database(postgres_server, f"flooded_{uuid.uuid4().hex}", migrated_template) as url:
        store = open_store(url)
        store.enqueue(new_jobs(LIVE // 2))
        store.enqueue(new_jobs(LIVE // 2, delay=timedelta(milliseconds=1)))
        store.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM mainspring.jobs")
        yield url


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", ["claim", "claim of known tasks", "promote", "release"])
def test_postgres_takes_what_comes_first_without_sorting_all(flooded_postgres: str, name: str, mode: str) -> None:
    plan = postgres_plan(flooded_postgres, name, mode)

    assert f"Index Scan using {INDEX[name]}" in plan, plan
    assert "Sort" not in plan, plan


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", ["claim", "claim of known tasks"])
def test_postgres_walks_the_queue_in_order_though_many_tasks_are_paused(
    flooded_postgres: str, name: str, mode: str
) -> None:
    with psycopg.connect(flooded_postgres, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO mainspring.pauses SELECT 'task', 'task_' || n, 'ada', NULL, now() "
            "FROM generate_series(1, 1000) AS n ON CONFLICT DO NOTHING"
        )
        connection.execute("ANALYZE mainspring.pauses")
        try:
            plan = postgres_plan(flooded_postgres, name, mode)
        finally:
            connection.execute("TRUNCATE mainspring.pauses")

    assert "Index Scan using jobs_ready" in plan, plan
    assert "Sort" not in plan, plan
    assert "hashed SubPlan" in plan, plan  # looked up for each row, not walked


@pytest.mark.parametrize("name", ["settle_done", "settle_again"])
@pytest.mark.parametrize("statistics", STATISTICS)
def test_postgres_finds_each_job_that_is_settled_by_its_id(churned_postgres: str, name: str, statistics: str) -> None:
    with psycopg.connect(churned_postgres, autocommit=True) as connection:
        connection.execute(STATISTICS[statistics].encode())

    plan = postgres_plan(churned_postgres, name, "force_generic_plan")

    assert re.search(r"jobs_pkey.*\n\s+Index Cond: \(id = ANY", plan), plan
    assert not re.search(r"Seq Scan on jobs\b|Hash Join|Merge Join", plan), plan


def test_postgres_settles_without_walking_what_the_session_left_behind(churned_postgres: str) -> None:
    """The index of a session's jobs is full of dead entries; settle must not use it."""
    plan = postgres_plan(churned_postgres, "settle_done", "force_custom_plan")

    assert "jobs_held" not in plan, plan


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("name", ["logs", "record_lines"])
def test_postgres_finds_lines_by_their_job(churned_postgres: str, name: str, analyzed: bool) -> None:
    if analyzed:
        with psycopg.connect(churned_postgres, autocommit=True) as connection:
            connection.execute("ANALYZE mainspring.logs")

    plan = postgres_plan(churned_postgres, name, "force_custom_plan")

    with psycopg.connect(churned_postgres) as connection:
        (today,) = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM mainspring.logs").fetchone() or ()
    today = today.removeprefix("mainspring.")
    assert f"{today}_pkey" in plan, plan
    assert not re.search(rf"Seq Scan on {today}", plan), plan


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
def test_postgres_searches_lines_of_their_days_and_looks_up_the_job_of_each(
    churned_postgres: str, analyzed: bool
) -> None:
    if analyzed:
        with psycopg.connect(churned_postgres, autocommit=True) as connection:
            connection.execute("ANALYZE mainspring.logs, mainspring.jobs_done, mainspring.jobs")

    plan = postgres_plan(churned_postgres, "find_logs", "force_custom_plan")

    assert len(set(re.findall(r"on (logs_\d{8})", plan))) <= 2, plan
    assert "Index Scan using jobs_pkey" in plan, plan
    assert re.search(r"Index Scan using jobs_done_\d{8}_pkey", plan), plan


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("name", [*DEAD, *(f"{name} of a team" for name in DEAD)])
def test_postgres_finds_dead_letters_without_walking_all_history(
    churned_postgres: str, name: str, analyzed: bool, mode: str
) -> None:
    if analyzed:
        with psycopg.connect(churned_postgres, autocommit=True) as connection:
            connection.execute("ANALYZE mainspring.jobs_done")

    plan = postgres_plan(churned_postgres, name, mode)

    with psycopg.connect(churned_postgres) as connection:
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM mainspring.jobs_done").fetchone()
    (today,) = found or ("",)
    today = today.removeprefix("mainspring.")
    # Either index of the failed will do: by their cause, with all that is asked for, or, while they are few, by time.
    # The names are what PostgreSQL makes of them for a partition, cut to the length that a name may have.
    assert re.search(rf"{today}_(fingerprint_id_finished_at_queue_task_te_idx|finished_at_idx1)", plan), plan
    assert not re.search(rf"Seq Scan on {today}\b", plan), plan


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
def test_postgres_finds_what_a_team_has_finished_without_walking_all_history(
    churned_postgres: str, analyzed: bool
) -> None:
    with psycopg.connect(churned_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE mainspring.jobs_done" if analyzed else b"SELECT")
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM mainspring.jobs_done").fetchone()
    (today,) = found or ("",)
    today = today.removeprefix("mainspring.")

    plan = postgres_plan(churned_postgres, "page_of", "force_custom_plan")

    assert f"{today}_team_id_idx" in plan, plan
    assert not re.search(rf"Seq Scan on {today}\b|{today}_pkey", plan), plan


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("name", ["page_ended failed", "look_back_ended failed"])
def test_postgres_finds_what_ended_in_a_rare_way_without_walking_all_history(
    churned_postgres: str, name: str, analyzed: bool
) -> None:
    with psycopg.connect(churned_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE mainspring.jobs_done" if analyzed else b"SELECT")
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM mainspring.jobs_done").fetchone()
    (today,) = found or ("",)
    today = today.removeprefix("mainspring.")

    plan = postgres_plan(churned_postgres, name, "force_custom_plan")

    # While they are few, any index of the failed will do.
    assert re.search(rf"{today}_(state_id_idx|finished_at_idx1)", plan), plan
    assert not re.search(rf"Seq Scan on {today}\b|{today}_pkey", plan), plan


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize("queue", ["a busy queue", "an idle queue"])
def test_postgres_reads_no_more_than_the_newest_jobs_for_the_pace_of_a_queue(
    churned_postgres: str, queue: str, analyzed: bool, mode: str
) -> None:
    with psycopg.connect(churned_postgres, autocommit=True) as connection:
        connection.execute(b"ANALYZE mainspring.jobs_done" if analyzed else b"SELECT")
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM mainspring.jobs_done").fetchone()
    (today,) = found or ("",)
    today = today.removeprefix("mainspring.")

    plan = postgres_plan(churned_postgres, f"pace of {queue}", mode, options="ANALYZE, TIMING OFF")

    assert re.search(rf"Index Scan Backward using {today}_pkey .*actual rows=(1000|1001)\b", plan), plan
    assert not re.search(rf"Seq Scan on {today}\b", plan), plan


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("statistics", STATISTICS)
def test_postgres_tells_what_is_new_without_walking_all_jobs(churned_postgres: str, statistics: str, mode: str) -> None:
    with psycopg.connect(churned_postgres, autocommit=True) as connection:
        connection.execute(STATISTICS[statistics].encode())

    plan = postgres_plan(churned_postgres, "changes", mode, options="ANALYZE, TIMING OFF, BUFFERS OFF")

    # In a table that is taken for empty, all that is new is read and sorted; there is no harm in that.
    if statistics != "taken-for-empty":
        assert re.search(r"Index Scan Backward using jobs_pkey on jobs .*actual rows=500\b", plan), plan
    assert re.search(r"Index Cond: \(\(id >= .* AND \(id < ", plan), plan
    assert re.search(r"Scan (using|on) jobs_held\b", plan), plan
    assert not re.search(r"Seq Scan on jobs\b|loops=\d{5}", plan), plan  # nor one by one


# --- SQLite ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def churned_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "mainspring.db"
    store = open_store(f"sqlite:///{path}?synchronous=normal")
    churn(store)
    store.close()
    return path


def sqlite_plan(path: Path, name: str) -> str:
    clock = SystemClock()
    values = {key: _plain(value) for key, value in parameters(name).items()}
    values |= {"now": microseconds(clock.now()), "steady": timedelta(seconds=clock.steady()) // MICROSECOND}
    queries = load_queries("mainspring.store.sqlite")
    connection = sqlite3.connect(path)
    try:
        connection.execute(*queries["scratch"].statements)
        return "\n".join(
            row[3]
            for statement in queries[name.split()[0]].statements
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        )
    finally:
        connection.close()


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed"])
@pytest.mark.parametrize(("name", "index"), INDEX.items(), ids=INDEX.keys())
def test_sqlite_uses_the_index(churned_sqlite: Path, name: str, index: str, analyzed: bool) -> None:
    connection = sqlite3.connect(churned_sqlite)
    connection.execute("ANALYZE" if analyzed else "PRAGMA user_version")
    connection.commit()
    connection.close()

    plan = sqlite_plan(churned_sqlite, name)

    # SQLite names the index of a primary key after its table, unless that is the table.
    table, is_key = index.removesuffix("_pkey"), index.endswith("_pkey")
    expected = f"sqlite_autoindex_mainspring_{table}_1" if is_key else f"mainspring_{index}"
    assert expected in plan or f"mainspring_{table} USING PRIMARY KEY" in plan, plan
    scans = [
        line
        for line in plan.splitlines()
        if re.match(r"SCAN (job|mainspring_jobs|mainspring_edges|mainspring_schedules)\b(?!.*INDEX)", line)
    ]
    assert not scans, plan


@pytest.mark.parametrize("name", [*DEAD, *(f"{name} of a team" for name in DEAD)])
def test_sqlite_finds_dead_letters_without_walking_all_history(churned_sqlite: Path, name: str) -> None:
    plan = sqlite_plan(churned_sqlite, name)

    assert "USING COVERING INDEX mainspring_jobs_done_dead" in plan, plan
    assert not re.search(r"SCAN (mainspring_jobs_done|sample)\b(?!.*INDEX)", plan), plan


def test_sqlite_finds_what_a_team_has_finished_without_walking_all_history(churned_sqlite: Path) -> None:
    assert "mainspring_jobs_done USING INDEX mainspring_jobs_done_team" in sqlite_plan(churned_sqlite, "page_of")


@pytest.mark.parametrize("name", ["page_ended failed", "look_back_ended failed"])
def test_sqlite_finds_what_ended_in_a_rare_way_without_walking_all_history(churned_sqlite: Path, name: str) -> None:
    plan = sqlite_plan(churned_sqlite, name)

    assert "INDEX mainspring_jobs_done_ended (state=? AND id>? AND id<?)" in plan, plan
    assert "TEMP B-TREE" not in plan, plan


def test_sqlite_leaps_from_queue_to_queue(churned_sqlite: Path) -> None:
    plan = sqlite_plan(churned_sqlite, "backlog_kinds")

    assert "INDEX mainspring_jobs_ready (queue>?)" in plan, plan
    assert "COVERING INDEX mainspring_jobs_aside (state=? AND queue>?)" in plan, plan


def test_sqlite_leaps_from_queue_to_queue_of_a_team(churned_sqlite: Path) -> None:
    plan = sqlite_plan(churned_sqlite, "backlog_kinds_of")

    assert "COVERING INDEX mainspring_jobs_backlog (team=? AND state=? AND queue>?)" in plan, plan


def test_sqlite_finds_lines_by_their_job(churned_sqlite: Path) -> None:
    plan = sqlite_plan(churned_sqlite, "logs")

    assert "sqlite_autoindex_mainspring_logs_1" in plan, plan
    assert "TEMP B-TREE" not in plan, plan


def test_sqlite_searches_lines_by_their_time_and_looks_up_the_job_of_each(churned_sqlite: Path) -> None:
    plan = sqlite_plan(churned_sqlite, "find_logs")

    assert "mainspring_logs_at" in plan, plan
    assert not re.search(r"SCAN (job|done)", plan), plan


def test_sqlite_finds_each_kind_of_change_by_its_index(churned_sqlite: Path) -> None:
    plan = sqlite_plan(churned_sqlite, "changes")

    for index in ("jobs_held", "attempts_finished", "jobs_done_finished"):
        assert f"mainspring_{index}" in plan, plan
    assert not re.search(r"SCAN (job|ended|mainspring_\w+)\b(?!.*INDEX)", plan), plan
    assert plan.count("TEMP B-TREE") <= 1, plan  # of the few that run


def test_sqlite_reads_no_more_than_the_newest_jobs_for_the_pace_of_a_queue(churned_sqlite: Path) -> None:
    plan = sqlite_plan(churned_sqlite, "pace")

    # A step of its own, which ends at its limit: what is asked of the rows is asked of those that it hands on.
    walk = (
        "CO-ROUTINE newest\nSCAN mainspring_jobs_done USING INDEX sqlite_autoindex_mainspring_jobs_done_1\nSCAN newest"
    )
    assert walk in plan, plan
    assert plan.count("mainspring_jobs_done ") == 1, plan


def test_sqlite_finds_old_lines_by_their_time(churned_sqlite: Path) -> None:
    assert "mainspring_logs_at" in sqlite_plan(churned_sqlite, "prune_logs")


def test_postgres_does_not_keep_to_a_plan_that_was_made_when_there_were_no_jobs(postgres_url: str) -> None:
    store, jobs = open_store(postgres_url), new_jobs(20_000)
    for _ in range(20):
        store.get([jobs[0].id])
    store.enqueue(jobs)
    for _ in range(100):
        store.get([job.id for job in jobs[:50]])
    store.close()  # what its connections have counted is told when they end

    def scans() -> tuple[int, int]:
        told = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'jobs' AND schemaname = 'mainspring'"
        ((whole, by_index),) = execute(postgres_url, told)
        return whole, by_index

    until(lambda: sum(scans()) >= 100)
    assert scans()[0] < 50
