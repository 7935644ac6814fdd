"""Changes: what happened to jobs lately, in as few words as whoever follows them needs."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from mainspring.model.job import JobState


class Kind(StrEnum):
    """What happened to a job."""

    CREATED = "created"
    STARTED = "started"
    ATTEMPTED = "attempted"  # an attempt ended, and the job did not: it is retried, asleep or paused
    FINISHED = "finished"


class Change(msgspec.Struct, frozen=True):
    """One change. The fields stand in the order of the query's columns; `state` is that in which the job was seen."""

    change: Kind
    id: UUID
    team: str | None  # as it is stored
    task: str
    queue: str
    state: JobState
    attempt: int
    fence: int
    at: datetime

    @property
    def mark(self) -> tuple[str, UUID, int]:
        """What tells it from every other change."""
        # A job is created once, whatever has become of it when it is seen.
        return self.change, self.id, 0 if self.change is Kind.CREATED else self.fence
