"""What the server tells, as values. It may come to tell more, which is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from mainspring.model.failure import Failure
from mainspring.model.job import JobState


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was when the server was asked."""

    id: UUID
    team: str
    task: str
    queue: str
    priority: int
    state: JobState
    key: str | None
    args: list[Any] | None  # None for an encrypted job that the server can't open
    kwargs: dict[str, Any] | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    reason: str | None
    result: Any
    error: Failure | None
    progress: Any
    workflow: UUID | None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a job."""

    number: int
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    error: Failure | None
    details: Any


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a job has logged."""

    at: datetime
    level: str
    message: str


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The job that stands for one of many that were asked for."""

    id: UUID


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step that a job has done, or a sleep or signal that it waits for."""

    name: str
    at: datetime
    until: datetime | None
    pending: bool
    result: Any


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why a job does not run."""

    code: str
    sentence: str
    lift: str
    estimate_seconds: float | None


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it was when the server was asked."""

    id: str
    state: str
    task: str
    args: list[Any] | None  # None for an encrypted job that the server can't open
    kwargs: dict[str, Any] | None
    trigger: Mapping[str, Any]
    queue: str
    priority: int
    paused: bool
    paused_by: str | None
    paused_reason: str | None
    next_tick: datetime | None
    runs: int
    notes: str | None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """A tick that is to come."""

    at: datetime
    local: datetime
    remark: str | None


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tick, or of a row of ticks."""

    at: datetime
    until: datetime | None
    count: int | None
    verdict: str
    reason: str | None
    job: UUID | None


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it was when the server was asked."""

    name: str
    paused: Mapping[str, Any] | None
    jobs: Mapping[str, int]
    oldest_ready_seconds: float | None
    workers: Sequence[str]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one cause."""

    fingerprint: str
    task: str
    type: str
    message: str
    count: int
    first_seen: datetime
    last_seen: datetime
    sample: UUID
