"""An attempt: one execution of a job by one worker, under one fence."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from mainspring.model.failure import Failure


class Attempt(msgspec.Struct, frozen=True):
    """One line of a job's history. `outcome` and `finished_at` are None while it runs."""

    job_id: UUID
    fence: int
    number: int
    session: UUID
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    error: str | None
    details: str | None = None  # what it says of itself, as JSON: an exit code, sizes
    worker: str | None = None  # the name of the process that made it

    @property
    def duration(self) -> timedelta | None:
        """How long it took, once it has ended."""
        return None if self.finished_at is None else self.finished_at - self.started_at

    @property
    def facts(self) -> dict[str, Any]:
        """What it says of itself, by name; nothing if it says nothing."""
        return msgspec.json.decode(self.details, type=dict[str, Any]) if self.details else {}

    @property
    def failure(self) -> Failure | None:
        """Why it failed, if it did."""
        return msgspec.json.decode(self.error, type=Failure) if self.error else None
