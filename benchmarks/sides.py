"""The two sides of every comparison: the store, and whoever does the same work with the driver alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.model import lifecycle
from mainspring.model.ids import IdSource
from mainspring.model.job import NewJob
from mainspring.model.outcome import Succeeded
from mainspring.model.session import NewSession
from mainspring.store import open_store

TASK = "greet"
QUEUE = "default"
PRIORITY = 5
PAYLOAD = '{"args":["Ada"],"kwargs":{"greeting":"Hello"}}'
RESULT = "null"

_clock = SystemClock()
_ids = IdSource(lambda: microseconds(_clock.now()) // 1000, random_bits)


def new_id() -> UUID:
    return _ids.next()


class Side(Protocol):
    """What is timed: the same four calls on each side. Batches and claims are each side's own matter."""

    def batch(self, count: int) -> Any:
        """Return *count* new jobs as this side wants them. Not timed."""
        ...

    def enqueue(self, batch: Any) -> None:
        """Store a batch, durably."""
        ...

    def enqueue_one(self, batch: Any) -> None:
        """Store a batch of one, durably."""
        ...

    def claim(self, limit: int) -> Sequence[Any]:
        """Take up to *limit* jobs."""
        ...

    def settle(self, claimed: Sequence[Any]) -> int:
        """Finish claimed jobs, and return how many were."""
        ...

    def tidy(self) -> None:
        """Do what the database does by itself every now and then. Not timed."""
        ...

    def close(self) -> None:
        """Free what this side holds."""
        ...


class StoreSide:
    """Mainspring's store."""

    def __init__(self, url: str, tidy: Callable[[], None]) -> None:
        self._store = open_store(url)
        self._session = new_id()
        self._store.open_session(NewSession(id=self._session, name="benchmark", lease=timedelta(hours=1)))
        self._succeeded = Succeeded(RESULT)
        self.tidy = tidy

    def batch(self, count: int) -> list[NewJob]:
        return [NewJob(id=new_id(), task=TASK, payload=PAYLOAD, queue=QUEUE, priority=PRIORITY) for _ in range(count)]

    def enqueue(self, batch: list[NewJob]) -> None:
        self._store.enqueue(batch)

    enqueue_one = enqueue

    def claim(self, limit: int) -> Sequence[Any]:
        return self._store.claim(self._session, QUEUE, limit)

    def settle(self, claimed: Sequence[Any]) -> int:
        return len(self._store.settle([lifecycle.settle(job, self._succeeded) for job in claimed]))

    def close(self) -> None:
        self._store.close()
