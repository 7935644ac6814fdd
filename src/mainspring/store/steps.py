"""Steps: what a durable job has done, and until when it sleeps. Written only by the attempt that holds the job."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from mainspring.errors import LeaseLost
from mainspring.model.step import Step
from mainspring.store.database import Database, Runner


def steps(db: Database, job_id: UUID) -> list[Step]:
    """See `protocol.Steps.steps`."""
    return [Step(*row) for row in db.read("steps", job_id=job_id)]


def record(db: Database, job_id: UUID, fence: int, name: str, result: str) -> None:
    """See `protocol.Steps.record_step`."""
    # Not within the work, which SQLite may have another thread do: that must not hear of a lease which is not its own.
    if not db.attempt(lambda runner: record_within(runner, job_id, fence, name, result)):
        raise lost(job_id, fence)


def record_within(runner: Runner, job_id: UUID, fence: int, name: str, result: str) -> bool:
    """Keep the result of a step, unless it has one; return whether the attempt still holds its job."""
    return bool(runner.run("record_step", job_id=job_id, fence=fence, name=name, result=result))


def begin_sleep(db: Database, job_id: UUID, fence: int, name: str, delay: timedelta) -> timedelta:
    """See `protocol.Steps.begin_sleep`."""
    left = db.attempt(lambda runner: begin_within(runner, job_id, fence, name, delay))
    if left is None:
        raise lost(job_id, fence)
    return left


def begin_within(runner: Runner, job_id: UUID, fence: int, name: str, delay: timedelta) -> timedelta | None:
    """Begin a sleep or a wait, unless it has begun; return how long is left, None if the attempt lost its job."""
    begun = runner.run("begin_step", job_id=job_id, fence=fence, name=name, delay=delay)
    return timedelta(microseconds=begun[0][0]) if begun else None


def lost(job_id: UUID, fence: int) -> LeaseLost:
    """Return what an attempt is told that has nothing to say about its job any more."""
    return LeaseLost(
        f"job {job_id} is no longer held under fence {fence}: its lease has ended, and another worker may hold it; "
        "nothing that this attempt does is kept any more"
    )
