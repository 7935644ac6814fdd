"""The store's contract, split by reader and in the order of the flow. Both dialects keep it; one suite proves it.

All calls are safe from any thread. Each either happens as a whole or not at all, and raises a StoreError when
the database can't be reached before the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue
from mainspring.keys import Keyring
from mainspring.model.alert import Alert, AlertEvent, NewAlert
from mainspring.model.attempt import Attempt
from mainspring.model.audit import Entry, Record, Verdict
from mainspring.model.breaker import BreakerStatus, Trip
from mainspring.model.change import Change
from mainspring.model.channel import Channel
from mainspring.model.dead import Count, Group, Letter, Meant
from mainspring.model.history import History
from mainspring.model.job import Job, JobState, NewJob, check_instant
from mainspring.model.journal import FoundLine, LogEntry, LogFilter, LogLine, Progress
from mainspring.model.lifecycle import Settlement
from mainspring.model.limits import LimitStatus, Standing, Want
from mainspring.model.notice import Rule
from mainspring.model.queue import NewPause, Pausable, Pause, Queue
from mainspring.model.retention import Covers, Prunable, RetentionRule
from mainspring.model.schedule import NewSchedule, Origin, Schedule
from mainspring.model.secret import SealedSecret, Secret
from mainspring.model.session import Beat, NewSession, Session
from mainspring.model.step import Step
from mainspring.model.team import Quotas, Team
from mainspring.model.text import shortened, storable
from mainspring.model.tick import TickRecord
from mainspring.model.token import NewToken, Token
from mainspring.model.workflow import NewWorkflow
from mainspring.store.database import Listener, Migration, Probe
from mainspring.tally import Counts, Place

OWN = object()
"""In place of a caller's connection: a transaction of our own."""

AHEAD = timedelta(milliseconds=50)
"""How long before its time a job is promoted and claimed, where it is to start on the dot."""


class Settled(set[UUID]):
    """The ids of those jobs whose settlements held.

    `otherwise` has, of those that did not become what was decided, what did become of them: a breaker has spared them,
    or somebody wished for something else while they ran. There are hardly ever any.
    """

    __slots__ = ("otherwise",)

    def __init__(self, ids: Iterable[UUID] = (), otherwise: Mapping[UUID, Settlement] | None = None) -> None:
        super().__init__(ids)
        self.otherwise: Mapping[UUID, Settlement] = otherwise or {}


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs became ready, and how long until the next one is due: None when none waits."""

    count: int
    next_due: timedelta | None


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs have expired, and how long until the next one may: None when none can."""

    count: int
    next_due: timedelta | None


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """How many schedules were looked at, how many jobs were made, and how long until the next is due.

    `failed` are schedules for which nothing could be decided, with the reason; they are put off for a minute.
    """

    schedules: int
    jobs: int
    next_due: timedelta | None
    failed: Mapping[str, str]


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """How many limits were looked at, how many ends of jobs were followed up, and how long until the next look.

    That is None when nobody waits for any.
    """

    limits: int
    followed: int
    next_due: timedelta | None


class Lags(msgspec.Struct, frozen=True, kw_only=True):
    """How late whoever sweeps is: with the job that should be ready, and with the schedule that should have fired."""

    promote: timedelta
    fire: timedelta


class Overdue(msgspec.Struct, frozen=True):
    """A schedule that should have had a success by then, and the time that it had for it."""

    schedule: str
    expected_by: datetime
    within: timedelta


class Alerted(msgspec.Struct, frozen=True, kw_only=True):
    """How many alerts were looked at, which began to fire or resolved by that, and how long until the next look.

    `failed` are alerts that could not be measured, with the reason. There is no next look where there is no alert.
    """

    looked: int
    events: Sequence[AlertEvent]
    failed: Mapping[str, str]
    next_due: timedelta | None


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a page shows; None means any."""

    state: JobState | None = None
    queue: str | None = None
    task: str | None = None
    key: str | None = None
    team: str | None = None  # by its name, also the default team's
    since: datetime | None = None  # made then or later, by their ids, which begin with the time of whoever made them
    until: datetime | None = None  # made before then
    finished_since: datetime | None = None  # ended then or later
    finished_until: datetime | None = None  # ended before then
    error: str | None = None  # in the type or the message of the last failure, in ASCII letters of either case

    def __post_init__(self) -> None:
        for name in ("since", "until", "finished_since", "finished_until"):
            if (moment := getattr(self, name)) is not None:
                check_instant(moment, name)
        if self.error is not None:
            if not isinstance(self.error, str):
                raise InvalidValue(f"expected error to be text, got: {shortened(self.error)}")
            msgspec.structs.force_setattr(self, "error", storable(self.error) or None)


class JobPage(msgspec.Struct, frozen=True):
    """Jobs, newest first, and the id before which the next page begins; None when all has been looked at."""

    jobs: list[Job]
    before: UUID | None


class LogSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of all jobs are meant: of those written *within* so long before now; None means any."""

    match: LogFilter = LogFilter()
    task: str | None = None
    team: str | None = None  # by its name, also the default team's
    within: timedelta = timedelta(hours=1)


class LetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters are meant; None means any. A group is a whole fingerprint."""

    group: str | None = None
    queue: str | None = None
    task: str | None = None
    team: str | None = None  # by its name, also the default team's
    finished_until: datetime | None = None  # died before then

    def __post_init__(self) -> None:
        if self.finished_until is not None:
            check_instant(self.finished_until, "finished_until")


class Enqueues(Protocol):
    """For whoever has work to be done."""

    def enqueue(self, jobs: Sequence[NewJob], conn: object = OWN, entries: Sequence[Entry] = ()) -> list[UUID]:
        """Store *jobs*, all or none, and return for each the id of the job that stands for it.

        That is its own id, or the id of the unfinished job that has the same key. The caller makes the ids, new
        for each request: a try whose reply was lost is repeated under the same ids and stores nothing twice.
        Once this returned, the jobs are as durable as the database is.

        One that has parents waits for them. Those must be known, or be stored in the same call, and be older than it:
        their ids are smaller.

        With *conn*, a connection of the caller's own to the same database, they are part of its transaction: stored
        when that is committed, and not otherwise. Nothing is tried again then, and the driver's errors are passed on.

        *entries* are put at the end of the audit log in the same transaction: exactly if the jobs are stored. One about
        a job for which another stands is about that other.
        """
        ...

    def enqueue_workflow(self, new: NewWorkflow, conn: object = OWN) -> UUID:
        """Store a workflow and its members, all or none, and return the id of the workflow that stands for it.

        That is another one, and no members are stored, if an unfinished job has its key. A member whose key is taken
        is an error, KeyTaken.
        """
        ...

    def repeats(self, jobs: Sequence[NewJob]) -> set[UUID]:
        """Return the ids of those *jobs* for which another would stand by their keys, if they were enqueued now."""
        ...


class Claims(Protocol):
    """For workers: taking jobs."""

    def claim(
        self,
        session: UUID,
        queue: str,
        limit: int,
        tasks: Collection[str] | None = None,
        ahead: timedelta = timedelta(0),
    ) -> list[Job]:
        """Take up to *limit* ready jobs of *queue* for *session*, most urgent first, oldest first within a priority.

        Only jobs of *tasks* are taken, or of any when it is None; others stay ready, in their place. Each job gets a
        new, larger fence. No job is handed to two sessions. A session whose lease has ended gets nothing. A call takes
        no more than a few thousand, whatever the limit.

        Those that are due within *ahead* are taken too, if `promote` has made them ready. Whoever takes them starts
        them at their time, which is `run_at - started_at` from now by the database's clock.
        """
        ...

    def reach(self, started: Sequence[Job]) -> None:
        """Note that turns have got as far as those of these jobs, which were claimed and are about to start.

        Whoever joins a line begins there. What was claimed and has to wait for a limit has not had its turn. A note
        that is lost does no harm.
        """
        ...

    def charge(self, job: Job) -> bool:
        """Count a loss of *job* in advance, because it has been lost before and is about to start.

        Whatever it is settled as takes that back. If it costs the worker its life, `reap` finds it counted: so jobs
        that were lost unstarted, beside the one that is to blame, are not taken for guilty. Returns False when the
        attempt no longer holds its job.
        """
        ...

    def admit(self, asking: Sequence[tuple[Job, Sequence[Want]]]) -> set[UUID]:
        """Return the ids of those claimed jobs that may start; the others wait for a limit, and are no longer held.

        They are asked for in the order given. Each takes a slot of every limit of concurrency that it wants, and keeps
        it until it is settled, whoever does that; and a token of every limit of rate. A breaker that is closed lets all
        start, one that is open none, and one that is half-open gives slots to probes.
        """
        ...


class Settles(Protocol):
    """For workers: saying what became of jobs."""

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """Write *settlements* and return the ids of those that held, and which jobs became something else.

        One whose job has meanwhile another state or fence changes nothing: its attempt is stale. A wish that
        came while the attempt ended is granted, if the job did not end.

        Attempts that ran under a breaker are recorded with it. One that failed while the breaker knew already that
        attempts do so costs its job nothing: the job waits for the breaker.
        """
        ...

    def transaction(
        self, settlement: Callable[[], Settlement], lines: Sequence[LogLine] = ()
    ) -> AbstractContextManager[Any]:
        """Lend the block a connection of the driver, in a transaction, and write *settlement* with what it did.

        *settlement* is called, and what is in *lines* is written, at the end of the block. Either all that the block
        wrote on the connection is kept and the job is settled, or neither: an exception rolls back and is passed on,
        and a settlement that is stale rolls back and raises LeaseLost. A block that ends its transaction by itself
        gets a StoreError, and the settlement is not written. Nothing is tried again. When the connection breaks in
        the very commit, nobody can tell what became of it: that raises StoreUnavailable, and the fence decides on the
        next attempt.

        What the block runs has no deadline. On SQLite it keeps all other writers waiting, so keep it short; and its
        thread can't write through the store meanwhile.
        """
        ...


class Journals(Protocol):
    """For what attempts say while they run."""

    def record(self, lines: Sequence[LogLine], progress: Sequence[Progress]) -> set[UUID]:
        """Keep *lines* and *progress*, and return the ids of the jobs that are still run under the fence given.

        What comes of another attempt is dropped; so record before you settle. Of several reports of one attempt the
        last one stands. A line is known by its job, fence and number, and is kept once however often it is recorded.
        """
        ...

    def logs(
        self,
        job_id: UUID,
        after: tuple[int, int] = (0, 0),
        limit: int = 1_000,
        match: LogFilter | None = None,
    ) -> list[LogEntry]:
        """Return up to *limit* lines of a job, oldest first; pass the last one's fence and number as *after* for more.

        `prune` takes them by the day on which they were recorded, even when their job still lives.
        """
        ...

    def find_logs(self, search: LogSearch, limit: int = 100) -> list[FoundLine]:
        """Return up to *limit* lines of all jobs, newest first.

        They are looked through one by one, the newest first and further back only as long as too few were found.
        """
        ...


class Steps(Protocol):
    """For durable jobs. A write is made only while the attempt with this fence holds the job, or raises LeaseLost."""

    def steps(self, job_id: UUID) -> list[Step]:
        """Return what a job has done step by step, and what it waits for, in the order of time.

        They stay as long as the job does, through replays as well.
        """
        ...

    def record_step(self, job_id: UUID, fence: int, name: str, result: str) -> None:
        """Keep the result of a step, as JSON. Of several for one name the first stands."""
        ...

    def step_transaction(
        self, job_id: UUID, fence: int, step: tuple[str, str], lines: Sequence[LogLine] = ()
    ) -> AbstractContextManager[Any]:
        """Lend the block a connection as `transaction` does, and record *step*, a name and a result, with its work."""
        ...

    def begin_sleep(self, job_id: UUID, fence: int, name: str, delay: timedelta) -> timedelta:
        """Return how long is left of a sleep, nothing or less when it is over; it begins now if it has not begun.

        From then on it ends when it does, whatever becomes of the attempt.
        """
        ...


class Signals(Protocol):
    """For jobs that wait for something from outside, and for whoever has it."""

    def signal(self, job_id: UUID, name: str, value: str, signal_id: UUID) -> None:
        """Send a signal to a job that has not ended; one that waits for it goes on, any other finds it when it asks.

        The caller makes the id, new for each signal: one that comes again under its id is kept once, taken or not.
        Raises JobNotFound, or SignalRefused when the job has ended or has too many that it has not taken.
        """
        ...

    def take_signal(
        self, job_id: UUID, fence: int, name: str, signal: str, timeout: timedelta | None
    ) -> str | timedelta:
        """Take the oldest *signal* that was not taken, and return its value, which becomes the result of a step.

        *name* is that of the step. If there is no such signal, return how long is left of the wait, which begins now
        if it has not begun; or the value `null`, when that is over. What a step has come to it stays, and a signal that
        comes too late is left to the next step that asks. Raises LeaseLost as `record_step` does.
        """
        ...


class Sessions(Protocol):
    """For workers: staying alive."""

    def open_session(self, session: NewSession) -> None:
        """Begin a session; its lease runs from now."""
        ...

    def beat(self, session: UUID, holding: Mapping[UUID, int]) -> Beat:
        """Renew the lease, and compare what the session holds (job id to fence) with what the database thinks.

        The two may differ for a moment because of claims and settles in flight: act on a stray when it shows in
        two beats in a row, and on a loss when the job is still held once the beat is back. A session whose
        lease has ended is not revived.
        """
        ...

    def close_session(self, session: UUID) -> bool:
        """End a session that holds nothing any more; return False, and leave it to reap, when it still does."""
        ...

    def sessions(self) -> list[Session]:
        """Return all sessions that were not closed or reaped, oldest first."""
        ...


class Controls(Protocol):
    """For people. Each call returns the state that each known job is in afterwards; unknown ids are left out.

    A running job stays running until its worker has heard of the wish.
    """

    def cancel(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        """Cancel jobs: waiting ones at once, running ones by asking their worker; finished ones stay as they are."""
        ...

    def pause(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        """Hold jobs until `resume`: waiting ones at once, running ones by asking their worker."""
        ...

    def resume(self, ids: Collection[UUID]) -> dict[UUID, JobState]:
        """Let paused jobs go on at their due time, and take back the wish to pause from running ones."""
        ...

    def replay(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        """Make failed, cancelled and expired jobs ready again, with fresh counters; their history is kept.

        One whose key an unfinished job holds by now stays finished.
        """
        ...


class DeadLetters(Protocol):
    """For people who deal with failed jobs. Where many are meant, a call looks at the index of failed jobs only."""

    def dead_groups(self, match: LetterFilter | None = None, limit: int = 50) -> list[Group]:
        """Return the dead letters of a queue or task, or all, by their cause; the one seen last comes first."""
        ...

    def dead_fingerprints(self, prefix: str, limit: int = 10, team: str | None = None) -> list[str]:
        """Return up to *limit* fingerprints of dead letters that begin with *prefix*, in order."""
        ...

    def dead_count(self, match: LetterFilter) -> int:
        """Return how many dead letters match."""
        ...

    def dead_meant(self, match: LetterFilter) -> Meant:
        """Return how many dead letters match, and the instant before which all of them had died."""
        ...

    def dead_among(self, most: int, team: str | None = None) -> Count:
        """Return how many of up to *most* dead letters, whosever they are, are those of *team*, by its name, or all."""
        ...

    def dead_letters(self, match: LetterFilter, after: UUID | None = None, limit: int = 5_000) -> list[Letter]:
        """Return dead letters, oldest job first; pass the last one's id as *after* for more."""
        ...

    def dead_page(self, match: LetterFilter, before: UUID | None = None, limit: int = 50) -> list[Job]:
        """Return dead letters with all their fields, newest job first; pass the last one's id as *before* for more."""
        ...

    def replay_letters(
        self, letters: Collection[Letter], reason: str | None = None, rewrite: Callable[[Job], str] | None = None
    ) -> set[UUID]:
        """Replay those of *letters* that are dead still; return the ids of those that live again by this call.

        One that has lived and failed again since it was seen is left alone, and so is one whose key an unfinished job
        holds. *rewrite* makes the new payload, of the job as it is in the transaction that replays it.
        """
        ...

    def discard_letters(self, letters: Collection[Letter], reason: str | None = None) -> set[UUID]:
        """Make cancelled jobs of those of *letters* that are dead still; return their ids. They stay in history."""
        ...


class Sweeps(Protocol):
    """For the loops that any number of nodes may run at the same time."""

    def promote(self, limit: int = 1_000, ahead: timedelta = timedelta(0)) -> Promoted:
        """Make up to *limit* jobs ready whose time has come, or comes within *ahead*, and say when to come back."""
        ...

    def expire(self, limit: int = 1_000) -> Expired:
        """End up to *limit* jobs that have not started in the time that they had, and say when to come back.

        No claim takes them any more, ended or not.
        """
        ...

    def rerank(self) -> int:
        """Rank the jobs of queues anew whose ageing was changed, where that is not done yet; return how many queues."""
        ...

    def fire(self, node: str, new_ids: Callable[[int], list[UUID]], limit: int = 1_000) -> Fired:
        """Make jobs of the ticks that are due, of up to *limit* schedules, and say when to come back.

        Each tick is recorded in the transaction that makes its job, whatever becomes of it, and once only.
        """
        ...

    def find_overdue(self) -> list[Overdue]:
        """Return the schedules that have had no success for too long, each once until it has one."""
        ...

    def alert(self, node: str, limit: int = 100) -> Alerted:
        """Look at up to *limit* alerts whose time has come, and say when to come back.

        Of all nodes one looks at each. What is to be told of a change is left in the transaction that writes it.
        """
        ...

    def sample(self) -> timedelta:
        """Take note of how many jobs are ready and for how long, and say when to come back.

        Of all nodes one looks in each minute. What is older than any history goes.
        """
        ...

    def release(self, limit: int = 500) -> Released:
        """Let jobs go on that wait for one of up to *limit* limits, where there is room, and say when to come back.

        Slots that a settle gives back it gives on by itself: this is for tokens, which come with time, and for what a
        crash may have left. Likewise for jobs that wait for others: their parents set them free as they end, and this
        is for what follows from that in turn.
        """
        ...

    def reap(self) -> int:
        """Take back the jobs of sessions whose lease has ended; return how many.

        Each counts as a loss. A job that was lost too often ends as failed.
        """
        ...

    def prune(self, age: timedelta, tell: Callable[[int], None] | None = None) -> int:
        """Remove finished jobs that no rule for retention keeps any longer; return how many.

        Those that no rule covers go when their day of finishing (in UTC) ended more than *age* ago, and so do those of
        rules that say no age. *tell* is called with each number of jobs that have gone. What is kept of a job goes with
        it, or with its day. Any number of nodes may do so at the same time.
        """
        ...

    def prunable(self, age: timedelta) -> list[Prunable]:
        """Return what `prune` would remove now, by rule, the most precise first; that of jobs under no rule is last.

        It looks at all that would go: not for a hot path.
        """
        ...


class Schedules(Protocol):
    """For whoever makes schedules, and whoever wants to know what they did."""

    def put_schedules(self, schedules: Sequence[NewSchedule], node: str = "") -> None:
        """Store *schedules*, all or none. One whose id is known is defined anew, and stays where it stands.

        It goes on with its next tick, paused or not, unless another trigger, start or end says otherwise; what was due
        by the old ones is on record as missed. *node* is who says so.
        """
        ...

    def schedules(
        self, after: str = "", limit: int = 1_000, origin: Origin | None = None, team: str | None = None
    ) -> list[Schedule]:
        """Return up to *limit* schedules, of one origin and *team* or of any, in the order of their ids.

        Pass the last one's id as *after* for more.
        """
        ...

    def coming_schedules(self, limit: int = 10, team: str | None = None) -> list[Schedule]:
        """Return the *limit* schedules, of a *team* or of any, that are to be looked at next, the first one first.

        Those that are paused, have ended, or wait for a job of theirs are none of them.
        """
        ...

    def get_schedules(self, ids: Collection[str]) -> dict[str, Schedule]:
        """Return the schedules with these ids; unknown ids are left out."""
        ...

    def pause_schedules(self, ids: Collection[str], by: str = "", reason: str | None = None) -> set[str]:
        """Hold schedules until they are resumed; return the ids that are known. Jobs that they made go on.

        Who says so, and why, is kept until then.
        """
        ...

    def resume_schedules(self, ids: Collection[str], node: str) -> set[str]:
        """Let schedules go on with their next tick; return the ids that are known. What has passed is skipped."""
        ...

    def remove_schedules(self, ids: Collection[str], node: str = "") -> set[str]:
        """Remove schedules; return the ids that were known. Their jobs and their history stay.

        What was due or waited is on record as missed or skipped.
        """
        ...

    def trigger_schedule(self, schedule_id: str, job_id: UUID, node: str) -> bool:
        """Make a job of a schedule out of turn, whether it is paused or not; return False when it is not known."""
        ...

    def backfill(self, schedule_id: str, ticks: Mapping[datetime, UUID], node: str) -> list[UUID]:
        """Make jobs of past ticks, with these ids, and return those that were made.

        A tick that is a job already is left alone, and so are all when the schedule is not known.
        """
        ...

    def ticks(self, schedule_id: str, before: datetime | None = None, limit: int = 50) -> list[TickRecord]:
        """Return what became of ticks, the latest first; pass the last one's time as *before* for more."""
        ...


class Queues(Protocol):
    """For whoever rules queues, fleet-wide."""

    def pause_claims(self, wanted: NewPause) -> Pause:
        """Let nobody claim from a queue, or claim jobs of a task, until `resume_claims`. What runs goes on.

        Every claim that begins after this returned looks at it by itself, so no message can be lost.
        """
        ...

    def resume_claims(self, kind: Pausable, name: str) -> bool:
        """Take a pause back, and return whether there was one."""
        ...

    def pauses(self) -> list[Pause]:
        """Return what is paused: queues first, by name."""
        ...

    def set_ageing(self, name: str, ageing: timedelta | None) -> None:
        """Make each point of priority worth so much waiting time in a queue; None makes priority strict again.

        Its unfinished jobs are ranked anew, in batches. What others enqueue at the very same time may be ranked as
        before, until `rerank` finds it. When the caller dies half-way, `rerank` goes on.
        """
        ...

    def give_queue(self, name: str, team: str | None) -> None:
        """Make a queue the *team's* own, by its name; None makes it everybody's."""
        ...

    def queue_owners(self) -> dict[str, str]:
        """Return the names of the teams to whom queues belong, by the names of these."""
        ...

    def queues(self, team: str | None = None, *, quick: bool = False) -> list[Queue]:
        """Return the queues of which there is something to tell, by name.

        They have unfinished jobs, are paused, have ageing on, are a team's, or are served by a worker that is alive.
        For a *team*, by its name, those of others are left out, and only its own jobs are counted.

        It counts rows: not for a hot path. When it is to be *quick*, it counts up to so many that this takes no time,
        and says in which states there are more; how long the oldest has been ready is told by those that come first.
        """
        ...


class Limits(Protocol):
    """For whoever looks after limits, fleet-wide. They are called what people call them."""

    def limits(self, name: str | None = None) -> list[LimitStatus]:
        """Return the limits that jobs have come to lately, or the one called *name*, by their keys; no breakers.

        It counts rows: not for a hot path.
        """
        ...

    def release_limit(self, name: str) -> int:
        """Make all jobs ready that wait for a limit, in batches, and return how many did.

        Each is judged again when it is claimed. Those of paused queues and tasks stay.
        """
        ...


class Breakers(Protocol):
    """For whoever rules breakers, fleet-wide. They are called what people call them."""

    def trip_breaker(self, wanted: Trip) -> BreakerStatus:
        """Open a breaker for a while, whatever it is now, and return how it stands. Jobs that run go on."""
        ...

    def reset_breaker(self, name: str, *, all_at_once: bool = False) -> bool:
        """Close a breaker, and return whether it was open or half-open.

        Jobs that wait for it go on as probes do, the first at once: all together might be what it opened for. They all
        go on if *all_at_once* says so.
        """
        ...

    def breakers(self, name: str | None = None) -> list[BreakerStatus]:
        """Return the breakers of which there is something to tell, or the one called *name*, by their keys.

        It counts rows: not for a hot path.
        """
        ...


class Samples(Protocol):
    """For workers that have counted what they settled, and whoever looks back."""

    def add_counts(self, counts: Mapping[Place, Counts]) -> None:
        """Add what was counted to the spans in which now lies. What may have been added already is not added again."""
        ...

    def history(self, over: str, team: str | None = None, queue: str | None = None) -> History:
        """Return what is known of the last 1h, 24h or 7d, span by span, also where that is nothing.

        It is about the jobs of *team*, by its name, and those of *queue*, or about all.
        """
        ...


class Alerts(Protocol):
    """For whoever says what people should be told of. Ids are the names that alerts have among those of all teams."""

    def put_alert(self, new: NewAlert) -> None:
        """Store an alert. One whose id is known is defined anew, and stands as it did until the next look, at once."""
        ...

    def alerts(self, alert_id: str | None = None, scope: str | None = None) -> list[Alert]:
        """Return all alerts, or the one with this id, or those of the team that *scope* names, in the order of ids."""
        ...

    def remove_alert(self, alert_id: str) -> bool:
        """Remove an alert, and return whether there was one. Nobody is told that it no longer fires."""
        ...


class Retention(Protocol):
    """For whoever says how long finished jobs are kept, fleet-wide."""

    def set_retention(self, rule: RetentionRule) -> None:
        """Store a rule, in place of one that covers the same."""
        ...

    def retention(self) -> list[RetentionRule]:
        """Return all rules, the most precise first."""
        ...

    def remove_retention(self, covers: Covers) -> bool:
        """Take back the rule that covers just that, and return whether there was one."""
        ...


class Secrets(Protocol):
    """What teams keep secret, sealed. The store can't open it."""

    def put_secret(self, secret: SealedSecret, by: str) -> None:
        """Keep *secret* in place of one of the same team and name, as *by* says."""
        ...

    def secrets(self, team: str | None = None) -> list[Secret]:
        """Return what may be known of the secrets of *team*, or of all, by team and name."""
        ...

    def sealed_secrets(self, names: Collection[tuple[str, str]]) -> list[SealedSecret]:
        """Return the secrets with these teams and names; those that are not there are left out."""
        ...

    def outdated_secrets(self, key_id: str, team: str | None = None) -> list[SealedSecret]:
        """Return the secrets of *team*, or of all, that are sealed with another key than *key_id*."""
        ...

    def reseal_secret(self, before: SealedSecret, sealed: str) -> None:
        """Keep a secret *sealed* in another way, unless it is not as it was *before*."""
        ...

    def remove_secret(self, team: str, name: str) -> bool:
        """Forget a secret; return whether it was there."""
        ...


class Notifies(Protocol):
    """For whoever says whom a team wants to be told of its jobs. Teams are called by their names."""

    def put_rule(self, team: str, rule_id: str, channel: Channel) -> Rule:
        """Have *channel* told of all jobs and schedules of *team*, and return that as a rule.

        One whose id is known is defined anew. A webhook that names no secret keeps the one it had if it leads to the
        same host, and has none elsewhere. Settles of other processes come to know of a first rule within a second.
        """
        ...

    def rules(self, team: str | None = None, rule_id: str | None = None) -> list[Rule]:
        """Return the rules of *team*, or of all, or the one with this id, by team and id."""
        ...

    def remove_rule(self, team: str, rule_id: str) -> bool:
        """Remove a rule; return whether it was there."""
        ...


class Workflows(Protocol):
    """For whoever looks at workflows, and at what jobs returned."""

    def members(self, workflow: UUID, after: UUID | None = None, limit: int = 1_000) -> list[Job]:
        """Return members of a workflow, unfinished or finished, oldest first; pass the last one's id for more."""
        ...

    def unfinished_members(self, workflow: UUID, limit: int) -> list[Job]:
        """Return up to *limit* members of a workflow that have not ended, those last that wait for others."""
        ...

    def member_counts(self, workflows: Collection[UUID]) -> dict[UUID, dict[JobState, int]]:
        """Return how many members of each workflow are in which state. It counts rows."""
        ...

    def workflows(self, before: UUID | None = None, limit: int = 50, team: str | None = None) -> list[Job]:
        """Return workflows that are members of none, newest first; pass the last one's id as *before* for more.

        They are those of a *team*, by its name, or of all.
        """
        ...

    def results(self, ids: Collection[UUID], keys: Keyring | None = None) -> dict[UUID, str]:
        """Return what jobs returned that succeeded, as JSON; the others are left out.

        That of a workflow is put together from those of its members. What is sealed is opened with *keys*.
        """
        ...


class Tokens(Protocol):
    """For whoever lets others in."""

    def create_token(self, new: NewToken, lasting: timedelta | None = None) -> Token:
        """Store a token, which expires after *lasting* by the database's clock, or never."""
        ...

    def verify_token(self, token_id: str, digest: str) -> Token | None:
        """Return the token with this id if its secret has this digest, and it is neither revoked nor expired.

        It takes as long to say so of one that is not known as of one whose secret is another. That it was used is
        noted, once a minute at most.
        """
        ...

    def revoke_token(self, token_id: str) -> Token | None:
        """Let nobody in with this token from now on; return None when it is not known."""
        ...

    def get_token(self, token_id: str) -> Token | None:
        """Return the token with this id; None when it is not known."""
        ...

    def tokens(self) -> list[Token]:
        """Return all tokens, also those that were revoked or have expired, oldest first."""
        ...


class Teams(Protocol):
    """For whoever says what teams may have. They are called by their names, the default team too."""

    def set_team(self, name: str, quotas: Quotas) -> Team:
        """Say what a team may have; what is left out stays as it is."""
        ...

    def teams(self, name: str | None = None) -> list[Team]:
        """Return the teams of which something was said, or the one called *name*, by name."""
        ...

    def remove_team(self, name: str) -> bool:
        """Forget what was said of a team; return whether anything was."""
        ...

    def admit_team(self, name: str, jobs: int = 0, schedules: int = 0) -> None:
        """Raise QuotaExceeded if the team may not have so many more now; otherwise they are counted by its rate.

        A rate is exact. Pending jobs are counted up to the quota, so the larger that is, the longer it takes; those of
        the default team among some of all jobs.
        """
        ...


class Audits(Protocol):
    """For whoever wants to know later who asked for what."""

    def record_audit(self, entries: Sequence[Entry]) -> None:
        """Put *entries* at the end of the log, all or none, and once only, also when a reply is lost."""
        ...

    def audit(self, team: str | None = None, before: int | None = None, limit: int = 50) -> list[Record]:
        """Return entries, of one team or of all, the last first; pass the last one's number as *before* for more."""
        ...

    def verify_audit(self) -> Verdict:
        """Look at the whole log, some at a time, and say whether it is as it was written; others may go on writing."""
        ...


class Inspects(Protocol):
    """For whoever wants to know."""

    def now(self) -> datetime:
        """Return the time by the clock that decides what is due."""
        ...

    def jobs_ahead(self, job_id: UUID, most: int, tasks: Collection[str] | None = None) -> int:
        """Return how many jobs would be claimed before a ready job, counted up to *most*.

        Those of *tasks* count, or of any when it is None.
        """
        ...

    def waiting_ahead(self, job_id: UUID, most: int) -> int:
        """Return how many jobs wait for the same limit and come before a blocked job, counted up to *most*."""
        ...

    def pace(self, queue: str) -> timedelta | None:
        """Return the time from one finished job of a queue to the next, as it was lately.

        None when too few have finished to tell. The size of the history does not matter: only the newest jobs of all
        queues are looked at.
        """
        ...

    def limit(self, key: str) -> Standing | None:
        """Return how the limit with this key stands; None when no job has come to it lately."""
        ...

    def slot_holders(self, key: str, limit: int = 20) -> list[UUID]:
        """Return up to *limit* running jobs that have a slot of the limit with this key."""
        ...

    def get(self, ids: Collection[UUID]) -> dict[UUID, Job]:
        """Return the jobs with these ids, unfinished or finished; unknown ids are left out."""
        ...

    def page(self, match: JobFilter | None = None, *, before: UUID | None = None, limit: int = 50) -> list[Job]:
        """Return up to *limit* jobs, newest first; pass the last one's id as *before* for the next page.

        Where few fit, all jobs are looked through, some at a time, however long that takes.
        """
        ...

    def look(self, match: JobFilter | None = None, *, before: UUID | None = None, limit: int = 50) -> JobPage:
        """Return up to *limit* jobs likewise, from among so many of the newest as can be looked at in no time.

        So there may be fewer, or none, though older ones fit: the page says where to go on.
        """
        ...

    def lags(self) -> Lags:
        """Return how late the sweeps are that make jobs ready and fire schedules; nothing when they are in time."""
        ...

    def changes(self, since: datetime, until: datetime | None = None, limit: int = 1_000) -> list[Change]:
        """Return what happened to jobs since then, up to *limit* changes of each kind, the newest ones, in order.

        Jobs are new by their ids, which begin with the time of whoever made them; all else goes by the database's.
        Those made after *until* are left out: they would stand before all others until that clock has come there.
        A job that is held back or let go on by a person is not among them.
        """
        ...

    def counts(self) -> dict[str, dict[JobState, int]]:
        """Return the number of unfinished jobs by queue and state. It counts rows: not for a hot path."""
        ...

    def attempts(self, job_id: UUID) -> list[Attempt]:
        """Return the attempts of a job, oldest first, the running one last."""
        ...


class Wakes(Protocol):
    """For loops that would rather sleep."""

    def listen(self, topics: Collection[str]) -> Listener:
        """Return a listener for *topics*, of which any number may be mixed.

        The name of a queue is heard when jobs of that queue may have become ready, `database.DUE` when a job may have
        become due sooner than was known, `database.FIRE` when a schedule may have, `database.RELEASE` when a job waits
        for a limit, and `database.WISH` when a person wants something of a running job.
        """
        ...


class Store(
    Enqueues,
    Claims,
    Settles,
    Journals,
    Steps,
    Signals,
    Sessions,
    Controls,
    DeadLetters,
    Sweeps,
    Schedules,
    Queues,
    Limits,
    Breakers,
    Samples,
    Alerts,
    Retention,
    Secrets,
    Notifies,
    Workflows,
    Tokens,
    Teams,
    Audits,
    Inspects,
    Wakes,
    Protocol,
):
    """All of it, and the upkeep."""

    def migrate(self) -> list[Migration]:
        """Bring the schema up to date; return what was applied. Raises SchemaNewer when it is ahead of the code."""
        ...

    def version(self) -> int:
        """Return the schema version of the database, 0 when it was never migrated."""
        ...

    def check(self) -> None:
        """Raise a StoreError if the database does not answer, or has other tables than this version needs."""
        ...

    def probe(self) -> Probe:
        """Find out what the database gives, for `doctor`."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
