"""Jobs and sessions for tests, with as little said as the test needs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, NewJob
from mainspring.model.session import NewSession
from mainspring.store.sql import SqlStore

_clock = SystemClock()
_ids = IdSource(lambda: microseconds(_clock.now()) // 1000, random_bits)


def new_id() -> UUID:
    return _ids.next()


def new_job(**changes: Any) -> NewJob:
    given: dict[str, Any] = {"id": new_id(), "task": "greet", "payload": '{"args":[],"kwargs":{}}'}
    return NewJob(**given | changes)


def new_jobs(count: int, **changes: Any) -> list[NewJob]:
    return [new_job(**changes) for _ in range(count)]


def opened_session(store: SqlStore, name: str = "worker", lease: timedelta = timedelta(seconds=15)) -> UUID:
    session = NewSession(id=new_id(), name=name, lease=lease)
    store.open_session(session)
    return session.id


def claimed_job(store: SqlStore, session: UUID | None = None, **changes: Any) -> Job:
    """Enqueue one job and claim it."""
    store.enqueue([new_job(**changes)])
    (job,) = store.claim(session or opened_session(store), changes.get("queue", "default"), 1)
    return job


def stored(store: SqlStore, job_id: UUID) -> Job:
    return store.get([job_id])[job_id]
