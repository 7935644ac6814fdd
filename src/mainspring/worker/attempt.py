"""The worker's side of a context: what an attempt says is written soon, or together with its transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from mainspring.errors import LeaseLost
from mainspring.model.job import Job
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store import Store
from mainspring.worker.executors.executor import Host
from mainspring.worker.held import Held
from mainspring.worker.session import WorkerSession

T = TypeVar("T")


class RecordingAttempt(ABC):
    """What attempts have in common, wherever they are made: the same words are kept in the same way."""

    def __init__(self, job: Job, store: Callable[[], Store]) -> None:
        """*store* is asked for when there is a transaction or a step, for in a child process it may not be open yet."""
        self._job = job
        self._store = store
        self._within: list[LogLine] | None = None
        self._said_something = False

    @abstractmethod
    def stop(self) -> BaseException | None:
        """Return why the attempt should end, or None."""

    @abstractmethod
    def say(self, entry: LogLine | Progress, *, keep: bool) -> None:
        """Tell the worker of *entry*, and have it written if it is to *keep* it."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until what the worker is to keep is written."""

    @abstractmethod
    def succeeded(self) -> None:
        """Tell the worker that the job's success is recorded already."""

    def record(self, entry: LogLine | Progress) -> None:
        if self._within is None:
            self._said_something = True
            self.say(entry, keep=True)
        elif isinstance(entry, LogLine):
            self._within.append(entry)
            self.say(entry, keep=False)

    def with_store(self, work: Callable[[Store], T]) -> T:
        return work(self._store())

    @contextmanager
    def transaction(self, success: Callable[[], Succeeded]) -> Iterator[Any]:
        job = self._job
        with self._block(lambda lines: self._store().transaction(lambda: settle(job, success()), lines)) as connection:
            yield connection
        self.succeeded()

    @contextmanager
    def step_transaction(self, name: str, result: str) -> Iterator[Any]:
        job = self._job
        step = name, result
        with self._block(lambda lines: self._store().step_transaction(job.id, job.fence, step, lines)) as connection:
            yield connection

    @contextmanager
    def _block(self, lend: Callable[[Sequence[LogLine]], AbstractContextManager[Any]]) -> Iterator[Any]:
        """Let the block have the connection that *lend* gives, and keep what is said in it for its end."""
        if self._said_something:
            self.flush()  # the block may hold the only lock, and ends with a job that can't be written to
        self._within = []
        try:
            with lend(self._within) as connection:
                yield connection
        finally:
            self._within = None


class LocalAttempt(RecordingAttempt):
    """An attempt in the worker's own process, where what is not to be kept has been logged already."""

    def __init__(self, host: Host, session: WorkerSession, store: Store, held: Held) -> None:
        super().__init__(held.job, lambda: store)
        self._host = host
        self._session = session
        self._held = held

    def stop(self) -> BaseException | None:
        if self._held.stop is None and not self._session.alive:
            return LeaseLost(f"the lease under which job {self._held.job.id} ran has ended")
        return self._held.stop

    def say(self, entry: LogLine | Progress, *, keep: bool) -> None:
        if keep:
            self._host.record(entry)

    def flush(self) -> None:
        self._host.flush()

    def succeeded(self) -> None:
        self._host.succeeded(self._held)
