"""A job: one durable request to run a task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from functools import lru_cache
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr, replace

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.duration import duration
from mainspring.model.failure import Failure
from mainspring.model.fairness import Line, check_weight
from mainspring.model.journal import Reached
from mainspring.model.limits import Want
from mainspring.model.links import Edge, Links, check_parents, decode_links, encode_links
from mainspring.model.team import check_bare, full_name, local_name
from mainspring.model.text import check_document, shortened


class JobState(StrEnum):
    """Where a job is in its life. Each line says who moves it on."""

    BLOCKED = "blocked"  # waits for parents, a slot or a signal: whoever ends that wait releases it
    SCHEDULED = "scheduled"  # due later: promote, at its time
    READY = "ready"  # due: a worker claims it
    RUNNING = "running"  # claimed under a fence: its attempt settles it, or reap does
    RETRYING = "retrying"  # failed, due again after backoff: promote, at its time
    PAUSED = "paused"  # held by a person: resume
    SUCCEEDED = "succeeded"  # final
    FAILED = "failed"  # final, a dead letter: replay makes it ready again
    CANCELLED = "cancelled"  # final
    EXPIRED = "expired"  # final

    # A state equals its text, so it must hash like it; Enum would hash the name, and slowly.
    __hash__ = str.__hash__

    @property
    def final(self) -> bool:
        """Whether nothing but an explicit replay leaves this state."""
        return self in _FINAL


_FINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})
UNFINISHED = tuple(state for state in JobState if not state.final)


class Priority(IntEnum):
    """Named priorities. A larger number is more urgent; any number from 0 to 100 will do."""

    LOW = 1
    NORMAL = 5
    HIGH = 10
    URGENT = 20


class Wish(StrEnum):
    """What a person asked of a job while it was running; its worker learns of it with the next beat."""

    CANCEL = "cancel"
    PAUSE = "pause"


class IfTaken(StrEnum):
    """What an enqueue does about an unfinished job that has its key. One that is running is never changed."""

    RETURN = "return"  # nothing: that job stands for this request
    REPLACE = "replace"  # give it the arguments and the priority of this request, while it still waits
    RESCHEDULE = "reschedule"  # likewise, and move its due time to that of this request


IDEMPOTENCY_TTL = timedelta(hours=24)
"""How long after its finish a job stands for requests with its idempotency key, unless they say otherwise."""

_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is not stored yet. `payload` is what `payload.encode_call` made.

    It is due at `run_at`, or else `delay` after the database received it: a delay is judged by the
    database's clock alone, so the caller's may be wrong.
    """

    id: UUID
    task: str
    payload: str
    queue: str = "default"
    priority: int = Priority.NORMAL
    run_at: datetime | None = None
    delay: timedelta = timedelta(0)
    key: str | None = None
    if_taken: IfTaken = IfTaken.RETURN
    idempotency_key: str | None = None
    idempotency_ttl: timedelta = IDEMPOTENCY_TTL
    schedule: str | None = None  # the one that makes this job
    tick: datetime | None = None  # of that schedule
    expires: timedelta | None = None  # how long after its due time it may start
    fair: str | None = None  # whose it is, where those of all take turns
    weight: int = 1  # how many of those have a turn together
    parents: tuple[Edge, ...] = ()  # that it waits for
    workflow: UUID | None = None  # the one of which it is a member
    plan: str | None = None  # of a workflow, as JSON
    members: int = 0  # of a workflow that comes with its members: how many
    awaited: bool = False  # whether a job that comes with it has it for a parent
    added: bool = False  # whether it is not among those that its workflow was made of
    team: str | None = None  # whose it is; None stands for the default team
    notify: str | None = None  # who is told of what becomes of it, as JSON
    trace: str | None = None  # the trace of which its enqueue is part

    def __post_init__(self) -> None:
        _check_own(self.id, self.payload)
        check_name(self.task, "task")
        check_queue(self.queue, self.task)
        check_priority(self.priority)
        if self.run_at is not None:
            check_instant(self.run_at)
        if not isinstance(self.delay, timedelta):
            raise InvalidValue(f"expected delay to be a timedelta, got: {shortened(self.delay)}")
        if self.delay:
            duration(self.delay, "delay")
        check = check_key if self.team is None else _check_indexed
        if self.key is not None:
            check(self.key, "key")
        elif self.if_taken is not IfTaken.RETURN:
            raise InvalidValue(
                f"expected a key with if_taken={self.if_taken.value!r}, which is about who has it, got none"
            )
        if self.idempotency_key is not None:
            check(self.idempotency_key, "idempotency_key")
            duration(self.idempotency_ttl, "idempotency_ttl")
        if self.expires is not None:
            check_expires(self.expires)
        if self.fair is not None:
            check(self.fair, "fair")
        check_weight(self.weight)
        if self.parents:
            self._check_parents()

    @property
    def line(self) -> Line | None:
        """Where it will stand when it is ready, if it takes turns."""
        return None if self.fair is None else Line(self.queue, self.priority, self.task, self.fair)

    def _check_parents(self) -> None:
        check_parents(self.id, self.parents)
        if self.if_taken is not IfTaken.RETURN:
            raise InvalidValue(
                f"expected no parents with if_taken={self.if_taken.value!r}: the job that has the key keeps its own"
            )

    @property
    def related(self) -> bool:
        """Whether it has to do with other jobs."""
        return bool(self.workflow or self.parents or self.plan or self.awaited or self.added)

    @property
    def attributed(self) -> bool:
        """Whether it is anybody's in particular, or anybody is told of it."""
        return bool(self.team or self.notify or self.trace)

    @property
    def links(self) -> str | None:
        """What is kept of its beginnings: of one that is no more than an item of a map, nothing."""
        return encode_links(self.parents, self.expires) if self.parents or self.added else None

    def given_to(self, team: str | None) -> NewJob:
        """Return it as a job of *team*, among whose keys its own are.

        If it has no fair key it stands in the team's own line, so that teams take turns where they share a queue.
        Its keys were checked without the team's name and are not checked anew: nothing may be refused where this is
        asked for, such as in the midst of a settle.
        """
        job = copy(self)
        force_setattr(job, "team", team)
        for name in ("key", "idempotency_key", "fair"):
            value = getattr(self, name)
            if value is not None:
                force_setattr(job, name, full_name(team, local_name(value)))
        if team is not None and self.fair is None:
            force_setattr(job, "fair", full_name(team, ""))
        return job

    def like(self, job_id: UUID, payload: str, key: str | None = None, fair: str | None = None) -> NewJob:
        """Return a job with an id, a payload, and perhaps a *key* and *fair* of its own; the rest is checked already.

        In a large batch, to check that again for each job would cost as much as to make its payload.
        """
        _check_own(job_id, payload)
        job = copy(self)
        if key is not None:
            check_key(key)
            force_setattr(job, "key", key)
        if fair is not None:
            check_key(fair, "fair")
            force_setattr(job, "fair", fair)
        force_setattr(job, "id", job_id)
        force_setattr(job, "payload", payload)
        return job


class Job(msgspec.Struct, frozen=True):
    """A stored job as it was at one moment. The fields stand in the order of every query's columns."""

    id: UUID
    task: str
    queue: str
    payload: str
    priority: int
    state: JobState
    run_at: datetime
    created_at: datetime
    key: str | None
    attempt: int  # number of the present or last attempt; what cost no attempt is taken back
    losses: int  # attempts that ended because the worker died
    fence: int  # grows with every claim, never falls
    session: UUID | None  # the worker session that holds it, or that ended it
    started_at: datetime | None  # of the present attempt, or of the one that ended the job
    wish: Wish | None
    reason: str | None  # why a person moved it last
    error: str | None  # the last failure, as JSON
    finished_at: datetime | None
    outcome: str | None  # what the last attempt came to, where an attempt ended the job
    result: str | None  # as JSON
    progress: str | None  # how far it said last that it is, as JSON
    schedule: str | None  # the one that made it
    tick: datetime | None  # the nominal time for which it was made
    expires_at: datetime | None  # when it may not start any more
    fair: str | None = None  # whose it is, where those of all take turns
    weight: int | None = None  # how many of those have a turn together; its worker does not care
    waits_for: str | None = None  # the limit for which it is blocked
    holds: tuple[str, ...] = ()  # the limits of which it has a slot
    workflow: UUID | None = None  # the one of which it is a member
    links: str | None = None  # its parents, as JSON
    plan: str | None = None  # of a workflow: what is to become of its members and their results, as JSON
    pending: int | None = None  # how many parents, or members, it waits for
    awaited: bool = False  # whether others may wait for its end
    signal: str | None = None  # for which it waits
    team: str | None = None  # whose it is; None stands for the default team
    notify: str | None = None  # who is told of what becomes of it, as JSON
    trace: str | None = None  # of which its enqueue was part; known to its worker only
    breaker: Want | None = None  # the one under which its worker runs it; not stored
    turn: int | None = None  # by which it was claimed, if it takes turns; known to its worker only

    @property
    def line(self) -> Line | None:
        """Where it stands while it is ready, if it takes turns."""
        return None if self.fair is None else Line(self.queue, self.priority, self.task, self.fair)

    def asking(self, wants: Sequence[Want]) -> Job:
        """Return it as its worker has it that asks for *wants*: its end gives back all that it may have got of them."""
        holds = tuple(want.key for want in wants if want.concurrency)
        return replace(self, holds=holds, breaker=next((want for want in wants if want.rule), None))

    @property
    def beginnings(self) -> Links:
        """Its parents, and how long after them it may start."""
        return decode_links(self.links) if self.links else Links(())

    @property
    def failure(self) -> Failure | None:
        """The last failure, if there was one."""
        return msgspec.json.decode(self.error, type=Failure) if self.error else None

    @property
    def reached(self) -> Reached | None:
        """How far it said last that it is; what an earlier attempt said stands until the present one speaks."""
        return msgspec.json.decode(self.progress, type=Reached) if self.progress else None


NOTIFY_QUEUE = "mainspring.notify"
"""Where the jobs wait that tell people. Every node serves it, so nobody else's may."""

TELLERS = frozenset({"mainspring.webhook", "mainspring.email"})
"""The tasks that tell people."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")
_KEY_BYTES = 512
_TEAM_BYTES = 42
"""What the name of a team before a key adds to it at most."""


@lru_cache(maxsize=1_000)  # a program has few names, and checks them for every job
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_name(name: str, what: str) -> None:
    """Refuse a task or queue name that a URL, a log line or a metric label could not carry as it is."""
    if not isinstance(name, str) or not _is_name(name):
        raise InvalidValue(
            f"expected {what} to be 1 to 128 ASCII letters, digits or any of _.:/- "
            f"(beginning with a letter, digit or _), got: {shortened(name)}"
        )


def check_queue(queue: str, task: str) -> None:
    """Refuse a name that no queue can have, and one of ours for a job that is not: every node serves those."""
    check_name(queue, "queue")
    if queue.startswith("mainspring.") and task not in TELLERS:
        raise InvalidValue(f"expected a queue whose name does not begin with 'mainspring.', got: {shortened(queue)}")


def check_priority(priority: int, name: str = "priority") -> None:
    """Refuse a priority that has no place in a queue."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= 100:
        raise InvalidValue(f"expected {name} to be a whole number from 0 to 100, got: {shortened(priority)}")


def priority_of(value: int | str, name: str = "priority") -> int:
    """Return the priority that *value* says, by number or by name."""
    if isinstance(value, str):
        if value.upper() not in Priority.__members__:
            names = [member.lower() for member in Priority.__members__]
            raise InvalidValue(
                f"expected {name} to be a whole number from 0 to 100 or one of {', '.join(names)}, "
                f"got: {shortened(value)}{did_you_mean(value.lower(), names)}"
            )
        return Priority[value.upper()]
    check_priority(value, name)
    return value


def check_expires(expires: timedelta) -> None:
    """Refuse a length of time within which nothing could start."""
    if duration(expires, "expires") == timedelta(0):
        raise InvalidValue("expected expires to be longer than 0; leave it out for a job that may start at any time")


def _check_own(job_id: UUID, payload: str) -> None:
    if not isinstance(job_id, UUID):
        raise InvalidValue(f"expected id to be a UUID, got: {shortened(job_id)}")
    check_document(payload, "payload")


def check_instant(instant: datetime, name: str = "run_at") -> None:
    """Refuse what is no instant that both databases can hold and reckon with."""
    if not isinstance(instant, datetime):
        raise InvalidValue(f"expected {name} to be a datetime with a time zone, got: {shortened(instant)}")
    if instant.tzinfo is None:
        raise InvalidValue(f"expected {name} to have a time zone, got the naive datetime {instant!r}")
    if not _EARLIEST <= instant <= _LATEST:
        raise InvalidValue(f"expected {name} to lie between 1970 and 2200, got: {instant.isoformat()}")


def if_taken_of(value: IfTaken | str) -> IfTaken:
    """Return what *value* says."""
    if value not in tuple(IfTaken):
        hint = did_you_mean(str(value), IfTaken)
        raise InvalidValue(f"expected if_taken to be one of {', '.join(IfTaken)}, got: {shortened(value)}{hint}")
    return IfTaken(value)


def check_key(key: str, name: str = "key") -> None:
    """Refuse a key that is none, or could be taken for one of a team."""
    _check_indexed(key, name, _KEY_BYTES)
    check_bare(key, name)


def _check_indexed(key: str, name: str, most: int = _KEY_BYTES + _TEAM_BYTES) -> None:
    """Refuse a key that an index could not hold as it is."""
    if not isinstance(key, str) or not key or "\0" in key:
        raise InvalidValue(
            f"expected {name} to be text that is not empty and has no NUL characters, got: {shortened(key)}"
        )
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidValue(f"expected {name} to be valid Unicode, got: {shortened(key)}") from None
    if size > most:
        raise InvalidValue(f"expected {name} to be at most {most} bytes, got {size}: {shortened(key)}")
