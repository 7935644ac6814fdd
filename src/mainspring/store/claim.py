"""Claim: take the next due jobs of a queue for a worker session, each under a new fence."""

from __future__ import annotations

from operator import itemgetter
from uuid import UUID

from mainspring.model.job import Job, JobState
from mainspring.store.database import Database

MOST = 10_000
"""Jobs in one claim, so that it stays far from its deadline; whoever wants more asks again."""

_rank = itemgetter(0)


def claim(db: Database, session: UUID, queue: str, limit: int) -> list[Job]:
    """See `protocol.Claims.claim`."""
    if limit < 1:
        return []
    claimed = db.run("claim", session=session, queue=queue, limit=min(limit, MOST))
    # PostgreSQL promises no order for RETURNING.
    claimed.sort(key=_rank)
    # The query leaves out what is known here, and what a job that has just been claimed can't have.
    return [
        Job(
            job_id, task, queue, payload, priority, JobState.RUNNING, run_at, created_at, key, attempt, losses, fence,
            session, started_at, None, reason, error, None, None, None,
        )
        for (
            _, job_id, task, payload, priority, run_at, created_at, key, attempt, losses, fence,
            started_at, reason, error,
        ) in claimed
    ]  # fmt: skip
