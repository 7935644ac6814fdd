"""Workflows: what can be seen of them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from mainspring.model.job import Job, JobState
from mainspring.model.picture import Picture, picture_of
from mainspring.store import rows
from mainspring.store.database import Database
from mainspring.store.protocol import Workflows
from mainspring.store.rows import to_job

DRAWN = 10_000
"""Members that a picture shows; of more, those that were made first."""


def members(db: Database, workflow: UUID, after: UUID | None, limit: int) -> list[Job]:
    """See `protocol.Workflows.members`."""
    found = db.read("members", workflow=workflow, after=after or UUID(int=0), limit=limit)
    return [to_job(row) for row in found]


def unfinished_members(db: Database, workflow: UUID, limit: int) -> list[Job]:
    """See `protocol.Workflows.unfinished_members`."""
    return [to_job(row) for row in db.read("first_unfinished", workflow=workflow, limit=limit)]


def member_counts(db: Database, workflows: Collection[UUID]) -> dict[UUID, dict[JobState, int]]:
    """See `protocol.Workflows.member_counts`."""
    counts: dict[UUID, dict[JobState, int]] = {workflow: {} for workflow in workflows}
    for workflow, state, count in db.read("member_counts", workflows=rows.ids(workflows)) if workflows else []:
        counts[workflow][state] = count
    return counts


def page(db: Database, before: UUID | None, limit: int, team: str | None) -> list[Job]:
    """See `protocol.Workflows.workflows`."""
    return [to_job(row) for row in db.read("workflow_page", before=before, limit=limit, team=team)]


def draw(store: Workflows, job: Job, now: datetime, most: int = DRAWN) -> Picture:
    """Return the picture of the workflow *job*, in two looks at *store*, with up to *most* of its jobs."""
    found = store.members(job.id, limit=most)
    counts = store.member_counts([job.id, *(member.id for member in found if member.plan is not None)])
    return picture_of(job, found, counts, now)
