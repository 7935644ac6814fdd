"""Inspect: the read side."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from mainspring.model.attempt import Attempt
from mainspring.model.job import Job, JobState
from mainspring.model.limits import Standing
from mainspring.store import rows
from mainspring.store.database import Database
from mainspring.store.protocol import JobFilter
from mainspring.store.rows import to_job


def get(db: Database, ids: Collection[UUID]) -> dict[UUID, Job]:
    """See `protocol.Inspects.get`."""
    return {row[0]: to_job(row) for row in db.read("get", ids=rows.ids(ids))}


def page(db: Database, match: JobFilter, before: UUID | None, limit: int) -> list[Job]:
    """See `protocol.Inspects.page`."""
    if limit < 1:
        return []
    found = db.read(
        "page", before=before, limit=limit, state=match.state, queue=match.queue, task=match.task, key=match.key
    )
    return [to_job(row) for row in found]


def jobs_ahead(db: Database, job_id: UUID, most: int) -> int:
    """See `protocol.Inspects.jobs_ahead`."""
    ((ahead,),) = db.read("jobs_ahead", job_id=job_id, most=most)
    return int(ahead)


def limit(db: Database, key: str) -> Standing | None:
    """See `protocol.Inspects.limit`."""
    for _, *row in db.read("look_at_limits", keys=rows.document([key])):
        return Standing(*row)
    return None


def slot_holders(db: Database, key: str, limit: int) -> list[UUID]:
    """See `protocol.Inspects.slot_holders`."""
    return [job_id for (job_id,) in db.read("slot_holders", key=key, limit=max(0, limit))]


def counts(db: Database) -> dict[str, dict[JobState, int]]:
    """See `protocol.Inspects.counts`."""
    table: dict[str, dict[JobState, int]] = {}
    for queue, state, jobs in db.read("counts"):
        table.setdefault(queue, {})[state] = jobs
    return table


def attempts(db: Database, job_id: UUID) -> list[Attempt]:
    """See `protocol.Inspects.attempts`."""
    return [Attempt(*row) for row in db.read("attempts", ids=rows.ids([job_id]))]
