"""The worker's session: its lease, judged by its own steady clock, and what it holds under it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from uuid import UUID

from mainspring.clock import Clock
from mainspring.errors import LeaseLost
from mainspring.model.session import NewSession
from mainspring.model.task import Task
from mainspring.model.text import counted
from mainspring.service import node_name
from mainspring.store import Store
from mainspring.worker.held import Holding

_MARGIN = 0.1
"""The part of a lease that is given up early: room for clocks that run at different speeds, and for stopping."""

log = logging.getLogger("mainspring.worker")


class WorkerSession:
    """One session after the other: when a lease is lost, the worker begins a new one and goes on.

    Whatever must not outlive the lease asks `alive` first. The lease is counted from before a beat was sent, so it
    ends here before it ends in the database.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        new_id: Callable[[], UUID],
        lease: timedelta,
        queues: Iterable[str] = (),
        tasks: Iterable[Task] = (),
    ) -> None:
        """*queues* and *tasks* are what others may know of it: whether there is somebody for a job."""
        self._store = store
        self._queues = queues
        self._tasks = tasks
        self._clock = clock
        self._new_id = new_id
        self._length = lease
        self._lock = threading.Lock()
        self._until = 0.0
        self._unanswered = False
        self.name = node_name()
        self.id = new_id()
        self.holding = Holding()

    @property
    def beat_every(self) -> float:
        """Seconds between beats: two may fail before the lease is in danger."""
        return self._length.total_seconds() / 3

    @property
    def until(self) -> float:
        """When the lease ends, on the steady clock."""
        return self._until

    @property
    def alive(self) -> bool:
        return self._clock.steady() < self._until

    def open(self) -> None:
        """Begin a new session."""
        session = NewSession(
            id=self._new_id(),
            name=self.name,
            lease=self._length,
            queues=sorted(self._queues),
            tasks=sorted(task.name for task in self._tasks),
        )
        sent = self._clock.steady()
        self._store.open_session(session)
        with self._lock:
            self.id = session.id
            self._renew(sent)

    def beating(self) -> float:
        """Take note that a beat is sent now, and return when that is on the steady clock."""
        self._unanswered = True
        return self._clock.steady()

    def renewed(self, session: UUID, sent: float) -> None:
        """Take note of a beat that was *sent* then, and held."""
        with self._lock:
            # One that took so long that we have given the lease up is not to bring it back: handlers were told.
            if session == self.id and self.alive:
                self._renew(sent)

    def expire(self, until: float) -> None:
        """Give up the lease that ended at *until*, by our own clock. Called by whoever sees it first."""
        # Beats go out often enough: when none has, not even the thread that sends them was running.
        why = "the database did not answer in time" if self._unanswered else "this process had stood still"
        self.lose(why, until)

    def lose(self, why: str, until: float) -> None:
        """Give up the lease that ends at *until*: whatever is held under it may be another worker's soon.

        Once: another may have done so meanwhile, and perhaps has begun a new session.
        """
        with self._lock:
            if until != self._until or not until:
                return
            self._until = 0.0
            held = self.holding.all()
        if held:
            log.error("lost the lease with %s in hand: %s", counted(len(held), "job"), why)
        for one in held:
            one.end(LeaseLost(f"job {one.job.id} may be another worker's by now: {why}"))

    def _renew(self, sent: float) -> None:
        self._until = sent + self._length.total_seconds() * (1 - _MARGIN)
        self._unanswered = False
