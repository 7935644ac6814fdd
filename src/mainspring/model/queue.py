"""Queues as people see and rule them: what is paused, by whom and why, and what waits there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.duration import Duration, duration
from mainspring.model.job import JobState, check_name
from mainspring.model.text import said, shortened

_SHORTEST_AGEING = timedelta(seconds=1)


def ageing_of(value: Duration | None) -> timedelta | None:
    """Return how much waiting time a point of priority is to be worth; None for strict priority."""
    if value is None:
        return None
    length = duration(value, "ageing")
    if length < _SHORTEST_AGEING:
        raise InvalidValue(f"expected ageing to be 1 s or longer, or None for strict priority, got: {shortened(value)}")
    return length


class Pausable(StrEnum):
    """What no job is claimed of while it is paused."""

    QUEUE = "queue"
    TASK = "task"


class NewPause(msgspec.Struct, frozen=True, kw_only=True):
    """The wish that nothing of a queue or of a task be claimed, with who wishes it and why."""

    kind: Pausable
    name: str
    by: str
    reason: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name, self.kind)
        by, reason = said(self.by, self.reason, f"pauses the {self.kind}")
        msgspec.structs.force_setattr(self, "by", by)
        msgspec.structs.force_setattr(self, "reason", reason)


class Pause(msgspec.Struct, frozen=True):
    """A queue or a task that is paused, with who said so last and why, and since when it has been."""

    kind: Pausable
    name: str
    by: str
    reason: str | None
    since: datetime


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it was at one moment. `jobs` counts its unfinished jobs by state.

    `oldest_ready` is for how long the job that has been due longest has been ready for a worker: None where none is, or
    nobody looked. `workers` are the names of those that are alive and serve it. `more` are the states of which there
    are more jobs than were counted.
    """

    name: str
    pause: Pause | None
    ageing: timedelta | None  # how much waiting time a point of priority is worth; None when priority is strict
    jobs: Mapping[JobState, int]
    oldest_ready: timedelta | None
    workers: tuple[str, ...]
    team: str | None = None  # whose it is, by its name; None when it is everybody's
    more: frozenset[JobState] = frozenset()

    @property
    def paused(self) -> bool:
        return self.pause is not None


def jobs_in(queues: Sequence[Queue], *states: JobState) -> str:
    """Return how many jobs of *queues* are in these states, with a sign where there are more than were counted."""
    jobs = sum(queue.jobs.get(state, 0) for queue in queues for state in states)
    return f"{jobs:,}{'+' if any(queue.more.intersection(states) for queue in queues) else ''}"
