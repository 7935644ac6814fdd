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


class Workflow(Job, frozen=True, kw_only=True):
    """A workflow as it was when the server was asked."""

    counts: Mapping[str, int]


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


class FoundLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was searched for, and the job that logged it."""

    job: UUID
    task: str
    at: datetime
    level: str
    message: str


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker."""

    id: UUID
    name: str
    alive: bool
    started_at: datetime
    beat_at: datetime
    queues: Sequence[str]
    tasks: Sequence[str]


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token, without its secret."""

    id: str
    name: str
    grants: Mapping[str, str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a secret."""

    team: str
    name: str
    created_at: datetime
    changed_at: datetime
    changed_by: str


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, and what the last look has found."""

    id: str
    team: str | None
    state: str
    since: datetime
    rule: Mapping[str, Any]
    every: str
    hold: str
    channels: int
    value: float | None
    message: str | None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a team wants to be told, and of what."""

    team: str
    id: str
    kind: str
    on: Sequence[str]
    to: Sequence[str] | None = None
    place: str | None = None
    secrets: int | None = None


class RetentionRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for how long finished jobs are kept."""

    team: str | None
    queue: str | None
    state: str | None
    age: str | None
    count: int | None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the audit log."""

    number: int
    at: datetime
    actor: str
    team: str | None
    action: str
    target: str | None
    details: Any
    hash: str


class Team(msgspec.Struct, frozen=True, kw_only=True):
    """A team, and what it may have; None stands for no limit."""

    name: str
    max_pending: int | None
    max_schedules: int | None
    rate: str | None
    burst: int | None


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit."""

    key: str
    concurrency: int | None
    interval_seconds: float | None
    burst: int | None
    held: int
    waiting: int


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """A breaker."""

    key: str
    state: str
    since: datetime | None
    until: datetime | None
    waiting: int
    failures: int
    attempts: int
    by: str | None
    reason: str | None
