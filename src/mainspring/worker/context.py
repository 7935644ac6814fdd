"""Context: what a handler can know of its attempt, and say about it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from mainspring.errors import InvalidValue, StepResultRefused, StoreError, Suspension
from mainspring.model.duration import Duration
from mainspring.model.graph import Addable, Graph, Node
from mainspring.model.job import Job, NewJob
from mainspring.model.journal import LogLine, Progress
from mainspring.model.outcome import Succeeded
from mainspring.model.payload import encode_result
from mainspring.model.redact import Redactor
from mainspring.model.text import cut, shortened
from mainspring.store import Store
from mainspring.worker.durable import Call, Durable
from mainspring.worker.failure import Redact, traceback_of
from mainspring.worker.secrecy import OPEN, Secrecy

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_MOST_LINES = 10_000
_MOST_CHARACTERS = 1_000_000
_LONGEST_LINE = 10_000
_LONGEST_NOTE = 1_000


class Attempt(Protocol):
    """The worker's side of a context, in the same process or at the other end of a socket."""

    def stop(self) -> BaseException | None:
        """Return why the attempt should end, or None."""
        ...

    def record(self, entry: LogLine | Progress) -> None:
        """Have *entry* written, soon and under the attempt's fence."""
        ...

    def transaction(self, success: Callable[[], Succeeded]) -> AbstractContextManager[Any]:
        """Return what commits all that is done on its connection together with the job's *success*."""
        ...

    def step_transaction(self, name: str, result: str) -> AbstractContextManager[Any]:
        """Return what commits all that is done on its connection together with the record of a step."""
        ...

    def with_store(self, work: Callable[[Store], T]) -> T:
        """Call *work* with the store, and let nothing disturb it."""
        ...


class Context:
    """A handler's view of its attempt. It gets one by annotating a parameter with this class.

    What it puts into `details`, a little JSON, is kept with the attempt whatever that comes to.
    """

    def __init__(
        self,
        job: Job,
        attempt: Attempt,
        deadline: datetime | None,
        *,
        awaits: bool = False,
        secrecy: Secrecy = OPEN,
    ) -> None:
        """*awaits* tells whether the handler is a coroutine function."""
        self._job = job
        self._attempt = attempt
        self._awaits = awaits
        self._succeeded = False
        self._lent = False  # whether a transaction block is open
        self._graph: Graph | None = None
        self._secrecy = secrecy
        self._durable = Durable(job, attempt, self._check_going_on, secrecy)
        self.deadline = deadline
        self.details: dict[str, Any] = {}
        self.log = JobLog(job, attempt, secrecy)

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._job.attempt

    @property
    def fence(self) -> int:
        """A number that grows with every claim: an outside system that keeps the largest can refuse a stale worker."""
        return self._job.fence

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt of this job, for outside systems that do a thing once for each key."""
        return str(self._job.id)

    @property
    def tick(self) -> datetime | None:
        """The nominal time for which a schedule made this job, however late it runs; None if none did."""
        return self._job.tick

    @property
    def notify(self) -> str | None:
        """Whom the job names to be told of it, as JSON; of a notification, whom it tells."""
        return self._job.notify

    @property
    def redact(self) -> Redactor:
        """What replaces the values of the secrets that the attempt was given, as in all that is kept of it."""
        return self._secrecy.redact

    @property
    def left_undone(self) -> Suspension | StepResultRefused | None:
        """What should have ended the attempt, where its handler has caught it and returned all the same."""
        return self._durable.left_undone

    @property
    def added(self) -> tuple[NewJob, ...]:
        """The jobs that come with the success of this attempt."""
        if self._graph is None:
            return ()
        self._secrecy.check_jobs(self._graph.jobs)
        return tuple(self._graph.jobs)

    def add(self, task: Addable, /, *args: Any, **kwargs: Any) -> Node:
        """Have a job of *task* enqueued with the success of this attempt, and not otherwise.

        It becomes a member of the workflow that this job is a member of, if it is. Where what this returns is an
        argument of another that is added, that one comes after it, and gets its result.
        """
        return self._additions().add(task, *args, **kwargs)

    def map(self, task: Addable, items: Any, /, *args: Any, **kwargs: Any) -> Node:
        """Have a job of *task* enqueued for each of *items*, likewise; the result is the list of all their results."""
        return self._additions().map(task, items, *args, **kwargs)

    def _additions(self) -> Graph:
        if self._succeeded:
            raise StoreError("the job has succeeded with its transaction block, so nothing can come after that")
        if self._durable.running() is not None:
            raise InvalidValue(
                "expected jobs to be added outside of steps, which later attempts skip, and the jobs with them; "
                "return from the step what is to be added, and add it then"
            )
        if self._graph is None:
            self._graph = Graph(self._job.workflow, self._job.id, whole=False)
        return self._graph

    def check(self) -> None:
        """Raise if the attempt should end: the job was cancelled or paused, its time is up, or the lease is lost."""
        stop = self._attempt.stop()
        if stop is not None:
            # Without the traceback of last time: one that is raised again and again would grow with every check.
            raise stop.with_traceback(None)

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far the work is. Also a check, so that long loops can be stopped."""
        if not all(isinstance(number, int | float) and number >= 0 for number in (done, 0 if total is None else total)):
            raise InvalidValue(
                f"expected progress to be numbers of at least 0, got: {shortened(done)} of {shortened(total)}"
            )
        note = None if note is None else cut(self._secrecy.redact(str(note)), _LONGEST_NOTE)
        self._attempt.record(Progress(job_id=self._job.id, fence=self._job.fence, done=done, total=total, note=note))
        self.check()

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]: ...
    @overload
    def step(self, name: str, function: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> Any: ...

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call *function* once and keep what it returns: later attempts of the job get that, and don't call it.

        In a coroutine handler, await it; *function* may be a coroutine function there, and one that is not runs in a
        thread. Its result comes back as JSON carries it, in the first attempt too, converted by its annotation.

        If the worker dies within *function*, or before its result is written, the next attempt calls it again. Rows
        that it writes with `ctx.transaction()` are committed together with the record of the step, and so once.
        """
        call = Call(function, args, kwargs)
        return self._durable.astep(name, call) if self._on_loop() else self._durable.step(name, call)

    def sleep(self, duration: Duration, name: str | None = None) -> Any:
        """Sleep for so long, were it for months, and hold no worker meanwhile; in a coroutine handler, await it.

        The attempt ends here, and costs none; when the time has come the handler is called again from its beginning,
        and this returns at once. A sleep is known by its *name*, or else by its length and its number among equals.
        """
        return self._done(self._durable.sleep(duration, name))

    def wait_signal(self, name: str, timeout: Duration | None = None) -> Any:
        """Return the value of a signal that is sent to this job, in a coroutine handler when it is awaited.

        One that has come already is taken at once, the oldest first. Otherwise this waits as `sleep` does, and returns
        None if none has come after *timeout*.
        """
        return self._done(self._durable.wait_signal(name, timeout))

    @contextmanager
    def transaction(self, result: object = None) -> Iterator[Any]:
        """Commit what the block does on its connection together with the job's success, or neither.

        The connection is the driver's own, to the database that holds the jobs. The job succeeds with *result*
        when the block ends, so let it be the last thing that the handler does: what is logged later is not kept.
        Keep it short on SQLite, which has one writer at a time, and do without `await` in it there: another coroutine
        that writes meanwhile fails, because to wait would hold up the loop, and so the block that it waits for.

        Inside the function of a step it is that step which is recorded with the block, and *result* is the step's,
        whatever the function returns.
        """
        running = self._durable.running()
        if self._succeeded:
            raise StoreError("the job has succeeded with its first transaction block, so there can't be a second one")
        if running is not None and running.recorded is not None:
            raise StoreError(f"step {running.name!r} was recorded with its first transaction block; it can't have two")
        self.check()
        encoded = encode_result(result)
        if running is None:
            kept = self._secrecy.result(encoded)
            with self._attempt.transaction(lambda: self._success(kept)) as connection, self._lending():
                yield connection
            self._succeeded = True
        else:
            shown = self._secrecy.shown(encoded)
            kept = self._secrecy.closed_step(running.name, shown)
            with self._attempt.step_transaction(running.name, kept) as connection, self._lending():
                yield connection
            running.recorded = shown

    def _success(self, result: str) -> Succeeded:
        return Succeeded(result, self.added, self._secrecy.details(self.details))

    @contextmanager
    def _lending(self) -> Iterator[None]:
        self._lent = True
        try:
            yield
        finally:
            self._lent = False

    def _check_going_on(self) -> None:
        if self._succeeded:
            raise StoreError("the job has succeeded with its transaction block, so nothing can come after that")
        if self._lent:
            # Kept apart from what the block writes, it would stay when that is rolled back.
            raise StoreError(
                "a step, a sleep or a wait can't stand inside a transaction block; put the block into a step"
            )
        self.check()

    def _on_loop(self) -> bool:
        """Return whether whoever calls can await: the handler, and not what it has left to a thread."""
        if not self._awaits:
            return False
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def _done(self, work: Callable[[], Any]) -> Any:
        """Do *work*, which asks the database, or return an awaitable that does."""
        return asyncio.to_thread(work) if self._on_loop() else work()


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines are kept with the job, and go to Python's logging as well.

    Calling it is short for `info`. What one attempt may write is bounded.
    """

    def __init__(self, job: Job, attempt: Attempt, secrecy: Secrecy = OPEN) -> None:
        super().__init__(logging.getLogger(f"mainspring.job.{job.task}"))
        self._job = job
        self._attempt = attempt
        self._secrecy = secrecy
        self._numbers = itertools.count(1)  # a handler may log from several threads, and no two lines share a number
        self._room = _MOST_CHARACTERS

    def __call__(self, message: object, *args: object) -> None:
        self.log(logging.INFO, message, *args)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        text = _formatted(msg, args)
        if self._secrecy.values:
            text, kwargs = self._redacted(text, kwargs)
        self.keep(level, text + _raised(kwargs.get("exc_info")))
        super().log(level, "%s", text, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave the caller's `extra` as it is, which an adapter would replace by its own."""
        return msg, kwargs

    def _redacted(self, text: str, kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return what is said without the values of secrets; what Python's logging would add to it is in the text."""
        redact = self._secrecy.redact
        told = redact(text) + _raised(kwargs.get("exc_info"), redact)
        extra = {name: redact(str(value)) for name, value in (kwargs.get("extra") or {}).items()}
        kept = {name: value for name, value in kwargs.items() if name not in ("exc_info", "extra")}
        return told, {**kept, "extra": extra} if extra else kept

    def keep_record(self, record: logging.LogRecord) -> None:
        """Keep a record that the job has left to Python's logging."""
        stack = f"\n{record.stack_info}" if record.stack_info else ""
        raised = _raised(record.exc_info, self._secrecy.redact)
        self.keep(record.levelno, f"{_message(record)}{raised}{stack}", record.name)

    def keep(self, level: int, text: str, logger: str | None = None) -> bool:
        """Keep a line with the job, and tell nobody else; return False when there is no room for another."""
        if self._room <= 0:
            return False
        text = cut(self._secrecy.redact(text), _LONGEST_LINE)
        number = next(self._numbers)
        self._room -= len(text)
        if number >= _MOST_LINES or self._room <= 0:
            self._room = 0
            text, level = "this attempt has logged too much; what follows is not kept", logging.WARNING
            logger = None
        self._attempt.record(
            LogLine(
                job_id=self._job.id,
                fence=self._job.fence,
                number=number,
                level=logging.getLevelName(level).lower(),
                message=text,
                logger=logger,
            )
        )
        return self._room > 0


def _formatted(msg: object, args: tuple[object, ...]) -> str:
    """Return the message as logging would; where that would complain and go on, return it as it was given."""
    return _message(logging.LogRecord("", 0, "", 0, msg, args, None))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a mistake in what a job says is no failure of the job
        return record.msg if isinstance(record.msg, str) else shortened(record.msg)


def _raised(exc_info: object, redact: Redact = str) -> str:
    """Return the traceback that is asked for in any of the ways that logging knows, on lines of its own."""
    error = exc_info[1] if isinstance(exc_info, tuple) and exc_info else exc_info
    if error and not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    return f"\n{traceback_of(error, redact)}" if isinstance(error, BaseException) else ""
