"""The one decider: which moves a job may make, and what becomes of it.

Worker, reaper and operator all ask here first and write second; SQL only applies the answer. Time enters as
delays, not instants, because the database's clock decides what "now" is.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TypedDict, Unpack
from uuid import UUID

import msgspec

from mainspring.errors import IllegalMove
from mainspring.model.duration import duration
from mainspring.model.failure import Failure
from mainspring.model.fairness import Line, step
from mainspring.model.fingerprint import fingerprint
from mainspring.model.job import IfTaken, Job, JobState, NewJob, Wish
from mainspring.model.limits import Want
from mainspring.model.links import IfFailed
from mainspring.model.outcome import (
    SPARED,
    Cancelled,
    Expanded,
    Failed,
    Lost,
    Outcome,
    Paused,
    Returned,
    Snoozed,
    Succeeded,
    Suspended,
    TimedOut,
)
from mainspring.model.retry import Retry
from mainspring.model.text import counted, storable
from mainspring.model.workflow import Tally, decode_plan, has_begun

BLOCKED, SCHEDULED, READY, RUNNING, RETRYING, PAUSED, SUCCEEDED, FAILED, CANCELLED, EXPIRED = JobState

MOVES = MappingProxyType(
    {
        BLOCKED: frozenset({SCHEDULED, READY, PAUSED, SUCCEEDED, FAILED, CANCELLED, EXPIRED}),
        SCHEDULED: frozenset({READY, PAUSED, CANCELLED, EXPIRED}),
        READY: frozenset({SCHEDULED, RUNNING, PAUSED, CANCELLED, EXPIRED}),
        RUNNING: frozenset({BLOCKED, SCHEDULED, READY, RETRYING, PAUSED, SUCCEEDED, FAILED, CANCELLED}),
        RETRYING: frozenset({READY, PAUSED, CANCELLED, EXPIRED}),
        PAUSED: frozenset({BLOCKED, SCHEDULED, READY, FAILED, CANCELLED, EXPIRED}),
        SUCCEEDED: frozenset[JobState](),
        FAILED: frozenset({BLOCKED, SCHEDULED, READY, CANCELLED}),
        CANCELLED: frozenset({BLOCKED, SCHEDULED, READY}),
        EXPIRED: frozenset({BLOCKED, SCHEDULED, READY}),
    }
)

REPLAYABLE = tuple(state for state in JobState if state.final and READY in MOVES[state])
"""The states that a replay leads out of."""

MAX_LOSSES = 3
"""A job that has cost this many workers their life is quarantined: it fails, and waits for a person."""

NO_RETRY = Retry(max_attempts=1)


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a job: a move that holds only while the job still has this source and this fence.

    `outcome` is None when no attempt ended. `delay` is None when the job keeps its due time and its place.
    """

    job_id: UUID
    fence: int
    source: JobState
    state: JobState
    attempt: int
    losses: int
    outcome: str | None = None
    delay: timedelta | None = None
    result: str | None = None
    failure: Failure | None = None
    reason: str | None = None
    schedule: str | None = None  # the job's, which may wait for its end
    holds: tuple[str, ...] = ()  # the job's, whose slots become free
    waits_for: str | None = None  # the limit for which it waits from now on
    leaves: tuple[Line, int] | None = None  # where the job stood that never had its turn, and what it paid for that
    breaker: Want | None = None  # the job's, under which the attempt ran
    worked: bool | None = None  # whether the attempt shows that what that stands for works; None if it shows neither
    workflow: UUID | None = None  # the job's, which counts its members that have not ended
    awaited: bool = False  # as far as is known, whether others wait for the job's end
    spawn: tuple[
        NewJob, ...
    ] = ()  # what is enqueued with it: its members if it goes on as a workflow, or others of its own
    plan: str | None = None  # of the workflow that it becomes
    pending: int | None = None  # how many others it waits for from now on; None when that stays as it is
    signal: str | None = None  # for which it waits from now on
    expires: timedelta | None = None  # within what time from now it must start
    started: bool = False  # it has, and so does not expire any more
    details: str | None = None  # what the attempt says of itself, as JSON
    job: Job | None = None  # as it was when this was decided, for those who tell of it

    @property
    def matters(self) -> bool:
        """Whether others may wait for the end of the job."""
        return self.workflow is not None or self.awaited

    @property
    def forgets(self) -> bool:
        """Whether what earlier attempts died of is no error of the job any more; the attempts keep theirs."""
        return self.state is SUCCEEDED

    @property
    def tells(self) -> bool:
        """Whether the job itself names whom to tell of it."""
        return self.job is not None and self.job.notify is not None

    @property
    def related(self) -> bool:
        """Whether it says more than others do of what the job waits for."""
        return self.signal is not None or self.pending is not None or self.started or self.expires is not None

    def __post_init__(self) -> None:
        if self.state not in MOVES[self.source]:
            raise IllegalMove(self.source, self.state)
        if self.delay is not None:
            duration(self.delay, "delay")
        if self.reason is not None:
            msgspec.structs.force_setattr(self, "reason", storable(self.reason))


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A wish left with a running job, or taken back from it (None), until its worker hears of it."""

    job_id: UUID
    fence: int
    wish: Wish | None
    reason: str | None

    def __post_init__(self) -> None:
        if self.reason is not None:
            msgspec.structs.force_setattr(self, "reason", storable(self.reason))


def settle(job: Job, outcome: Outcome, retry: Retry = NO_RETRY, jitter: float = 1.0) -> Settlement:
    """Return what becomes of the running *job* whose attempt came to *outcome*.

    A wish that came during the attempt plays no part here: it may come until the very moment of the write, so
    the store grants it there, when the job did not end anyway.
    """
    if job.state is not RUNNING:
        raise IllegalMove(job.state, outcome.name)
    match outcome:
        case Succeeded(result):
            return Settlement(
                job_id=job.id,
                fence=job.fence,
                source=RUNNING,
                state=SUCCEEDED,
                attempt=job.attempt,
                losses=job.losses,
                outcome=outcome.name,
                result=result,
                schedule=job.schedule,
                holds=job.holds,
                breaker=job.breaker,
                worked=True,
                workflow=job.workflow,
                awaited=job.awaited,
                spawn=_of_team(job, outcome.added),
                details=outcome.details,
                job=job,
            )
        case Failed(failure, retryable, details) | TimedOut(failure, retryable, details):
            # What is not worth another try says something about the job, and nothing about what it depends on.
            worked = False if retryable else None
            if retryable and retry.allows(job.attempt):
                delay = retry.delay(job.attempt, jitter)
                if isinstance(outcome, Failed):
                    delay += outcome.after
                return _move(
                    job, RETRYING, outcome=outcome.name, failure=failure, delay=delay, worked=worked, details=details
                )
            return _fail(job, outcome.name, failure, job.losses, worked=worked, details=details)
        case Lost(reason):
            return _lose(job, job.losses + 1, _worker_lost(job, reason))
        case Cancelled(reason, details):
            return _move(job, CANCELLED, outcome=outcome.name, reason=reason, details=details)
        case Expanded(members, plan):
            return _expand(job, members, plan)
        case Snoozed() | Suspended() | Paused() | Returned():
            return _set_aside(job, outcome)


def _set_aside(job: Job, outcome: Snoozed | Suspended | Paused | Returned) -> Settlement:
    """Return what becomes of the running *job* that goes on some other time; that costs no attempt."""
    attempt = job.attempt - 1
    match outcome:
        case Snoozed(delay):
            return _move(job, SCHEDULED, outcome=outcome.name, delay=delay, attempt=attempt)
        case Suspended(delay, signal):
            state = SCHEDULED if signal is None else BLOCKED
            # It has got further, which one that kills its workers does not: what they died of lies behind it.
            return _move(
                job, state, outcome=outcome.name, delay=delay, attempt=attempt, losses=0, signal=signal, started=True
            )
        case Paused(reason):
            return _move(job, PAUSED, outcome=outcome.name, reason=reason, attempt=attempt)
        case Returned():
            return _move(job, READY, outcome=outcome.name, attempt=attempt)


def wait(job: Job, limit: str) -> Settlement:
    """Return what becomes of the *job* that was claimed and may not start, because of a *limit*: it costs nothing."""
    return _move(job, BLOCKED, attempt=job.attempt - 1, reason=job.reason, waits_for=limit, holds=(), breaker=None)


def spare(failed: Settlement) -> Settlement:
    """Return what becomes of a job whose attempt *failed* while its breaker knew already why: it waits, at no cost."""
    assert failed.breaker is not None
    return msgspec.structs.replace(
        failed, state=BLOCKED, attempt=failed.attempt - 1, outcome=SPARED, delay=None, waits_for=failed.breaker.key
    )


def reap(job: Job, reason: str) -> Settlement:
    """Return what becomes of the running *job* whose worker died.

    Not every job that a dead worker held had started. The first loss counts in any case; from then on a worker counts
    the next one before it starts the job, and takes it back by settling it. So here it stands already, or never will.
    """
    return _lose(job, max(1, job.losses), _worker_lost(job, reason))


def cancel(job: Job, reason: str | None = None) -> Settlement | Asked | None:
    """Return how *job* is cancelled: at once, by asking its worker, or not at all when it has finished."""
    if job.state.final or job.wish is Wish.CANCEL:
        return None
    if job.state is RUNNING or has_begun(job):
        return _ask(job, Wish.CANCEL, reason)
    return _move(job, CANCELLED, reason=reason)


def pause(job: Job, reason: str | None = None) -> Settlement | Asked | None:
    """Return how *job* is paused; one that is paused, finished or about to be cancelled is left alone."""
    if job.state.final or job.state is PAUSED or job.wish is not None:
        return None
    if job.state is RUNNING:
        return _ask(job, Wish.PAUSE, reason)
    return _move(job, PAUSED, reason=reason, signal=job.signal)


def resume(job: Job, now: datetime) -> Settlement | Asked | None:
    """Return how a paused *job* goes on: at its old due time, and in its old place when that has come.

    One that waited for a signal runs, and looks by itself whether that has come.
    """
    if job.state is PAUSED:
        if job.pending or has_begun(job):
            return _move(job, BLOCKED)
        if job.signal is not None:
            return _move(job, _ready(job), delay=timedelta(0))
        # One that its parents let go while it was held has its time to start from now on.
        held = job.pending == 0 and job.expires_at is None and not job.fence
        return _let_go(job, now, job.beginnings.expires if held else None)
    return _ask(job, None, None) if job.wish is Wish.PAUSE else None


def expire(job: Job) -> Settlement:
    """Return how *job*, which waits, ends because the time by which it should have started has passed."""
    assert job.expires_at is not None
    by = job.expires_at.isoformat(timespec="seconds")
    return _move(job, EXPIRED, reason=f"it had not started{' again' if job.attempt else ''} by {by}")


def signalled(job: Job, signal: str) -> Settlement | None:
    """Return how *job* goes on to which a *signal* was sent; None if that is not what it waits for now."""
    if job.state is not BLOCKED or job.signal != signal:
        return None
    return _move(job, _ready(job), delay=timedelta(0))


def may_follow(if_failed: IfFailed, ended: JobState | None) -> bool | None:
    """Return whether a child may run as far as a parent is concerned that has *ended* so, or is not there any more.

    None says that it has to wait on, for a replay of that.
    """
    if ended is SUCCEEDED:
        return True
    if ended is None or if_failed is IfFailed.CANCEL:
        return False
    return True if if_failed is IfFailed.RUN else None


def release(job: Job, now: datetime) -> Settlement | None:
    """Return how *job* goes on, whose parents have all ended; None if a person holds it, or it waits for others too."""
    if job.state is not BLOCKED or job.pending or has_begun(job):
        return None
    return _let_go(job, now, job.beginnings.expires)


def _let_go(job: Job, now: datetime, expires: timedelta | None) -> Settlement:
    """Return how *job* goes on at its due time, or now if that has come, and has to start within *expires* of it."""
    if job.run_at <= now:
        return _move(job, _ready(job), expires=expires)
    return _move(job, SCHEDULED, expires=None if expires is None else job.run_at - now + expires)


def disown(job: Job, parent: UUID, ended: JobState | None) -> Settlement:
    """Return how *job* ends, which waits for a *parent* that has *ended* badly, or is not there any more."""
    return _move(job, CANCELLED, reason=f"its parent {parent} {ended or 'is gone'}")


def finish(job: Job, tally: Tally) -> Settlement | None:
    """Return how the workflow *job* ends, all of whose members have; None if a person holds it."""
    cancelled = job.state is PAUSED and job.wish is Wish.CANCEL
    if job.pending or not (job.state is BLOCKED or cancelled):
        return None
    failure = tally.failure
    if failure is not None:
        mark = fingerprint(job.task, failure.type, "", "")
        return _move(job, FAILED, failure=msgspec.structs.replace(failure, fingerprint=mark))
    if job.wish is Wish.CANCEL:
        return _move(job, CANCELLED, reason=job.reason)
    if tally.counts.get(CANCELLED):
        return _move(job, CANCELLED, reason=f"{counted(tally.counts[CANCELLED], 'job')} of it cancelled")
    return _move(job, SUCCEEDED)


def replay(job: Job, reason: str | None = None, pending: int = 0) -> Settlement | None:
    """Return how a finished *job* lives again, with fresh counters and the same fence; None if it can't.

    *pending* is how many parents or members it has to wait for.
    """
    if not job.state.final or READY not in MOVES[job.state]:
        return None
    state = BLOCKED if pending or has_begun(job) else _ready(job)
    return _move(
        job,
        state,
        attempt=0,
        losses=0,
        delay=timedelta(0),
        reason=reason,
        pending=pending if pending or has_begun(job) else None,
    )


def discard(job: Job, reason: str | None = None) -> Settlement | None:
    """Return how a failed *job* ceases to be a dead letter; any other is left alone."""
    return _move(job, CANCELLED, reason=reason) if job.state is FAILED else None


def give_way(job: Job, new: NewJob, now: datetime) -> Job:
    """Return what becomes of an unfinished *job* whose key *new* wants: as *new* says, or as it is.

    One that runs, or has begun as a workflow, goes on with what it started with, and one of another task could do
    nothing with these arguments.
    """
    if new.if_taken is IfTaken.RETURN or job.state is RUNNING or has_begun(job) or job.task != new.task:
        return job
    changed = msgspec.structs.replace(job, payload=new.payload, priority=new.priority)
    if new.if_taken is IfTaken.REPLACE:
        other_line = job.state is READY and job.line != changed.line
        return msgspec.structs.replace(changed, state=SCHEDULED) if other_line else changed
    run_at = new.run_at or now + new.delay
    return msgspec.structs.replace(changed, run_at=run_at, state=_due(job, later=run_at > now))


def _due(job: Job, *, later: bool) -> JobState:
    if job.state in (BLOCKED, PAUSED):
        return job.state  # what it waits for is not its time
    if not later:
        return _ready(job)
    return SCHEDULED if job.state is READY else job.state


def leaves(job: Job, state: JobState) -> tuple[Line, int] | None:
    """Return the line that *job* leaves unserved by its move to *state*, and what it has paid there; None if none."""
    if job.line is None or job.state is not READY or state is READY:
        return None
    return job.line, step(job.weight or 1)


def _ready(job: Job) -> JobState:
    """Return the state of *job*, which is due: one with a fair key gets its turn from promote, and is ready then."""
    return READY if job.fair is None else SCHEDULED


class _Changes(TypedDict, total=False):
    attempt: int
    losses: int
    outcome: str
    delay: timedelta
    result: str
    failure: Failure
    reason: str | None
    holds: tuple[str, ...]
    waits_for: str
    leaves: tuple[Line, int] | None
    breaker: Want | None
    worked: bool | None
    spawn: tuple[NewJob, ...]
    plan: str
    pending: int | None
    signal: str | None
    expires: timedelta | None
    started: bool
    details: str | None


def _move(job: Job, state: JobState, **changes: Unpack[_Changes]) -> Settlement:
    changes.setdefault("attempt", job.attempt)
    changes.setdefault("losses", job.losses)
    changes.setdefault("holds", job.holds)
    changes["leaves"] = leaves(job, state)
    changes.setdefault("breaker", job.breaker)
    return Settlement(
        job_id=job.id,
        fence=job.fence,
        source=job.state,
        state=state,
        schedule=job.schedule,
        workflow=job.workflow,
        awaited=job.awaited,
        job=job,
        **changes,
    )


def _expand(job: Job, members: tuple[NewJob, ...], plan: str) -> Settlement:
    """Return what becomes of *job*, which is a workflow from now on, or has ended already if that has no members."""
    if not members:  # so its plan is not kept, and what it would have gathered is its result
        result = "[]" if decode_plan(plan).gathers else "null"
        return _move(job, SUCCEEDED, outcome=Expanded.name, result=result, worked=True)
    return _move(
        job,
        BLOCKED,
        outcome=Expanded.name,
        spawn=_of_team(job, members),
        plan=plan,
        pending=len(members),
        started=True,
        worked=True,
    )


def _of_team(job: Job, spawn: tuple[NewJob, ...]) -> tuple[NewJob, ...]:
    """Return *spawn*, which comes of *job*, as its team's."""
    return tuple(one if one.team == job.team else one.given_to(job.team) for one in spawn)


def _fail(
    job: Job,
    outcome: str,
    failure: Failure,
    losses: int,
    worked: bool | None = None,
    details: str | None = None,
) -> Settlement:
    """Return how *job* becomes a dead letter, whose failure has a fingerprint in any case: it goes by that."""
    if failure.fingerprint is None:
        mark = fingerprint(job.task, failure.type, failure.message, "")
        failure = msgspec.structs.replace(failure, fingerprint=mark)
    return _move(job, FAILED, outcome=outcome, losses=losses, failure=failure, worked=worked, details=details)


def _worker_lost(job: Job, reason: str) -> Failure:
    # The reason names the worker; that plays no part in what the job has in common with others that cost theirs.
    return Failure(type="WorkerLost", message=reason, fingerprint=fingerprint(job.task, "WorkerLost", "", ""))


def _lose(job: Job, losses: int, failure: Failure) -> Settlement:
    if losses >= MAX_LOSSES:
        return _fail(job, Lost.name, failure, losses)
    return _move(job, READY, outcome=Lost.name, losses=losses, failure=failure, attempt=job.attempt - 1)


def _ask(job: Job, wish: Wish | None, reason: str | None) -> Asked:
    return Asked(job_id=job.id, fence=job.fence, wish=wish, reason=reason)
