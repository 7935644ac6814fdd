"""Claim: take the next due jobs of a queue for a worker session, each under a new fence."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from operator import itemgetter
from uuid import UUID

from mainspring.model.fairness import turn_of
from mainspring.model.job import Job, JobState
from mainspring.store import rows
from mainspring.store.database import Database
from mainspring.store.protocol import AHEAD

MOST = 10_000
"""Jobs in one claim, so that it stays far from its deadline; whoever wants more asks again."""

_MARGIN = timedelta(seconds=1)
"""What is ready and due later than anybody promotes was due before the clock was set back; it is not to wait again."""

_place = itemgetter(0, 1)


def charge(db: Database, job: Job) -> bool:
    """See `protocol.Claims.charge`."""
    # The sum is made here: a try whose reply was lost is repeated, and must not count twice.
    return bool(db.run("charge", job_id=job.id, fence=job.fence, losses=job.losses + 1))


def claim(
    db: Database, session: UUID, queue: str, limit: int, tasks: Collection[str] | None, ahead: timedelta
) -> list[Job]:
    """See `protocol.Claims.claim`."""
    if limit < 1 or (tasks is not None and not tasks):
        return []
    known = None if tasks is None else rows.document(tasks)
    claimed = db.run(
        "claim",
        session=session,
        queue=queue,
        limit=min(limit, MOST),
        tasks=known,
        ahead=ahead,
        beyond=max(ahead, AHEAD) + _MARGIN,
    )
    # PostgreSQL promises no order for RETURNING.
    claimed.sort(key=_place)
    # The query leaves out what is known here, and what a job that has just been claimed can't have.
    return [
        Job(
            job_id, task, queue, payload, priority, JobState.RUNNING, run_at, created_at, key, attempt, losses, fence,
            session, started_at, None, reason, error, None, None, None, progress, schedule, tick, expires_at, fair,
            None, None, (), workflow, links, plan, None, awaited, None, team, notify, trace, None,
            None if fair is None else turn_of(rank),
        )
        for (
            rank, job_id, task, payload, priority, run_at, created_at, key, attempt, losses, fence,
            started_at, reason, error, progress, schedule, tick, expires_at, fair,
            workflow, links, plan, awaited, team, notify, trace,
        ) in claimed
    ]  # fmt: skip
