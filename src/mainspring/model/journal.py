"""A job's journal: what its attempts said, and how far they came."""

from __future__ import annotations

import sys
from datetime import datetime
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.text import shortened, storable

LEVELS = ("debug", "info", "warning", "error", "critical")
_LARGEST = sys.float_info.max


class LogLine(msgspec.Struct, frozen=True):
    """A line that an attempt said. `number` counts the lines of one attempt from 1, so that none is kept twice."""

    job_id: UUID
    fence: int
    number: int
    level: str
    message: str
    logger: str | None = None  # whose record it was, of Python's logging; None if the job said it by its context

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "level", storable(self.level))
        msgspec.structs.force_setattr(self, "message", storable(self.message))
        if self.logger is not None:
            msgspec.structs.force_setattr(self, "logger", storable(self.logger))


class LogEntry(msgspec.Struct, frozen=True):
    """A line as it is kept, with the time at which the database heard of it."""

    fence: int
    number: int
    at: datetime
    level: str
    message: str
    logger: str | None = None


class FoundLine(msgspec.Struct, frozen=True):
    """A line that was searched for among those of all jobs."""

    job_id: UUID
    task: str
    fence: int
    number: int
    at: datetime
    level: str
    message: str
    logger: str | None


class LogFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines are wanted: those that contain a text, to the letter, and are of a level or a more serious one."""

    contains: str | None = None
    level: str | None = None

    def __post_init__(self) -> None:
        if self.contains is not None:
            if not isinstance(self.contains, str):
                raise InvalidValue(f"expected contains to be text, got: {shortened(self.contains)}")
            msgspec.structs.force_setattr(self, "contains", storable(self.contains) or None)
        if self.level is not None and self.level not in LEVELS:
            hint = did_you_mean(str(self.level), LEVELS)
            raise InvalidValue(f"expected level to be one of {', '.join(LEVELS)}, got: {shortened(self.level)}{hint}")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The levels that are not wanted. One that somebody has made himself is none of them."""
        return () if self.level is None else LEVELS[: LEVELS.index(self.level)]


class Reached(msgspec.Struct, frozen=True):
    """How far a job has come: `done` of `total`, where a total is known."""

    done: float
    total: float | None = None
    note: str | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far an attempt says that it has come."""

    job_id: UUID
    fence: int
    done: float
    total: float | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        _check_number(self.done, "done")
        if self.total is not None:
            _check_number(self.total, "total")
        if self.note is not None:
            msgspec.structs.force_setattr(self, "note", storable(self.note))

    @property
    def reached(self) -> Reached:
        """What is kept with the job."""
        return Reached(self.done, self.total, self.note)


def _check_number(value: float, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        raise InvalidValue(f"expected {what} to be a finite number, got: {shortened(value)}")
