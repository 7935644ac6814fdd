"""A tick: one nominal fire time of a schedule, and what became of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec


class Verdict(StrEnum):
    """What became of a tick."""

    FIRED = "fired"  # it is a job
    LATE = "late"  # it is a job, made long after its time
    TRIGGERED = "triggered"  # it is a job that a person asked for out of turn
    BACKFILLED = "backfilled"  # it is a job that a person asked for afterwards
    BUFFERED = "buffered"  # it becomes a job when the one before has ended
    SKIPPED = "skipped"  # the overlap policy or a pause says no
    COALESCED = "coalesced"  # a later tick stands for it
    MISSED = "missed"  # nobody was there to fire it

    @property
    def is_job(self) -> bool:
        return self in _JOBS


_JOBS = frozenset({Verdict.FIRED, Verdict.LATE, Verdict.TRIGGERED, Verdict.BACKFILLED})


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One tick, or a row of ticks that came to the same: `count` of them from `at` until `until`.

    The count is None where there are too many to be counted in passing; the trigger and the two ends tell them all.
    """

    at: datetime
    verdict: Verdict
    reason: str | None = None
    until: datetime | None = None
    count: int | None = 1


class TickRecord(msgspec.Struct, frozen=True):
    """A tick as the flight recorder keeps it. The fields stand in the order of the query's columns."""

    schedule: str
    at: datetime
    until: datetime | None
    count: int | None
    verdict: Verdict
    reason: str | None
    job_id: UUID | None
    node: str  # who decided
    decided_at: datetime
