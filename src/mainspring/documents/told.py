"""What programs are told, as values, where that is not what the model has: it was opened, or is veiled.

All else is read back into the model, by the functions beside those that tell of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from mainspring.model.alert import AlertState
from mainspring.model.failure import Failure
from mainspring.model.job import JobState, Wish
from mainspring.model.journal import Reached
from mainspring.model.links import IfFailed
from mainspring.model.picture import Kind

T = TypeVar("T")


def as_told(document: object, kind: type[T]) -> T:
    """Return *document* as a value. It may have come to tell more, which is left out."""
    return msgspec.convert(document, kind, strict=False)


def as_document(told: msgspec.Struct) -> dict[str, Any]:
    """Return the document that *told* was."""
    plain = msgspec.to_builtins(told, builtin_types=(datetime,))
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in plain.items()}


class ToldParent(msgspec.Struct, frozen=True, kw_only=True):
    """A job that another comes after, and what becomes of that if it fails."""

    id: UUID
    if_failed: IfFailed


class ToldJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was at one moment."""

    id: UUID
    kind: Kind
    team: str
    task: str
    queue: str
    priority: int
    state: JobState
    standing: str  # the state, but of a workflow that waits for its jobs that it is under way
    key: str | None
    args: list[Any] | None  # None for an encrypted job that could not be opened
    kwargs: dict[str, Any] | None
    encrypted: bool
    created_at: datetime
    run_at: datetime
    expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    losses: int
    fence: int
    session: UUID | None
    wish: Wish | None
    reason: str | None
    signal: str | None
    outcome: str | None
    result: Any
    error: Failure | None
    progress: Reached | None
    workflow: UUID | None
    parents: list[ToldParent]
    pending: int | None


class ToldWorkflow(ToldJob, frozen=True, kw_only=True):
    """A workflow as it was at one moment, and how many of its jobs are in which state."""

    counts: dict[JobState, int]


class ToldAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, and what the last look has found."""

    id: str
    team: str | None
    state: AlertState
    since: datetime
    rule: Mapping[str, Any]
    every: str
    hold: str
    channels: int
    value: float | None
    message: str | None
    evaluated_at: datetime | None
    evaluated_by: str | None
    created_at: datetime
    changed_at: datetime


class ToldNotification(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whom a team wants to be told, and of what."""

    team: str
    id: str
    kind: str
    to: Sequence[str] | None = None
    place: str | None = None
    secrets: int | None = None
    on: Sequence[str]
    created_at: datetime
    changed_at: datetime
