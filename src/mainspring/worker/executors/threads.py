"""Handlers that are plain functions, on threads.

Threads take jobs from one queue, one after the other: a future or a hand-over for each job would cost more than many a
handler, and no job waits behind a slow one while another thread is free.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from mainspring.clock import Clock
from mainspring.model.outcome import Outcome
from mainspring.traces import Tracing, tracing
from mainspring.worker.context import Context
from mainspring.worker.execute import call, check_in_time, ending, success, untold
from mainspring.worker.executors.executor import Host, take_all
from mainspring.worker.executors.interruption import Interruption
from mainspring.worker.held import Held
from mainspring.worker.pace import Pace

_PAUSE = 1.0
"""Seconds after which another thread is tried, when the system would not give us one."""

log = logging.getLogger("mainspring.worker")


class ThreadExecutor:
    """Up to *slots* threads, started as they are needed."""

    def __init__(self, slots: int, host: Host, clock: Clock, pace: Pace) -> None:
        self._slots = slots
        self._host = host
        self._clock = clock
        self._pace = pace
        self._queue: deque[Held] = deque()
        self._parked = threading.Condition()
        self._parkers = 0
        self._threads: set[_Thread] = set()
        self._low = 0
        self._start_after = 0.0
        self._closing = False
        self._tracing: Tracing | None = None
        # Copied for each job, so that none finds context variables as another has left them: cheaper than a new one.
        self._untouched = contextvars.Context()

    @property
    def room(self) -> int:
        at_hand = self._pace.at_hand
        self._low = at_hand // 2
        room = at_hand - len(self._queue) - sum(thread.held is not None for thread in list(self._threads))
        # In a flood, fewer and larger claims: the next one when half of what was taken ahead is gone.
        return room if at_hand <= 2 * self._slots or len(self._queue) <= self._low else 0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, taken: Sequence[Held]) -> None:
        self._tracing = tracing()  # asked now and then, for it may be set up at any time
        self._queue.extend(taken)
        self._rouse()

    def take_back(self) -> list[Held]:
        return take_all(self._queue)

    def abandon(self, held: Held) -> None:
        for thread in list(self._threads):
            if thread.held is held:
                thread.abandoned = True
                self._threads.discard(thread)
        self._rouse()
        self._host.hungry(self)

    def close(self) -> None:
        with self._parked:
            self._closing = True
            self._parked.notify_all()

    def _rouse(self) -> None:
        """Get one more thread going; it will rouse the next if there is work for two."""
        with self._parked:
            if self._parkers:
                self._parked.notify()
            elif len(self._threads) < self._slots and self._start_after <= self._clock.steady():
                self._start_thread()

    def _start_thread(self) -> None:
        thread = _Thread()
        self._threads.add(thread)  # first, for it may end before `start` returns
        try:
            threading.Thread(target=self._serve, args=(thread,), name="mainspring-execute", daemon=True).start()
        except (RuntimeError, MemoryError) as error:  # must not reach a thread that has just taken a job
            self._threads.discard(thread)
            self._start_after = self._clock.steady() + _PAUSE
            log.warning("can't start another thread, going on with %d: %s", len(self._threads), error)

    def _serve(self, me: _Thread) -> None:
        try:
            self._run(me)
        finally:
            self._threads.discard(me)  # whatever has ended it, another may take its slot

    def _run(self, me: _Thread) -> None:
        begun = self._clock.steady()
        while not me.abandoned:
            try:
                held = self._queue.popleft()
            except IndexError:
                if not self._park():
                    return
                begun = self._clock.steady()
                continue
            if self._queue and (self._parkers or len(self._threads) < self._slots):
                self._rouse()
            me.held = held
            held.began = begun
            try:
                outcome = self._attempt(held, self._untouched) if self._tracing is None else self._traced(held)
            except BaseException as error:  # noqa: BLE001 - a job that nobody reports would stay ours for ever
                outcome = untold(held.task, error, held.secrecy)
            me.held = None
            ended = self._clock.steady()
            held.took = took = ended - begun
            self._host.ended(held, outcome)
            self._pace.job_took(took)
            begun = ended
            if len(self._queue) <= self._low:
                self._host.hungry(self)

    def _park(self) -> bool:
        with self._parked:
            if self._closing:
                return False
            if not self._queue:
                self._parkers += 1
                self._parked.wait()
                self._parkers -= 1
        return True

    def _traced(self, held: Held) -> Outcome | None:
        """Make an attempt within a span, which its handler finds in its context."""
        assert self._tracing is not None
        span, outcome = self._tracing.begin(held.job), None
        within = self._untouched.copy()
        within.run(span.enter)
        try:
            outcome = self._attempt(held, within)
        finally:
            span.end(outcome)
        return outcome

    def _attempt(self, held: Held, untouched: contextvars.Context) -> Outcome | None:
        task = held.task
        try:
            held.check()
            self._host.charge(held)
            check_in_time(held.job, held.start_by)
            context = self._host.context(held) if task.context else None
            own = untouched.copy()
            if task.timeout is None:
                result = own.run(call, task, held.payload, context, held)
            else:
                result = self._timed(held, context, own)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome, and the thread goes on
            return ending(task, error, held.stop, held.details, held.secrecy)
        return success(task, result, context, held.secrecy)

    def _timed(self, held: Held, context: Context | None, own: contextvars.Context) -> Any:
        """Call a handler that has a timeout; when that passes, an exception is raised in its midst."""
        interruption = Interruption()
        held.interrupt = interruption.send
        self._host.watch.begin(held)
        try:
            return own.run(call, held.task, held.payload, context, held)
        finally:
            try:
                interruption.shut()
            finally:  # the exception may arrive in these very lines
                self._host.watch.end(held)


class _Thread:
    """What one thread runs, and whether anybody still counts on it."""

    __slots__ = ("abandoned", "held")

    def __init__(self) -> None:
        self.abandoned = False
        self.held: Held | None = None
