"""Client: everything that can be done with jobs from outside a worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID
from weakref import WeakSet

from mainspring.clock import Clock, SystemClock, microseconds, random_bits
from mainspring.errors import InvalidValue, JobNotFound
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, NewJob
from mainspring.model.text import shortened
from mainspring.model.workflow import NewWorkflow
from mainspring.store import Store, open_store
from mainspring.store.protocol import OWN, JobFilter

_LARGEST_PAGE = 1_000_000


class Client:
    """A lazily opened store, with ids and handles for its jobs. Safe from any thread, and across forks."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self.url = url
        self._teller = clock
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._pid = os.getpid()
        self._lent = 0
        self._ids = IdSource(lambda: microseconds(self._clock.now()) // 1000, random_bits)
        _clients.add(self)

    @property
    def store(self) -> Store:
        """The store, opened by whoever asks first; a forked child gets one of its own."""
        with self._lock:
            if self._store is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._store = open_store(self.url, clock=self._teller)
            return self._store

    @property
    def given_clock(self) -> Clock | None:
        """The clock that takes the place of the database's own, if there is one."""
        return self._teller

    @property
    def clock(self) -> Clock:
        """The clock that takes the place of the database's own, or else this machine's."""
        return self._teller or self._clock

    @contextmanager
    def redirect(self, url: str, clock: Clock | None = None) -> Iterator[None]:
        """Use another database while the block lasts, in all threads and for all handles of this client; for tests."""
        with self._lock:
            before = self.url, self._teller, self._store, self._pid
            self.url, self._teller, self._store = url, clock, None
        try:
            yield
        finally:
            with self._lock:
                opened = self._store
                self.url, self._teller, self._store, self._pid = before
            if opened is not None:
                opened.close()

    def new_ids(self, count: int, after: UUID | None = None) -> list[UUID]:
        """Return *count* new ids, each larger than the one before it, and than *after*."""
        with self._lock:
            return self._ids.many(count, after)

    def enqueue(self, jobs: Sequence[NewJob], conn: object = OWN) -> list[UUID]:
        """Store *jobs*, all or none, and return for each the id of the job that stands for it."""
        return self.store.enqueue(jobs, conn)

    def enqueue_workflow(self, new: NewWorkflow, conn: object = OWN) -> UUID:
        """Store a workflow and its members, all or none, and return the id of the workflow that stands for it."""
        return self.store.enqueue_workflow(new, conn)

    def get(self, job_id: UUID) -> Job:
        """Return the job as it is now."""
        found = self.store.get([job_id]).get(job_id)
        if found is None:
            raise JobNotFound(job_id)
        return found

    def page(self, match: JobFilter, before: UUID | None, limit: int) -> list[Job]:
        check_limit(limit)
        return self.store.page(match, before=before, limit=limit)

    @contextmanager
    def lend(self) -> Iterator[Store]:
        """Lend the store to a worker of this process while the block lasts; until then it can't be closed."""
        store = self.store
        with self._lock:
            self._lent += 1
        try:
            yield store
        finally:
            with self._lock:
                self._lent -= 1

    def close(self) -> None:
        with self._lock:
            if self._lent:
                raise InvalidValue("a worker of this app works with its database; let it end before you close the app")
            if self._store is not None:
                self._store.close()
                self._store = None

    def after_fork(self) -> None:
        """Make ready for a forked child: the thread that had the lock, perhaps for long, is not there to let go."""
        self._lock = threading.Lock()
        self._lent = 0


def check_limit(limit: int) -> None:
    """Refuse a number of things to list that is none."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= _LARGEST_PAGE:
        raise InvalidValue(f"expected limit to be a whole number from 0 to {_LARGEST_PAGE:,}, got: {shortened(limit)}")


_clients: WeakSet[Client] = WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client.after_fork()


os.register_at_fork(after_in_child=_after_fork)
