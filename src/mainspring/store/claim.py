"""Claim: take the next due jobs of a queue for a worker session, each under a new fence."""

from __future__ import annotations

from operator import itemgetter
from uuid import UUID

from mainspring.model.job import Job
from mainspring.store.database import Database
from mainspring.store.rows import to_job

_rank = itemgetter(0)


def claim(db: Database, session: UUID, queue: str, limit: int) -> list[Job]:
    """See `protocol.Claims.claim`."""
    claimed = db.run("claim", session=session, queue=queue, limit=limit)
    # Neither database promises an order for RETURNING.
    claimed.sort(key=_rank)
    return [to_job(row[1:]) for row in claimed]
