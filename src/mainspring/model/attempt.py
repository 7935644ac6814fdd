"""An attempt: one execution of a job by one worker, under one fence."""

from __future__ import annotations

from datetime import datetime
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

    @property
    def failure(self) -> Failure | None:
        """Why it failed, if it did."""
        return msgspec.json.decode(self.error, type=Failure) if self.error else None
