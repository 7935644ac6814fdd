"""A job as its caller sees it."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

import msgspec

from mainspring.client import Client
from mainspring.clock import SystemClock
from mainspring.errors import InvalidPayload, InvalidValue, JobFailed, JobNotFound, ReplayRefused, ResultNotReady
from mainspring.explain import Reason, explain
from mainspring.keys import Keyring, open_result, open_step
from mainspring.model.attempt import Attempt
from mainspring.model.duration import Duration, duration
from mainspring.model.job import Job, JobState
from mainspring.model.journal import LogEntry, LogFilter
from mainspring.model.payload import convert, encode_result
from mainspring.model.sealed import is_closed, signal_context
from mainspring.model.step import Step
from mainspring.model.text import shortened
from mainspring.model.workflow import plan_of
from mainspring.service import said_by
from mainspring.store import Store
from mainspring.store.journal import all_logs
from mainspring.twin import twin

R_co = TypeVar("R_co", covariant=True)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.25


class JobHandle(Generic[R_co]):
    """A job, seen from outside. Each call has an awaitable twin whose name begins with `a`."""

    __slots__ = ("__weakref__", "_client", "_result_type", "_seen", "id")  # they are made by the thousand

    def __init__(self, client: Client, job_id: UUID, result_type: Any = Any, seen: Job | None = None) -> None:
        self._client = client
        self._result_type = result_type
        self._seen = seen
        self.id = job_id

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def state(self) -> JobState:
        """The state it is in now: every look asks the database."""
        return self.refresh().state

    @property
    def snapshot(self) -> Job:
        """The job as it was when it was last looked at, with all its fields."""
        return self._seen or self.refresh()

    @property
    def keys(self) -> Keyring:
        """What opens its arguments and its result, if they are encrypted."""
        return self._client.keys

    def refresh(self) -> Job:
        """Look at the job again, and return it as it is."""
        self._seen = self._client.get(self.id)
        return self._seen

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait until the job has finished, and return what its handler returned.

        It is converted by the handler's annotation, or as plain as JSON has it if it is not what that promises.
        Raises JobFailed when it ended in another way, and ResultNotReady, a TimeoutError, after *timeout*.
        """
        patience = _Patience(timeout)
        while not (job := self.refresh()).state.final:
            patience.clock.sleep(patience.pause(job))
        return self._result_of(job)

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """As `result`, but it occupies a thread only while it looks.

        A loop has few threads to lend. Waits that each kept one would leave none to those that they wait for, and
        a wait that is cancelled could not end.
        """
        patience = _Patience(timeout)
        while not (job := await self.arefresh()).state.final:
            await asyncio.sleep(patience.pause(job))
        return self._result_of(job) if job.plan is None else await asyncio.to_thread(self._result_of, job)

    def cancel(self, reason: str | None = None) -> JobState:
        """Cancel it: at once when it waits, by asking its worker when it runs. Returns the state it is in then."""
        return self._controlled(self._store.cancel([self.id], reason))

    def pause(self, reason: str | None = None, *, by: str | None = None) -> JobState:
        """Hold it until `resume`: at once when it waits, by asking its worker when it runs.

        *by* is who says so: the user of this process and its host, unless told.
        """
        return self._controlled(self._store.pause([self.id], said_by(by, reason)))

    def resume(self) -> JobState:
        """Let it go on at its due time."""
        return self._controlled(self._store.resume([self.id]))

    def replay(self, reason: str | None = None) -> JobState:
        """Run it again if it failed, expired or was cancelled, with fresh counters; its history is kept.

        A job of a workflow brings that back, and those that were cancelled because of it; a workflow brings back all of
        its jobs that did not succeed. Raises ReplayRefused when it has succeeded, or can't run again: an unfinished job
        has its key, its parents do not let it, or what was done was undone. One that is about to run again already is
        left alone, so that whoever could not see the reply may ask once more.
        """
        before = self.refresh()
        if before.state is JobState.SUCCEEDED:
            raise ReplayRefused(self.id, "it has succeeded; enqueue another")
        state = self._controlled(self._store.replay([self.id], reason))
        if before.state.final and state is before.state and self.refresh().finished_at == before.finished_at:
            raise ReplayRefused(self.id, _obstacle(before))
        return state

    def attempts(self) -> list[Attempt]:
        """Return its attempts, oldest first."""
        return self._store.attempts(self.id)

    def logs(self, *, contains: str | None = None, level: str | None = None) -> list[LogEntry]:
        """Return what its attempts have logged, oldest first: all, or what *contains* a text or is of a *level* on."""
        return all_logs(self._store, self.id, LogFilter(contains=contains, level=level))

    def log_page(
        self,
        after: tuple[int, int] = (0, 0),
        limit: int = 1_000,
        *,
        contains: str | None = None,
        level: str | None = None,
    ) -> list[LogEntry]:
        """Return up to *limit* of these lines; pass the last one's fence and number as *after* for the next."""
        return self._store.logs(self.id, after, limit, LogFilter(contains=contains, level=level))

    def signal(self, name: str, value: object = None) -> None:
        """Send it a signal, which it takes with `ctx.wait_signal(name)`, now or when it comes to that.

        Raises SignalRefused when it has ended, or has too many signals that it has not taken.
        """
        encoded = encode_result(value, "the value of the signal")
        job = self.snapshot
        if is_closed(job.payload):
            encoded = self._client.keys.seal_document(encoded, signal_context(job.id, job.task, name))
        (signal_id,) = self._client.new_ids(1)
        self._store.signal(self.id, name, encoded, signal_id)

    def steps(self) -> list[Step]:
        """Return the steps that it has done, and the sleep or signal that it waits for, in the order of time."""
        job, keys = self.snapshot, self.keys
        return [open_step(keys, job, step) for step in self.stored_steps()]

    def stored_steps(self) -> list[Step]:
        """Return the same as they are stored: the results of an encrypted job are sealed."""
        return self._store.steps(self.id)

    def explain(self) -> list[Reason]:
        """Return every reason why it does not run, the first to lift first; nothing when it may run or has."""
        store = self._client.store
        return explain(store, self.refresh(), store.now(), None if self._client.scope is None else self._client.sees)

    arefresh = twin(refresh)
    acancel = twin(cancel)
    apause = twin(pause)
    aresume = twin(resume)
    areplay = twin(replay)
    aattempts = twin(attempts)
    alogs = twin(logs)
    alog_page = twin(log_page)
    asignal = twin(signal)
    asteps = twin(steps)
    aexplain = twin(explain)

    @property
    def _store(self) -> Store:
        """The store, once it is known that the job is there for the client; whose it is never changes."""
        if self._client.scope is not None and self._seen is None:
            self.refresh()
        return self._client.store

    def _controlled(self, states: dict[UUID, JobState]) -> JobState:
        if self.id not in states:
            raise JobNotFound(self.id)
        return states[self.id]

    def _result_of(self, job: Job) -> R_co:
        if job.state is not JobState.SUCCEEDED:
            raise JobFailed(job.id, job.state, _why(job))
        if job.plan is None:
            told = open_result(self.keys, job)
        else:
            told = self._client.store.results([job.id], self.keys).get(job.id, "null")
        value = msgspec.json.decode(told)
        try:
            return cast("R_co", convert(value, self._result_type, "the result"))
        except InvalidPayload:
            return cast("R_co", value)  # the work is done, and this is the only way to have what came of it


def _why(job: Job) -> str | None:
    """Return why *job* ended without a result. What failed in an earlier life is not it, if a person has ended this."""
    if job.failure is not None and (job.state is JobState.FAILED or job.reason is None):
        return job.failure.message
    return job.reason


def _obstacle(job: Job) -> str:
    """Return why *job* could not be replayed, as far as can be told from outside."""
    plan = plan_of(job)
    if plan is not None and plan.undo:
        return "what its jobs did was undone; start another"
    if job.key:
        return f"an unfinished job has its key {shortened(job.key)}; let that end first"
    return "a job that it comes after, or its workflow, does not let it; replay that"


def id_of(job: UUID | str) -> UUID:
    """Return the id that *job* is."""
    try:
        return job if isinstance(job, UUID) else UUID(job)
    except (ValueError, AttributeError, TypeError):  # the last two for what is no text
        raise InvalidValue(f"expected the id of a job, a UUID, got: {shortened(job)}") from None


class _Patience:
    """How long to wait between looks at a job: shortly at first, then longer and longer, and not for ever."""

    def __init__(self, timeout: Duration | None) -> None:
        self.clock = SystemClock()
        seconds = math.inf if timeout is None else duration(timeout, "timeout").total_seconds()
        self._give_up = self.clock.steady() + seconds
        self._pause = _FIRST_PAUSE

    def pause(self, job: Job) -> float:
        """Return the seconds until the next look at *job*; raise ResultNotReady when there is no time for one."""
        left = self._give_up - self.clock.steady()
        if left <= 0:
            raise ResultNotReady(job.id, job.state)
        pause = self._pause
        self._pause = min(_LONGEST_PAUSE, pause * 1.3)
        return min(pause, left)
