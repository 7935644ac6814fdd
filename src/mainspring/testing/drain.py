"""Drain: run what is due in the thread of the test, with no worker, no server and no sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from mainspring.app import Mainspring
from mainspring.builtin.command import COMMAND
from mainspring.builtin.http import HTTP
from mainspring.errors import CancelRequested, JobNotFound, KeyTaken, LeaseLost, PauseRequested, Stop, TimeExpired
from mainspring.job_handle import JobHandle
from mainspring.model.job import Job, JobState, Wish
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Outcome, Returned, Succeeded
from mainspring.model.session import NewSession
from mainspring.model.task import Executor, Task
from mainspring.store import Store
from mainspring.twin import twin
from mainspring.worker.context import Context
from mainspring.worker.execute import call, ending, success
from mainspring.worker.failure import failure_of
from mainspring.worker.prepare import Means, Start, prepare
from mainspring.worker.reveal import Naming, Revealer
from mainspring.worker.secrecy import OPEN, Secrecy

T = TypeVar("T")

_NAME = "drain"

_LEASE = timedelta(hours=1)
"""Longer than a test takes, because nobody renews it, yet not for ever: the job of a test that is killed comes back."""

_LEASE_ON_A_GIVEN_CLOCK = timedelta(days=36_525)
"""Longer than any test moves its clock."""


def drain(app: Mainspring, *, limit: int = 10_000) -> list[JobHandle[Any]]:
    """Run everything that is due now, and what becomes due by that; return the jobs that ran, in the order they began.

    Queues come in the order of their names, and jobs within a queue as a worker would take them, one at a time. A job
    that fails is retried when its time has come, one that sleeps goes on when that is over, and one that a limit or a
    breaker keeps from starting when that lets it: move the clock and drain again. There is no jitter. Handlers of every
    kind run in this thread, and requests of `app.http` are sent, to where workers may send them. Jobs of tasks that
    *app* does not know stay where they are. Commands of `app.command` are for workers that allow them: one that is due
    when all others have run is an AssertionError.

    What a handler raises becomes the outcome of its attempt, as in a worker; but KeyboardInterrupt, and what a
    test runner raises to end the test, is passed on. More than *limit* attempts are an AssertionError.
    """
    _check_loop(app)
    app.schedules.sync()
    store = app.client.store
    (session,) = app.client.new_ids(1)
    lease = _LEASE if app.client.given_clock is None else _LEASE_ON_A_GIVEN_CLOCK
    store.open_session(NewSession(id=session, name=_NAME, lease=lease, tasks=_names(app)))
    ran: dict[UUID, None] = {}
    try:
        for number, start in enumerate(_due(app, session)):
            attempt = _Attempt(app, start)
            if number == limit:
                attempt.settle(Returned())
                raise AssertionError(_endless(start.job, limit))
            ran[start.job.id] = None
            _run(attempt)
    finally:
        store.close_session(session)
    _check_commands(app)
    return [app.job(job_id) for job_id in ran]


adrain = twin(drain)


def _due(app: Mainspring, session: UUID) -> Iterator[Start]:
    """Claim what is due, one by one, until nothing is; what is done about one job may make others due."""
    store = app.client.store
    found = True
    while found:
        found = False
        while store.fire(_NAME, app.client.new_ids).schedules:
            pass
        store.find_overdue()
        while _released(store) or store.promote().count or store.expire().count:
            pass
        for queue in sorted(name for name, states in store.counts().items() if JobState.READY in states):
            while jobs := store.claim(session, queue, 1, _names(app)):
                found = True
                yield from _admitted(app, _prepared(app, jobs))


def _names(app: Mainspring) -> list[str]:
    """Return the names of the tasks that run here: those of the program, which may become more, and requests."""
    return [*(task.name for task in app.tasks), HTTP.name]


def _prepared(app: Mainspring, claimed: Iterable[Job]) -> Iterator[Start]:
    """Yield those of *claimed* that are to start; the others have become other jobs, or could not."""
    client = app.client
    for job in claimed:
        task = app.tasks.get(job.task)
        (made,) = prepare(Means(client.store, client.keys, client.new_ids), [(job, task)])
        if isinstance(made, Start):
            yield made
        else:
            _settle(app.client.store, job, made, task)


def _settle(store: Store, job: Job, outcome: Outcome, task: Task) -> None:
    """Write what an attempt came to; jobs that come with it and can't be stored fail it, as in a worker."""
    try:
        store.settle([settle(job, outcome, task.retry_of(job.payload))])
    except (KeyTaken, JobNotFound) as error:
        store.settle([settle(job, Failed(failure_of(error, task.name), retryable=False))])


def _released(store: Store) -> int:
    released = store.release()
    return released.limits + released.followed


def _admitted(app: Mainspring, claimed: Iterable[Start]) -> Iterator[Start]:
    """Yield those of *claimed* that may start; the others wait for a limit or a breaker, and are not ours any more."""
    for start in claimed:
        wants = app.tasks.get(start.job.task).wants(start.job.payload)
        asking = start.job.asking(wants)
        if not wants or app.client.store.admit([(asking, wants)]):
            app.client.store.reach([asking])
            yield start._replace(job=asking)


class _Attempt:
    """The worker's side of a context, without a worker: whether to stop is asked of the database and the clock."""

    def __init__(self, app: Mainspring, start: Start) -> None:
        self._store = app.client.store
        self._keys = app.client.keys
        self._clock = app.client.clock
        self._secrets = start.secrets
        self.job = job = start.job
        self.task: Task = app.tasks.get(job.task)
        self.secrecy = Secrecy(job.id, job.task, keys=self._keys) if start.sealed else OPEN
        self.deadline = None if self.task.timeout is None else self._clock.now() + self.task.timeout
        self._settled = False
        self._lent = False
        self._unwritten: list[LogLine | Progress] = []

    def reveal(self) -> str | Failed:
        """Return the payload with the secrets that it names; or how the attempt fails, because one can't be had."""
        if not self._secrets:
            return self.job.payload
        revealer = Revealer(self._store, self._keys, self._clock)
        (made,) = revealer.reveal([Naming(self.job, self.task, self._secrets)])
        if isinstance(made, Failed):
            return made
        self.secrecy = self.secrecy.knowing(made.values)
        return made.payload

    def stop(self) -> BaseException | None:
        if self._settled:
            return None
        job = self._store.get([self.job.id]).get(self.job.id)
        if job is None or job.fence != self.job.fence or job.state is not JobState.RUNNING:
            return LeaseLost(f"job {self.job.id} is no longer ours")
        if job.wish is not None:
            return CancelRequested("cancelled") if job.wish is Wish.CANCEL else PauseRequested("paused")
        if self.deadline is not None and self._clock.now() >= self.deadline:
            return TimeExpired(f"the attempt took longer than its timeout of {self.task.timeout}")
        return None

    def record(self, entry: LogLine | Progress) -> None:
        self._unwritten.append(entry)
        if not self._lent:
            self._write()

    def with_store(self, work: Callable[[Store], T]) -> T:
        return work(self._store)

    @contextmanager
    def transaction(self, success: Callable[[], Succeeded]) -> Iterator[Any]:
        with self._block(self._store.transaction(lambda: settle(self.job, success()))) as connection:
            yield connection
        self._settled = True

    @contextmanager
    def step_transaction(self, name: str, result: str) -> Iterator[Any]:
        with self._block(self._store.step_transaction(self.job.id, self.job.fence, (name, result))) as connection:
            yield connection

    @contextmanager
    def _block(self, lent: AbstractContextManager[Any]) -> Iterator[Any]:
        # This thread can't write through the store while it has borrowed the one connection that writes.
        self._lent = True
        try:
            with lent as connection:
                yield connection
        finally:
            self._lent = False

    def settle(self, outcome: Outcome | None) -> None:
        """Write what the attempt came to, unless that is done already or can't be."""
        self._write()
        if outcome is not None and not self._settled:
            _settle(self._store, self.job, outcome, self.task)

    def _write(self) -> None:
        entries, self._unwritten = self._unwritten, []
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        self._store.record(lines, [entry for entry in entries if isinstance(entry, Progress)])


def _run(attempt: _Attempt) -> None:
    """Execute and settle *attempt*; a job whose attempt is cut short by the test runner goes back to its queue."""
    outcome: Outcome | None = Returned()
    try:
        outcome = _outcome(attempt)
    finally:
        attempt.settle(outcome)


def _outcome(attempt: _Attempt) -> Outcome | None:
    task, job = attempt.task, attempt.job
    payload = attempt.reveal()
    if isinstance(payload, Failed):
        return payload
    awaits, secrecy = task.executor is Executor.COROUTINE, attempt.secrecy
    context = Context(job, attempt, attempt.deadline, awaits=awaits, secrecy=secrecy) if task.context else None
    try:
        result = call(task, payload, context)
        if awaits:
            result = asyncio.run(result)
    except (Exception, Stop, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - an outcome like any other
        details = None if context is None else context.details
        return ending(task, error, error if isinstance(error, Stop) else None, details, secrecy)
    return success(task, result, context, secrecy)


def _check_loop(app: Mainspring) -> None:
    """Refuse to run coroutine handlers where no loop can be started for them."""
    if not app.tasks.run_by(Executor.COROUTINE):
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise AssertionError("handlers that are coroutine functions can't run inside a running loop: `await adrain(app)`")


def _check_commands(app: Mainspring) -> None:
    for job in app.jobs(task=COMMAND.name, state=JobState.READY, limit=1):
        raise AssertionError(
            f"job {job.id} is a command, and drain runs none: run it with `app.worker(commands=[...])`, which says "
            "what is allowed, or cancel it when you have seen that it was enqueued"
        )


def _endless(job: Job, limit: int) -> str:
    return (
        f"drain has run {limit:,} attempts, and more is due, next a job of {job.task!r}; do jobs enqueue each other "
        "for ever? If so many are meant, pass limit="
    )
