"""A schedule: a rule that makes jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.duration import duration
from mainspring.model.job import Priority, check_expires, check_key, check_name, check_priority, check_queue
from mainspring.model.team import check_team, full_name, local_name
from mainspring.model.text import check_document, shortened, storable
from mainspring.model.trigger import After, At, Cron, Every, Trigger

MICROSECOND = timedelta(microseconds=1)
CATCH_UP = 100
"""Ticks that are made up for at once, at most: the latest ones."""

_LONGEST_NOTES = 2_000


class Overlap(StrEnum):
    """What happens to a tick whose predecessor's job has not finished."""

    ALLOW = "allow"  # both run
    SKIP = "skip"  # it makes no job
    BUFFER_ONE = "buffer_one"  # it waits for the end of the other; only one tick does
    CANCEL_OTHER = "cancel_other"  # the other is cancelled, and it runs once that has ended


class Misfire(StrEnum):
    """What happens to ticks that nobody fired in time."""

    COALESCE = "coalesce"  # the last one runs for all of them
    SKIP = "skip"  # none runs
    CATCH_UP = "catch_up"  # each runs, the last hundred at most


GRACE = {
    Misfire.COALESCE: timedelta(days=7),
    Misfire.SKIP: timedelta(seconds=10),
    Misfire.CATCH_UP: timedelta(days=7),
}
"""How late a tick may be and still run, where the schedule does not say."""


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a schedule does: what its author says, and nothing that happens to it."""

    task: str
    trigger: Trigger
    payload: str
    queue: str = "default"
    priority: int = Priority.NORMAL
    overlap: Overlap = Overlap.ALLOW
    misfire: Misfire = Misfire.COALESCE
    grace: timedelta | None = None
    jitter: timedelta = timedelta(0)
    start: datetime | None = None
    end: datetime | None = None
    max_runs: int | None = None
    expect_success_within: timedelta | None = None
    notes: str | None = None
    team: str | None = None  # whose it is; None stands for the default team
    expires: timedelta | None = None  # the task's: how long after its due time a job may start
    fair: str | None = None  # by the task and the payload: whose jobs they are
    workflow: bool = False  # whether its jobs become workflows
    notify: str | None = None  # who is told of what becomes of its jobs and its ticks, as JSON

    def check(self) -> None:
        """Refuse what makes no sense. Not done whenever one is made: those that come from the database were checked."""
        check_name(self.task, "task")
        check_queue(self.queue, self.task)
        check_priority(self.priority)
        if isinstance(self.trigger, Cron):
            self.trigger.check()
        check_document(self.payload, "payload")
        if self.expires is not None:
            check_expires(self.expires)
        if self.fair is not None:
            check_key(self.fair, "fair")
        for name, length in (("grace", self.grace), ("jitter", self.jitter)):
            if length is not None:
                duration(length, name)
        if self.expect_success_within is not None and duration(
            self.expect_success_within, "expect_success_within"
        ) == timedelta(0):
            raise InvalidValue("expected expect_success_within to be longer than 0; leave it out for no such watch")
        for name, instant in (("start", self.start), ("end", self.end)):
            if instant is not None and (not isinstance(instant, datetime) or instant.tzinfo is None):
                raise InvalidValue(f"expected {name} to be a datetime with a time zone, got: {shortened(instant)}")
        if self.start is not None and self.end is not None and self.end < self.start:
            raise InvalidValue(f"expected end to come after start, got: {self.start} and {self.end}")
        _check_runs(self.max_runs)
        _check_words(self.notes, self.team)

    @property
    def depends(self) -> bool:
        """Whether what becomes of its ticks depends on its jobs."""
        return self.overlap is not Overlap.ALLOW or isinstance(self.trigger, After)

    @property
    def ahead(self) -> bool:
        """Whether its ticks may become jobs ahead of their time: not if that time itself decides what becomes of them.

        Jobs that they depend on may end until then, one that is awaited may succeed, and one that nobody can start on
        time is to be left out.
        """
        return not self.depends and self.expect_success_within is None and self.misfire is not Misfire.SKIP

    @property
    def longest_delay(self) -> timedelta:
        """How late a tick may be and still run."""
        return GRACE[self.misfire] if self.grace is None else self.grace

    def next_tick(self, after: datetime) -> datetime | None:
        """Return the first tick later than *after* that lies within start and end."""
        if self.start is not None and not isinstance(self.trigger, After):
            after = max(after, self.start - MICROSECOND)
        return self._in_time(self.trigger.next(after))

    def first_tick(self, now: datetime) -> datetime | None:
        """Return the first tick of a schedule that begins now.

        One that is to start right now does. A single time that has passed is late, if not too late.
        """
        if isinstance(self.trigger, At):
            return self._in_time(self.trigger.when) if now - self.trigger.when <= self.longest_delay else None
        if isinstance(self.trigger, After) and self.start is not None and self.start >= now:
            return self._in_time(self.start)
        starts_now = now in (self.start, self.trigger.start if isinstance(self.trigger, Every) else None)
        return self.next_tick(now - MICROSECOND if starts_now else now)

    def _in_time(self, tick: datetime | None) -> datetime | None:
        return None if tick is None or (self.end is not None and tick > self.end) else tick


class Origin(StrEnum):
    """Where a schedule was defined."""

    CODE = "code"  # by a decorator: written anew by every worker that starts
    CALL = "call"  # while the program ran


class NewSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule to be stored."""

    id: str
    definition: Definition
    origin: Origin = Origin.CALL

    def __post_init__(self) -> None:
        check_name(local_name(self.id), "the id of a schedule")
        self.definition.check()
        if self.id != full_name(self.definition.team, local_name(self.id)):
            raise InvalidValue(f"expected the id of a schedule of team {self.definition.team!r}, got: {self.id!r}")


class Schedule(msgspec.Struct, frozen=True):
    """A stored schedule as it was at one moment. The fields stand in the order of every query's columns."""

    id: str
    definition: Definition
    origin: Origin
    paused: bool
    tick_at: datetime | None  # the next tick: None when there is none, or none yet
    due_at: datetime | None  # when to look at it next
    runs: int  # jobs that it has made in its turn
    buffered_at: datetime | None  # the tick that waits for a job to end
    awaits: bool  # it can only go on when a job of its own has ended
    ended_at: datetime | None  # when a job that it awaited ended last
    expected_by: datetime | None  # when somebody should worry that no job has succeeded
    overdue: bool  # somebody was told so
    created_at: datetime
    changed_at: datetime
    paused_by: str | None = None  # who paused it last, and why, and since when it has been
    reason: str | None = None
    paused_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether it will never make a job again by itself."""
        return self.tick_at is None and not self.awaits


def spread(schedule_id: str, jitter: timedelta) -> timedelta:
    """Return how long after its ticks a schedule fires: a share of *jitter* that is always the same for it."""
    steps = jitter // MICROSECOND
    return MICROSECOND * (int.from_bytes(blake2b(schedule_id.encode(), digest_size=8).digest()) % steps if steps else 0)


def _check_runs(max_runs: int | None) -> None:
    if max_runs is not None and (isinstance(max_runs, bool) or not isinstance(max_runs, int) or max_runs < 1):
        raise InvalidValue(f"expected max_runs to be a whole number from 1 on, got: {shortened(max_runs)}")


def _check_words(notes: str | None, team: str | None) -> None:
    if team is not None:
        check_team(team)
    if notes is not None and (not isinstance(notes, str) or len(notes) > _LONGEST_NOTES or storable(notes) != notes):
        raise InvalidValue(
            f"expected notes to be text of at most {_LONGEST_NOTES:,} characters, without NUL, got: {shortened(notes)}"
        )
