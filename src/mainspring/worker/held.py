"""What a worker session holds: jobs claimed and not yet settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from mainspring.errors import LeaseLost
from mainspring.model.job import Job
from mainspring.model.task import Task


class Held:
    """One claimed job on its way through the worker.

    `stop` is why its attempt should end before the handler returns; None while it may go on. It is set by the
    heartbeat, the watch and the drain, and read by the handler's context. While its attempt is `frozen`, it stands
    still, and waiting for its end is in vain. It must start before `start_by` on the steady clock, if that is told.
    """

    __slots__ = ("frozen", "interrupt", "job", "settled", "start_by", "stop", "succeeded", "task")

    def __init__(self, job: Job, task: Task, start_by: float | None = None) -> None:
        self.job = job
        self.task = task
        self.start_by = start_by
        self.stop: BaseException | None = None
        self.settled = False
        self.succeeded = False  # by a transaction, which settles the job before its handler ends
        self.frozen = False
        # Told by the executor once the attempt runs, if it has a stronger means than asking. None says to go on.
        self.interrupt: Callable[[BaseException | None], None] | None = None

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

    def all(self) -> list[Held]:
        return list(self._held)

    def by_id(self) -> dict[UUID, Held]:
        return {held.job.id: held for held in self.all()}
