"""What a worker session holds: jobs claimed and not yet settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from uuid import UUID

from mainspring.errors import LeaseLost
from mainspring.model.job import Job
from mainspring.model.secret import Path
from mainspring.model.task import Task
from mainspring.worker.context import JobLog
from mainspring.worker.secrecy import OPEN

_NONE: Mapping[Path, str] = MappingProxyType({})


class Held:
    """One claimed job on its way through the worker.

    `stop` is why its attempt should end before the handler returns; None while it may go on. It is set by the
    heartbeat, the watch and the drain, and read by the handler's context. While its attempt is `frozen`, it stands
    still, and waiting for its end is in vain. It must start before `start_by` on the steady clock, if that is told.
    """

    __slots__ = (
        *("began", "claimed", "details", "frozen", "interrupt", "job", "log", "revealed", "secrecy", "secrets"),
        *("settled", "start_by", "stop", "succeeded", "task", "took"),
    )

    def __init__(self, job: Job, task: Task, start_by: float | None = None, claimed: float = 0.0) -> None:
        self.job = job
        self.task = task
        self.start_by = start_by
        self.secrets: Mapping[Path, str] = _NONE  # which stand where among the arguments
        self.revealed: str | None = None  # the payload with their values, which is told to the handler and nobody else
        self.secrecy = OPEN
        self.claimed = claimed  # when we got it, on the steady clock
        self.began = 0.0  # when its attempt did
        self.took = 0.0  # told by the executor when the attempt has ended
        self.stop: BaseException | None = None
        self.settled = False
        self.succeeded = False  # by a transaction, which settles the job before its handler ends
        self.frozen = False
        self.details: dict[str, Any] | None = None  # that its handler fills, if it has a context
        self.log: JobLog | None = None  # where what it logs is kept, once it has logged something or has a context
        # Told by the executor once the attempt runs, if it has a stronger means than asking. None says to go on.
        self.interrupt: Callable[[BaseException | None], None] | None = None

    @property
    def payload(self) -> str:
        """The arguments with which the handler is called."""
        return self.revealed or self.job.payload

    def check(self) -> None:
        """Raise what the attempt should end for, if there is anything."""
        if self.stop is not None:
            raise self.stop

    def end(self, stop: BaseException) -> None:
        """Ask the attempt to end because of *stop*; the first reason stays, unless the lease is lost."""
        if type(stop) is type(self.stop):
            return  # every beat brings the same wish until it is granted
        if self.stop is None or isinstance(stop, LeaseLost):
            self.stop = stop
        self._tell(stop)

    def go_on(self) -> None:
        """Take the reason back."""
        self.stop = None
        self._tell(None)

    def _tell(self, stop: BaseException | None) -> None:
        interrupt = self.interrupt  # read once: the attempt may end meanwhile
        if interrupt is not None:
            interrupt(stop)


current: ContextVar[Held | None] = ContextVar("mainspring_attempt", default=None)
"""The attempt whose handler runs in this context. What the handler starts is part of it if it copies the context."""


ABOUT = ("job_id", "task", "attempt")


def about(job: Job) -> dict[str, object]:
    """Return what says of a record of logging which attempt it is about, for its `extra`."""
    return dict(zip(ABOUT, (str(job.id), job.task, job.attempt), strict=True))


class Holding:
    """All that the session holds, oldest first. Each call is one operation on a dict, so threads need no lock.

    Not by job id, which is slow to hash and looked for only now and then. A job that was given back and claimed anew
    may be there twice for a moment.
    """

    def __init__(self) -> None:
        self._held: dict[Held, None] = {}

    def add(self, taken: Iterable[Held]) -> None:
        self._held.update(dict.fromkeys(taken))

    def drop(self, held: Held) -> None:
        self._held.pop(held, None)

    def __contains__(self, held: Held) -> bool:
        return held in self._held

    def all(self) -> list[Held]:
        return list(self._held)

    def by_id(self) -> dict[UUID, Held]:
        return {held.job.id: held for held in self.all()}
