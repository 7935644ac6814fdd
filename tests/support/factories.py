"""Jobs and sessions for tests, with as little said as the test needs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.model.failure import Failure
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge, IfFailed
from mainspring.model.outcome import Failed, Outcome, Succeeded
from mainspring.model.session import NewSession
from mainspring.model.workflow import NewWorkflow, Plan, encode_plan
from mainspring.store.sql import SqlStore

SUCCESS = Succeeded("1")
FAILURE = Failed(Failure(type="ValueError", message="boom"), retryable=False)

_clock = SystemClock()
_ids = IdSource(lambda: microseconds(_clock.now()) // 1000, random_bits)


def new_id() -> UUID:
    return _ids.next()


def new_job(**changes: Any) -> NewJob:
    # Ids of the same moment that come from another source may be larger, and a child's must not be smaller.
    youngest = max((edge.parent for edge in changes.get("parents", ())), default=None)
    (made,) = _ids.many(1, youngest)
    given: dict[str, Any] = {"id": made, "task": "greet", "payload": '{"args":[],"kwargs":{}}'}
    return NewJob(**given | changes)


def new_jobs(count: int, **changes: Any) -> list[NewJob]:
    return [new_job(**changes) for _ in range(count)]


def child_of(*parents: NewJob | Job, if_failed: IfFailed = IfFailed.CANCEL, **changes: Any) -> NewJob:
    return new_job(parents=tuple(Edge(parent.id, if_failed) for parent in parents), **changes)


def new_workflow(*members: NewJob, root: UUID | None = None, key: str | None = None, **plan: Any) -> NewWorkflow:
    """Return a workflow of *members*, which are made members of it; give the id of its *root* if they are older."""
    root = root or new_id()
    job = new_job(id=root, task="etl", key=key, plan=encode_plan(Plan(begun=True, **plan)), members=len(members))
    return NewWorkflow(job, tuple(replace(member, workflow=root) for member in members))


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


def state_of(store: SqlStore, job: NewJob | Job) -> JobState:
    return stored(store, job.id).state


def claimed_jobs(store: SqlStore, queue: str = "default") -> dict[UUID, Job]:
    """Claim all jobs that are ready, and return them by their ids."""
    session = opened_session(store, lease=timedelta(days=900))
    return {job.id: job for job in store.claim(session, queue, 1_000)}


def end(store: SqlStore, job: NewJob | Job, outcome: Outcome = SUCCESS) -> None:
    """Claim *job*, which is the only one that is ready in its queue, and settle it."""
    (held,) = claimed_jobs(store, job.queue).values()
    assert held.id == job.id
    assert store.settle([settle(held, outcome)]) == {job.id}


def work_off(store: SqlStore, outcomes: Mapping[UUID, Outcome] | None = None) -> list[UUID]:
    """Run what is ready, and what becomes so by that, one after the other; return in which order."""
    order: list[UUID] = []
    session = opened_session(store, lease=timedelta(days=900))
    while True:
        if job := store.claim(session, "default", 1):
            store.settle([settle(job[0], (outcomes or {}).get(job[0].id, SUCCESS))])
            order.append(job[0].id)
        elif not store.promote().count and not store.release().followed:
            return order
