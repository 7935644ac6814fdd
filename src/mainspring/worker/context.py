"""Context: what a handler can know of its attempt, and say about it."""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from mainspring.errors import InvalidValue, StoreError
from mainspring.model.graph import Addable, Graph, Node
from mainspring.model.job import Job, NewJob
from mainspring.model.journal import LogLine, Progress
from mainspring.model.payload import encode_result
from mainspring.model.text import cut, shortened
from mainspring.worker.failure import traceback_of

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

    def transaction(self, result: str) -> Any:
        """Return a context manager that commits what is done on its connection together with the job's success."""
        ...


class Context:
    """A handler's view of its attempt. It gets one by annotating a parameter with this class."""

    def __init__(self, job: Job, attempt: Attempt, deadline: datetime | None) -> None:
        self._job = job
        self._attempt = attempt
        self._succeeded = False
        self._graph: Graph | None = None
        self.deadline = deadline
        self.log = JobLog(job, attempt)

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
    def added(self) -> tuple[NewJob, ...]:
        """The jobs that come with the success of this attempt."""
        return () if self._graph is None else tuple(self._graph.jobs)

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
        note = None if note is None else cut(str(note), _LONGEST_NOTE)
        self._attempt.record(Progress(job_id=self._job.id, fence=self._job.fence, done=done, total=total, note=note))
        self.check()

    @contextmanager
    def transaction(self, result: object = None) -> Iterator[Any]:
        """Commit what the block does on its connection together with the job's success, or neither.

        The connection is the driver's own, to the database that holds the jobs. The job succeeds with *result*
        when the block ends, so let it be the last thing that the handler does: what is logged later is not kept.
        Keep it short on SQLite, which has one writer at a time, and do without `await` in it there: another coroutine
        that writes meanwhile fails, because to wait would hold up the loop, and so the block that it waits for.
        """
        if self._succeeded:
            raise StoreError("the job has succeeded with its first transaction block, so there can't be a second one")
        self.check()
        with self._attempt.transaction(encode_result(result)) as connection:
            yield connection
        self._succeeded = True


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines are kept with the job, and go to Python's logging as well.

    Calling it is short for `info`. What one attempt may write is bounded.
    """

    def __init__(self, job: Job, attempt: Attempt) -> None:
        super().__init__(logging.getLogger(f"mainspring.job.{job.task}"))
        self._job = job
        self._attempt = attempt
        self._numbers = itertools.count(1)  # a handler may log from several threads, and no two lines share a number
        self._room = _MOST_CHARACTERS

    def __call__(self, message: object, *args: object) -> None:
        self.log(logging.INFO, message, *args)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        text = _formatted(msg, args)
        self._keep(level, text + _raised(kwargs.get("exc_info")))
        super().log(level, "%s", text, **kwargs)

    def _keep(self, level: int, text: str) -> None:
        text = cut(text, _LONGEST_LINE)
        if self._room <= 0:
            return
        number = next(self._numbers)
        self._room -= len(text)
        if number >= _MOST_LINES or self._room <= 0:
            self._room = 0
            text, level = "this attempt has logged too much; what follows is not kept", logging.WARNING
        self._attempt.record(
            LogLine(
                job_id=self._job.id,
                fence=self._job.fence,
                number=number,
                level=logging.getLevelName(level).lower(),
                message=text,
            )
        )


def _formatted(msg: object, args: tuple[object, ...]) -> str:
    """Return the message as logging would; where that would complain and go on, return it as it was given."""
    try:
        return logging.LogRecord("", 0, "", 0, msg, args, None).getMessage()
    except Exception:  # noqa: BLE001 - a mistake in what a job says is no failure of the job
        return msg if isinstance(msg, str) else shortened(msg)


def _raised(exc_info: object) -> str:
    """Return the traceback that is asked for in any of the ways that logging knows, on lines of its own."""
    error = exc_info[1] if isinstance(exc_info, tuple) and exc_info else exc_info
    if error and not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    return f"\n{traceback_of(error)}" if isinstance(error, BaseException) else ""
