"""Handlers that are plain functions, on threads.

Threads take jobs from one queue, one after the other: a future or a hand-over for each job would cost more than many a
handler, and no job waits behind a slow one while another thread is free.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mainspring import store
from mainspring.clock import Clock
from mainspring.errors import TimeExpired
from mainspring.model.outcome import Outcome
from mainspring.worker.execute import call, ending, success
from mainspring.worker.executors.executor import Host
from mainspring.worker.held import Held
from mainspring.worker.pace import Pace

_STORE = str(Path(store.__file__).parent)
_PATIENCE = 100


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
        self._closing = False

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
        self._queue.extend(taken)
        self._rouse()

    def take_back(self) -> list[Held]:
        taken: list[Held] = []
        while self._queue:
            try:
                taken.append(self._queue.pop())
            except IndexError:
                break  # a thread was quicker
        return taken

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
            elif len(self._threads) < self._slots:
                thread = _Thread()
                threading.Thread(target=self._run, args=(thread,), name="mainspring-execute", daemon=True).start()
                self._threads.add(thread)

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
            outcome = self._attempt(held)
            me.held = None
            self._host.ended(held, outcome)
            ended = self._clock.steady()
            self._pace.job_took(ended - begun)
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

    def _attempt(self, held: Held) -> Outcome | None:
        task = held.task
        try:
            held.check()
            self._host.charge(held)
            context = self._host.context(held) if task.context else None
            result = call(task, held.job.payload, context) if task.timeout is None else self._timed(held, context)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome, and the thread goes on
            return ending(task, error, held.stop)
        return success(task, result)

    def _timed(self, held: Held, context: Any) -> Any:
        """Call a handler that has a timeout; when that passes, an exception is raised in its midst."""
        interruption = _Interruption(self._clock)
        held.interrupt = interruption.send
        self._host.watch.begin(held)
        try:
            return call(held.task, held.job.payload, context)
        finally:
            self._host.watch.end(held)
            interruption.shut()


class _Thread:
    """What one thread runs, and whether anybody still counts on it."""

    __slots__ = ("abandoned", "held")

    def __init__(self) -> None:
        self.abandoned = False
        self.held: Held | None = None


class _Interruption:
    """One exception, sent into a thread from outside, at most.

    It arrives between two steps of Python code, so not while the thread waits in a call to the system. Because it
    is only one, it has arrived, or never will, by the time that `shut` is over.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread = threading.get_ident()
        self._gate = threading.Lock()
        self._sent = False

    def send(self, stop: BaseException | None) -> None:
        if isinstance(stop, TimeExpired) and not self._sent and self._gate.acquire(blocking=False):
            # In the midst of the store it could leave a lock behind that all other threads wait for.
            for _ in range(_PATIENCE):
                if not _is_in_store(self._thread):
                    self._sent = True
                    _raise_in(self._thread, TimeExpired)
                    break
                self._clock.sleep(0.01)
            self._gate.release()

    def shut(self) -> None:
        self._gate.acquire()  # for good
        if self._sent:
            _raise_in(self._thread, None)  # takes back what has not arrived


def _is_in_store(thread: int) -> bool:
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to see what another thread does
    while frame is not None:
        if frame.f_code.co_filename.startswith(_STORE):
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    target = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), target)
