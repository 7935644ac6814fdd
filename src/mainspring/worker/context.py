"""Context: what a handler can know of its attempt, and say about it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from mainspring.errors import InvalidValue
from mainspring.model.job import Job
from mainspring.model.journal import LogLine, Progress
from mainspring.model.payload import encode_result
from mainspring.model.text import cut

_MOST_LINES = 10_000
_MOST_CHARACTERS = 1_000_000
_LONGEST_LINE = 10_000


class Attempt(Protocol):
    """The worker's side of a context, in the same process or at the other end of a pipe."""

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

    def check(self) -> None:
        """Raise if the attempt should end: the job was cancelled or paused, its time is up, or the lease is lost."""
        stop = self._attempt.stop()
        if stop is not None:
            raise stop

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far the work is. Also a check, so that long loops can be stopped."""
        if (total is not None and total < 0) or done < 0:
            raise InvalidValue(f"expected progress to be at least 0, got: {done!r} of {total!r}")
        self._attempt.record(Progress(job_id=self._job.id, fence=self._job.fence, done=done, total=total, note=note))
        self.check()

    @contextmanager
    def transaction(self, result: object = None) -> Iterator[Any]:
        """Commit what the block does on its connection together with the job's success, or neither.

        The connection is the driver's own, to the database that holds the jobs. The job succeeds with *result*
        when the block ends, so let it be the last thing that the handler does: what is logged later is not kept.
        Keep it short on SQLite, which has one writer at a time.
        """
        self.check()
        with self._attempt.transaction(encode_result(result)) as connection:
            yield connection


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines are kept with the job, and go to Python's logging as well.

    Calling it is short for `info`. What one attempt may write is bounded.
    """

    def __init__(self, job: Job, attempt: Attempt) -> None:
        super().__init__(logging.getLogger(f"mainspring.job.{job.task}"))
        self._job = job
        self._attempt = attempt
        self._lines = 0
        self._room = _MOST_CHARACTERS

    def __call__(self, message: object, *args: object) -> None:
        self.log(logging.INFO, message, *args)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        text = str(msg) % args if args else str(msg)
        self._keep(level, text)
        super().log(level, "%s", text, **kwargs)

    def _keep(self, level: int, text: str) -> None:
        text = cut(text, _LONGEST_LINE)
        if self._lines >= _MOST_LINES or self._room <= 0:
            return
        self._lines += 1
        self._room -= len(text)
        if self._lines == _MOST_LINES or self._room <= 0:
            text, level = "this attempt has logged too much; what follows is not kept", logging.WARNING
        self._attempt.record(
            LogLine(
                job_id=self._job.id,
                fence=self._job.fence,
                number=self._lines,
                level=logging.getLevelName(level).lower(),
                message=text,
            )
        )
