"""The worker: its parts put together, started and stopped.

    claim    takes jobs from the queues and hands them to an executor
    execute  runs their handlers: `executors/` in threads, on a loop, in processes
    settle   writes what became of them

Beside these the heartbeat keeps the lease, the watch ends what takes too long, and a listener says when to look.
"""

from __future__ import annotations

import logging
import math
import os
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from mainspring.clock import Clock, SystemClock
from mainspring.errors import LeaseLost, StoreError, StoreGone, TimeExpired, WorkerStopped
from mainspring.keys import Keyring
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import Settlement, settle
from mainspring.model.outcome import Failed, Outcome, Returned, Succeeded, TimedOut
from mainspring.model.session import DEFAULT_LEASE
from mainspring.model.task import Executor as Kind
from mainspring.model.task import Registry
from mainspring.service import Loop, close
from mainspring.store import Store
from mainspring.store.database import DUE, FIRE, RELEASE, WISH, Listener
from mainspring.tally import Tally
from mainspring.worker.attempt import LocalAttempt
from mainspring.worker.capture import Capture
from mainspring.worker.claim import Claimer, Lane
from mainspring.worker.context import Context, JobLog
from mainspring.worker.count import count
from mainspring.worker.execute import detailed
from mainspring.worker.executors.commands import CommandExecutor
from mainspring.worker.executors.coroutines import CoroutineExecutor
from mainspring.worker.executors.executor import Executor
from mainspring.worker.executors.messages import Setup
from mainspring.worker.executors.processes import ProcessExecutor
from mainspring.worker.executors.programs import Programs
from mainspring.worker.executors.references import check_not_loading
from mainspring.worker.executors.threads import ThreadExecutor
from mainspring.worker.failure import failure_of
from mainspring.worker.heartbeat import Heartbeat
from mainspring.worker.held import Held, about
from mainspring.worker.pace import Pace
from mainspring.worker.queues import Queues
from mainspring.worker.reveal import Revealer
from mainspring.worker.sample import Sampler
from mainspring.worker.session import WorkerSession
from mainspring.worker.settle import Settler
from mainspring.worker.watch import Watch

COROUTINES = 1_000
_LISTEN = 5.0
_LAST_CLAIMS, _LAST_WRITES = 5.0, 10.0
"""Seconds that a worker which stops waits for the database at most, before and after what runs has ended."""

_STOPPING = 2.0
_LONGEST_REASON = 200

log = logging.getLogger("mainspring.worker")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a worker works. `queues` gives each queue that it serves a weight.

    `url` is where its child processes find the database. A job that may have killed its workers runs in one of its
    own, with `isolation_memory` bytes at most. Records of Python's logging are kept from the level `capture` on.
    """

    queues: Mapping[str, int]
    url: str
    commands: Sequence[str] = ()
    concurrency: int = 8
    lease: timedelta = DEFAULT_LEASE
    isolation_memory: int = 1024**3
    capture: int | None = logging.INFO


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a worker is given to work with.

    `beats` is the store for the heartbeat. `heard` is told of wakes, for whoever else waits for some, and `gone` when
    only a restart helps.
    """

    store: Store
    beats: Store
    keys: Keyring
    tally: Tally
    new_ids: Callable[[int, UUID | None], list[UUID]]
    heard: Callable[[frozenset[str]], None]
    gone: Callable[[StoreGone], None]


class Worker:
    """One worker in this process. `start` returns at once; `stop` when all is settled."""

    def __init__(self, given: Surroundings, tasks: Registry, settings: Settings) -> None:
        self._store, self._beats = given.store, given.beats
        self.new_ids, self.tally = given.new_ids, given.tally
        self._clock: Clock = SystemClock()
        self.revealer = Revealer(given.store, given.keys, self._clock)
        self._settings = settings
        self._others_heard = given.heard
        self.session = WorkerSession(given.beats, self._clock, self._new_id, settings.lease, settings.queues, tasks)
        self._settler = Settler(given.store, self.session.holding, self._clock, given.tally)
        self._watch = Watch(self._clock, self.session, self._abandon)
        self._heartbeat = Heartbeat(
            given.beats,
            self.session,
            self._clock,
            renewed=self._watch.loop.wake,
            gone=given.gone,
            tally=given.tally,
        )
        self._sampler = Sampler(given.store, given.tally)
        self._lanes = self._make_lanes(tasks)
        self._claimer_of = {lane.executor: self._claimer(lane) for lane in self._lanes}
        self._claimers = list(self._claimer_of.values())
        self._listener: Listener | None = None
        self._listen = Loop("listen", self._hear)
        self._stop_now = False
        self._talking = threading.Lock()
        self._capture = None if settings.capture is None else Capture(settings.capture, self._log_of)

    def start(self) -> None:
        """Open a session and begin to work."""
        check_not_loading()
        self.session.open()
        self._listener = self._store.listen({*self._settings.queues, DUE, FIRE, RELEASE, WISH})
        if self._capture is not None:
            self._capture.install()
        for loop in self._loops():
            loop.start()
        log.info("worker %s serves %s", self.session.name, ", ".join(self._settings.queues))

    def stop(self, grace: float = math.inf) -> bool:
        """Claim no more, let what runs end within *grace* seconds, and return whether all of it was settled.

        What has not ended by then, or when `stop_now` is called, goes back to its queue.
        """
        close([loop for claimer in self._claimers for loop in claimer.loops], _LAST_CLAIMS)
        for claimer in self._claimers:
            self._give_back(claimer.take_back())
        for executor in self._executors():
            self._give_back(executor.take_back())
        self._wait_for_running(self._clock.steady() + grace)
        self._interrupt_running()
        give_up = self._clock.steady() + _LAST_WRITES
        settled = self._settler.finish(_LAST_WRITES)
        self._close(give_up)
        if settled:  # or else the database is away, and will see by itself when the lease ends
            self._sampler.add()
            with suppress(StoreError):
                self._beats.close_session(self.session.id)
        return settled

    def stop_now(self) -> None:
        """Cut `stop` short: what still runs goes back to its queue."""
        self._stop_now = True

    # What executors ask for.

    @property
    def watch(self) -> Watch:
        return self._watch

    def hungry(self, executor: Executor) -> None:
        claimer = self._claimer_of.get(executor)
        for one in [claimer] if claimer is not None else self._claimers:  # all share the one that isolates
            one.loop.wake()

    def context(self, held: Held) -> Context:
        timeout = held.task.timeout
        attempt = LocalAttempt(self, self.session, self._store, held)
        deadline = None if timeout is None else self._clock.now() + timeout
        awaits = held.task.executor is Kind.COROUTINE
        context = Context(held.job, attempt, deadline, awaits=awaits, secrecy=held.secrecy)
        held.details = context.details
        held.log = context.log
        return context

    def _log_of(self, held: Held) -> JobLog | None:
        """Return where what an attempt of ours logs is kept; None when it is over."""
        if held.settled or held not in self.session.holding:
            return None
        with self._talking:  # or two threads of it would each have one, and number their lines alike
            return held.log or self.context(held).log

    def charge(self, held: Held) -> None:
        if not held.job.losses:
            return
        try:
            ours = self._store.charge(held.job)
        except StoreError as error:
            raise WorkerStopped(f"job {held.job.id} can't be started safely: {error}") from error
        if not ours:
            raise LeaseLost(f"job {held.job.id} is no longer ours")

    def ended(self, held: Held, outcome: Outcome | None) -> None:
        if held.settled:
            if held.succeeded and isinstance(outcome, Failed):
                told = "job %s had succeeded with its transaction when its handler failed (%s: %s)"
                log.warning(told, held.job.id, outcome.failure.type, outcome.failure.message)
            if held.succeeded:
                count(self.tally, [(held, settle(held.job, Succeeded("null")))])
            return
        held.settled = True
        if outcome is None:
            self.session.holding.drop(held)
            return
        try:
            decided = self._decide(held, outcome)
        except Exception as error:  # noqa: BLE001 - a job that nothing can be decided for must not run for ever
            failure = failure_of(error, held.task.name, held.secrecy.redact)
            decided = settle(held.job, Failed(failure, retryable=False))
        self._settler.put(held, decided)
        if decided.failure is not None:
            _tell_of_failure(held, decided)

    def _decide(self, held: Held, outcome: Outcome) -> Settlement:
        if isinstance(outcome, Succeeded):  # for short: most do
            return settle(held.job, outcome)
        retry = held.task.retry_of(held.job.payload)
        return settle(held.job, outcome, retry, random.uniform(0.5, 1.5) if retry.jitter else 1.0)  # noqa: S311

    def record(self, entry: LogLine | Progress) -> None:
        self._settler.record(entry)

    def flush(self) -> None:
        """Wait until what was recorded so far is written."""
        self._settler.flush()

    def succeeded(self, held: Held) -> None:
        """Take note that the success of *held* is recorded already."""
        held.settled = held.succeeded = True
        self.session.holding.drop(held)

    # How it is made, and taken apart.

    def _make_lanes(self, tasks: Registry) -> list[Lane]:
        slots, url = self._settings.concurrency, self._settings.url
        capture = self._settings.capture
        isolate = ProcessExecutor(1, self, self._clock, Setup(url, self._settings.isolation_memory, capture))
        threads = Pace(slots)
        processes = min(slots, os.cpu_count() or 1)
        lanes = [
            Lane(ThreadExecutor(slots, self, self._clock, threads), tasks.run_by(Kind.THREAD), threads, isolate),
            Lane(CoroutineExecutor(COROUTINES, self), tasks.run_by(Kind.COROUTINE), Pace(COROUTINES), isolate),
            Lane(
                ProcessExecutor(processes, self, self._clock, Setup(url, None, capture)),
                tasks.run_by(Kind.PROCESS),
                Pace(processes),
            ),
        ]
        if self._settings.commands:
            commands = CommandExecutor(slots, self, self._clock, Programs(self._settings.commands))
            lanes.append(Lane(commands, tasks.run_by(Kind.COMMAND), Pace(slots)))
        return lanes

    def _new_id(self) -> UUID:
        (made,) = self.new_ids(1, None)
        return made

    def _executors(self) -> list[Executor]:
        own = [lane.executor for lane in self._lanes]
        shared = {lane.isolate for lane in self._lanes if lane.isolate is not None}
        return [*own, *shared]

    def _claimer(self, lane: Lane) -> Claimer:
        return Claimer(self._store, self.session, lane, Queues(self._settings.queues), self._clock, self)

    def _loops(self) -> list[Loop]:
        claims = [loop for claimer in self._claimers for loop in claimer.loops]
        own = [self._settler.loop, self._heartbeat.loop, self._watch.loop, self._sampler.loop]
        return [*own, *claims, self._listen]

    def _close(self, give_up: float) -> None:
        for executor in self._executors():
            executor.close()
        if self._capture is not None:
            self._capture.remove()
        if self._listener is not None:
            self._listener.close()
        close(self._loops(), give_up - self._clock.steady())

    def _hear(self) -> float:
        assert self._listener is not None
        try:
            topics = self._listener.wait(_LISTEN)
        except StoreError:
            return math.inf  # closed: the worker stops
        if not topics:
            return 0
        for claimer in self._claimers:
            claimer.heard(topics)
        if WISH in topics:
            self._heartbeat.loop.wake()
        self._others_heard(topics)
        return 0

    # How jobs leave it without having ended by themselves.

    def _give_back(self, unstarted: Iterable[Held]) -> None:
        for held in unstarted:
            self.ended(held, Returned())

    def _abandon(self, held: Held) -> None:
        """Record that *held* timed out, though its handler has not ended and perhaps never will."""
        for executor in self._executors():
            executor.abandon(held)
        self._stop_counting(held)
        stop = held.stop if isinstance(held.stop, TimeExpired) else TimeExpired("the attempt did not end in time")
        self.ended(held, detailed(TimedOut(failure_of(stop, held.task.name)), held.details, held.secrecy))

    def _running(self) -> list[Held]:
        return [held for held in self.session.holding.all() if not held.settled]

    def _wait_for_running(self, until: float) -> None:
        while self._moving() and self._clock.steady() < until and not self._stop_now:
            self._clock.sleep(0.01)

    def _moving(self) -> bool:
        return any(not held.frozen for held in self._running())

    def _interrupt_running(self) -> None:
        for held in self._running():
            held.end(WorkerStopped("the worker stops"))
        give_up = self._clock.steady() + _STOPPING
        while self._running() and self._clock.steady() < give_up:
            self._clock.sleep(0.01)
        for held in self._running():
            self._stop_counting(held)
            self.ended(held, Returned())

    def _stop_counting(self, held: Held) -> None:
        """Take note of how long an attempt took that has not ended by itself."""
        if held.began:
            held.took = self._clock.steady() - held.began


def _tell_of_failure(held: Held, decided: Settlement) -> None:
    """Leave a line for whoever watches the worker; the job has the traceback.

    Whether its breaker spares it is known when it is settled, which may take a while; so the line leaves that open.
    """
    failure, job = decided.failure, held.job
    assert failure is not None
    why = f"{failure.type}: {failure.message}".splitlines()[0][:_LONGEST_REASON]
    may_be_spared = decided.breaker is not None and decided.worked is False
    if decided.delay is not None:
        told = "job %s (%s) failed in attempt %d, trying again in %.1f s%s: %s"
        unless = ", or when its breaker lets it" if may_be_spared else ""
        seconds = decided.delay.total_seconds()
        log.info(told, job.id, held.task.name, job.attempt, seconds, unless, why, extra=about(job))
    else:
        unless = ", its last unless its breaker spares it" if may_be_spared else ""
        told = "job %s (%s) failed in attempt %d%s: %s"
        log.error(told, job.id, held.task.name, job.attempt, unless, why, extra=about(job))
