"""Claim: keep an executor supplied, with no more than it can use soon."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from mainspring.clock import Clock
from mainspring.errors import StoreError, StoreGone
from mainspring.model.job import Job
from mainspring.model.lifecycle import MAX_LOSSES
from mainspring.model.outcome import Outcome, Returned
from mainspring.model.task import Task
from mainspring.service import Loop
from mainspring.store import Store
from mainspring.store.protocol import AHEAD
from mainspring.tally import Tally
from mainspring.worker.early import Early
from mainspring.worker.executors.executor import Executor
from mainspring.worker.executors.references import importable
from mainspring.worker.held import Held
from mainspring.worker.pace import Pace
from mainspring.worker.prepare import Means, Start, needs_preparation, prepare
from mainspring.worker.queues import Queues
from mainspring.worker.reveal import Naming, Revealed, Revealer
from mainspring.worker.secrecy import Secrecy
from mainspring.worker.session import WorkerSession

POLL = 1.0
"""Seconds between looks when nothing was heard: a wake is a hint that may get lost."""

BATCH = 500
_PAUSE = 0.5
_STALLED = 5.0
"""Polls within which what was taken ahead should start."""

log = logging.getLogger("mainspring.worker")


@dataclass(frozen=True)
class Lane:
    """An executor, the tasks that it runs, and the pace at which it does."""

    executor: Executor
    tasks: Mapping[str, Task]
    pace: Pace
    isolate: Executor | None = None  # for jobs that may be what killed their workers


class Host(Protocol):
    """The worker, as its claimers see it."""

    @property
    def revealer(self) -> Revealer:
        """What opens secrets for jobs."""
        ...

    @property
    def tally(self) -> Tally: ...

    def ended(self, held: Held, outcome: Outcome | None) -> None:
        """Take note of what became of a job that was claimed."""
        ...

    def new_ids(self, count: int, after: UUID | None) -> list[UUID]:
        """Return *count* new ids, larger than *after*."""
        ...


class Claimer:
    """Claims for one lane."""

    def __init__(
        self,
        store: Store,
        session: WorkerSession,
        lane: Lane,
        queues: Queues,
        clock: Clock,
        host: Host,
    ) -> None:
        self._store = store
        self._session = session
        self._lane = lane
        self._queues = queues
        self._clock = clock
        self._host = host
        self._means = Means(store, host.revealer.keys, host.new_ids)
        self._revealer = host.revealer
        self._polled_at = clock.steady()
        self._starting = threading.Lock()  # two threads do: the one that claims, and that of the early ones
        self._put = 0
        self._started = 0
        self._early = Early(clock, self._start_early)
        self.loop = Loop("claim", self._claim)
        self.loops = [self.loop, self._early.loop]

    def heard(self, topics: Iterable[str]) -> None:
        """Take note that these queues may have jobs. Called by any thread."""
        if self._lane.tasks:
            self._queues.heard(topics)
            self.loop.wake()

    def take_back(self) -> list[Held]:
        """Return what was claimed ahead of its time and has not started; it will not start any more."""
        return self._early.take_back()

    def _claim(self) -> float:
        if self._clock.steady() - self._polled_at >= POLL:
            self._poll()
        try:
            return 0 if self._claim_some() else POLL
        except StoreGone:
            return math.inf  # the heartbeat says so
        except StoreError as error:
            self._host.tally.failed("claim")
            log.warning("can't claim, trying on: %s", error)
            return _PAUSE

    def _poll(self) -> None:
        self._polled_at = self._clock.steady()
        self._queues.heard(self._queues.names)
        waiting = self._lane.executor.waiting
        before, self._started = self._started, self._put - waiting
        if waiting > _STALLED * (self._started - before):
            self._return_stalled()

    def _claim_some(self) -> bool:
        """Claim from the next queue, if there is room; return whether to look again at once."""
        isolated = self._lane.isolate.waiting if self._lane.isolate is not None else 0
        room = min(BATCH, self._lane.executor.room - isolated)
        turn = self._queues.turn(room) if room > 0 and self._lane.tasks and self._session.alive else None
        if turn is None:
            return False
        queue, limit = turn
        session, begun = self._session.id, self._clock.steady()
        jobs = self._store.claim(session, queue, limit, self._lane.tasks, self._ahead())
        claimed = self._clock.steady()
        self._lane.pace.claim_took(claimed - begun)
        self._queues.got(queue, limit, len(jobs))
        if jobs:
            self._host.tally.claimed(len(jobs))
        taken = [Held(job, self._lane.tasks[job.task], _start_by(job, begun), claimed) for job in jobs]
        # Held first and looked at second: a lease that is lost in between ends all that is held.
        self._session.holding.add(taken)
        try:
            taken = self._reveal(self._admit(self._prepare(taken)))
            self._reach(taken)
        except Exception:
            # Or they would be ours, unstarted, for as long as we live.
            self._give_back([held for held in taken if not held.settled and held in self._session.holding])
            raise
        if self._session.alive and self._session.id == session and not self.loop.ending:
            self._start(self._early.keep(taken))
        else:
            self._give_back(taken)  # if the database still knows us, they are ready again at once
        return True

    def _prepare(self, taken: list[Held]) -> list[Held]:
        """Return those of *taken* that are to start, with all that they need."""
        if not any(needs_preparation(held.job, held.task) for held in taken):
            return taken  # for short: most have nothing to do with others
        prepared = prepare(self._means, [(held.job, held.task) for held in taken])
        for held, made in zip(taken, prepared, strict=True):
            if isinstance(made, Start):
                held.job, held.secrets = made.job, made.secrets
                if made.sealed:
                    held.secrecy = Secrecy(held.job.id, held.job.task, keys=self._means.keys)
            else:
                self._host.ended(held, made)
        return [held for held in taken if not held.settled]

    def _reveal(self, taken: list[Held]) -> list[Held]:
        """Return those of *taken* that are to start, with the secrets that they name.

        Last of all, so that no limit is called by the value of a secret.
        """
        naming = [held for held in taken if held.secrets]
        if not naming:
            return taken
        found = self._revealer.reveal([Naming(held.job, held.task, held.secrets) for held in naming])
        for held, made in zip(naming, found, strict=True):
            if isinstance(made, Revealed):
                held.revealed, held.secrecy = made.payload, held.secrecy.knowing(made.values)
            else:
                self._host.ended(held, made)
        return [held for held in taken if not held.settled]

    def _reach(self, taken: list[Held]) -> None:
        """Note how far turns have got; a note that is lost does no harm."""
        if any(held.job.turn is not None for held in taken):
            with suppress(StoreError):
                self._store.reach([held.job for held in taken])

    def _give_back(self, unstarted: list[Held]) -> None:
        for held in unstarted:
            self._host.ended(held, Returned())

    def _admit(self, taken: list[Held]) -> list[Held]:
        """Return those of *taken* that may start; the others wait for a limit, and are not ours any more."""
        limited = {held: wants for held in taken if held.task.limited and (wants := held.task.wants(held.job.payload))}
        if not limited:
            return taken
        for held, wants in limited.items():
            # Even before we know: whatever becomes of it from now on gives back what it may have got.
            held.job = held.job.asking(wants)
        admitted = self._store.admit([(held.job, wants) for held, wants in limited.items()])
        for held in limited:
            if held.job.id not in admitted:
                self._session.holding.drop(held)
        return [held for held in taken if held not in limited or held.job.id in admitted]

    def _ahead(self) -> timedelta:
        """Return how long before their time jobs are claimed now: those that wait must not be too many."""
        return AHEAD if len(self._early) < self._lane.pace.at_hand else timedelta(0)

    def _start_early(self, due: list[Held]) -> None:
        """Start what was claimed ahead and is due now; there may be others, for which there was no room."""
        self._start(due)
        self._queues.heard(self._queues.names)
        self.loop.wake()

    def _start(self, taken: list[Held]) -> None:
        if not taken:
            return
        suspects = [held for held in taken if held.job.losses >= MAX_LOSSES - 1 and importable(held.task)]
        if suspects and self._lane.isolate is not None:
            self._lane.isolate.put(suspects)
            taken = [held for held in taken if held not in suspects]
        with self._starting:
            self._lane.executor.put(taken)
            self._put += len(taken)

    def _return_stalled(self) -> None:
        """Give back what was taken ahead of jobs that have turned slow, so that another worker can start it."""
        self._lane.pace.stalled()
        with self._starting:
            taken_back = self._lane.executor.take_back()
            self._put -= len(taken_back)
        self._give_back(taken_back)


def _start_by(job: Job, claiming: float) -> float | None:
    """Return until when *job* may start, on the steady clock, if it expires.

    Counted from before the claim was sent, at *claiming*: rather a moment too early than too late.
    """
    if job.expires_at is None:
        return None
    assert job.started_at is not None
    return claiming + (job.expires_at - job.started_at).total_seconds()
