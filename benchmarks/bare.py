"""Bare SQL: the same tables and the same kind of statement, with the driver alone. The ceiling for the store.

A batch travels as one JSON document and is one statement (on SQLite one transaction), as in the store. It carries
what any queue with due times, keys and fences has to carry; model objects, wishes, leases, retries of the call,
deadlines and wakes are left out.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg

from benchmarks.sides import PAYLOAD, PRIORITY, QUEUE, RESULT, TASK, new_id

Row = tuple[Any, ...]

_encoder = msgspec.json.Encoder()


def _document(rows: Sequence[object]) -> str:
    return _encoder.encode(rows).decode()


def _settled(claimed: Sequence[Row]) -> str:
    return _document([(job_id, fence, "succeeded", RESULT, None) for job_id, fence, *_ in claimed])


def _now() -> int:
    return time.time_ns() // 1000


class BareSqlite:
    """The sqlite3 module alone."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16384", "temp_store = MEMORY"):
            self._connection.execute(f"PRAGMA {setting}")
        self._session = str(new_id())

    def batch(self, count: int) -> list[Row]:
        return [(str(new_id()), TASK, QUEUE, PAYLOAD, PRIORITY, None, None) for _ in range(count)]

    def enqueue(self, batch: list[Row]) -> None:
        self._write(_SQLITE_ENQUEUE, jobs=_document(batch))

    def enqueue_one(self, batch: list[Row]) -> None:
        now = _now()
        self._connection.execute(_SQLITE_INSERT, (*batch[0][:5], now, now, now))

    def claim(self, limit: int) -> list[Row]:
        return self._write(_SQLITE_CLAIM, session=self._session, queue=QUEUE, limit=limit)[0]

    def settle(self, claimed: Sequence[Row]) -> int:
        return self._write(_SQLITE_KEEP, _SQLITE_FORGET, settled=_settled(claimed))[1]

    def tidy(self) -> None:
        """SQLite checkpoints as it goes."""

    def close(self) -> None:
        self._connection.close()

    def _write(self, *statements: str, **parameters: object) -> tuple[list[Row], int]:
        """Run *statements* in one transaction; return what the last one found and how many rows it wrote."""
        execute = self._connection.execute
        parameters["now"] = _now()
        execute("BEGIN IMMEDIATE")
        for statement in statements:
            cursor = execute(statement, parameters)
        found = cursor.fetchall()
        execute("COMMIT")
        return found, cursor.rowcount


class BarePostgres:
    """psycopg alone."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._session = new_id()

    def batch(self, count: int) -> list[Row]:
        return [(new_id(), TASK, QUEUE, PAYLOAD, PRIORITY, None, None) for _ in range(count)]

    def enqueue(self, batch: list[Row]) -> None:
        self._connection.execute(_POSTGRES_ENQUEUE, [_document(batch)])

    def enqueue_one(self, batch: list[Row]) -> None:
        self._connection.execute(_POSTGRES_INSERT, batch[0][:5])

    def claim(self, limit: int) -> list[Row]:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(_POSTGRES_CLAIM, [self._session, QUEUE, limit]).fetchall()

    def settle(self, claimed: Sequence[Row]) -> int:
        document = _encoder.encode({job_id: (fence, "succeeded", RESULT) for job_id, fence, *_ in claimed}).decode()
        return self._connection.execute(_POSTGRES_SETTLE, [document]).rowcount

    def tidy(self) -> None:
        self._connection.execute("VACUUM mainspring.jobs")

    def close(self) -> None:
        self._connection.close()


_SQLITE_ENQUEUE = """
WITH asked AS MATERIALIZED (
    SELECT value ->> 0 AS id, value ->> 1 AS task, value ->> 2 AS queue, value ->> 3 AS payload,
           value ->> 4 AS priority, coalesce(value ->> 5, :now) AS run_at, value ->> 6 AS key,
           json_each.key AS position
    FROM json_each(:jobs)
)
INSERT INTO mainspring_jobs (id, task, queue, payload, priority, rank, state, run_at, created_at, key)
SELECT id, task, queue, payload, priority, run_at + position,
       CASE WHEN run_at <= :now THEN 'ready' ELSE 'scheduled' END, run_at, :now, key
FROM asked
"""

_SQLITE_INSERT = """
INSERT INTO mainspring_jobs (id, task, queue, payload, priority, rank, state, run_at, created_at)
VALUES (?, ?, ?, ?, ?, ?, 'ready', ?, ?)
"""

_SQLITE_CLAIM = """
UPDATE mainspring_jobs
SET state = 'running', session = :session, started_at = :now, fence = fence + 1, attempt = attempt + 1
WHERE rowid IN (
    SELECT rowid FROM mainspring_jobs WHERE state = 'ready' AND queue = :queue ORDER BY rank LIMIT :limit
)
RETURNING id, fence, task, payload, attempt
"""

_SQLITE_KEEP = """
INSERT INTO mainspring_jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result)
SELECT job.id, task, queue, payload, priority, value ->> 2, run_at, created_at, job.key, attempt, losses, fence,
       session, started_at, reason, value ->> 4, :now, value ->> 2, value ->> 3
FROM json_each(:settled) CROSS JOIN mainspring_jobs AS job ON job.id = value ->> 0 AND fence = value ->> 1
"""

_SQLITE_FORGET = "DELETE FROM mainspring_jobs WHERE id IN (SELECT value ->> 0 FROM json_each(:settled))"

_POSTGRES_ENQUEUE = """
INSERT INTO mainspring.jobs (id, task, queue, payload, priority, rank, state, run_at, created_at, key)
SELECT id, task, queue, payload, priority, CAST(extract(epoch FROM run_at) * 1000000 AS bigint) + position,
       CASE WHEN run_at <= now() THEN 'ready' ELSE 'scheduled' END, run_at, now(), key
FROM (
    SELECT CAST(job ->> 0 AS uuid) AS id, job ->> 1 AS task, job ->> 2 AS queue, job ->> 3 AS payload,
           CAST(job ->> 4 AS smallint) AS priority, coalesce(CAST(job ->> 5 AS timestamptz), now()) AS run_at,
           job ->> 6 AS key, position
    FROM jsonb_array_elements(CAST(%s AS jsonb)) WITH ORDINALITY AS batch (job, position)
) AS asked
"""

_POSTGRES_INSERT = """
INSERT INTO mainspring.jobs (id, task, queue, payload, priority, rank, state, run_at, created_at)
VALUES (%s, %s, %s, %s, %s, CAST(extract(epoch FROM now()) * 1000000 AS bigint), 'ready', now(), now())
"""

_POSTGRES_CLAIM = """
UPDATE mainspring.jobs
SET state = 'running', session = %s, started_at = now(), fence = fence + 1, attempt = attempt + 1
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM mainspring.jobs WHERE state = 'ready' AND queue = %s ORDER BY rank LIMIT %s FOR UPDATE SKIP LOCKED
))
RETURNING id, fence, task, payload, attempt
"""

_POSTGRES_SETTLE = """
WITH given AS MATERIALIZED (
    SELECT CAST(%s AS jsonb) AS settled
),
gone AS (
    DELETE FROM mainspring.jobs
    WHERE id = ANY (ARRAY(SELECT CAST(jsonb_object_keys(settled) AS uuid) FROM given))
      AND fence = CAST((SELECT settled FROM given) -> CAST(id AS text) ->> 0 AS bigint)
    RETURNING *, (SELECT settled FROM given) -> CAST(id AS text) AS told
)
INSERT INTO mainspring.jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result, filed_at)
SELECT id, task, queue, payload, priority, told ->> 1, run_at, created_at, key, attempt, losses, fence,
       session, started_at, reason, error, now(), told ->> 1, told ->> 2, now()
FROM gone
"""
