"""What the stream of all jobs tells."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mainspring.model.job import JobState


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """That a job was created, started, attempted without coming to an end, or finished."""

    change: str
    job: UUID
    team: str
    task: str
    queue: str
    state: JobState
    attempt: int
    at: datetime


class Skipped(msgspec.Struct, frozen=True):
    """That there were more changes than were sent: list the jobs to be up to date."""
