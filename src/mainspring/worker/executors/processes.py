"""Handlers in processes of their own, which can be killed, and can't take the worker with them when they die."""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Sequence

from mainspring.clock import Clock
from mainspring.errors import InvalidValue, LeaseLost, PauseRequested, WorkerStopped
from mainspring.model.outcome import Failed, Lost, Outcome
from mainspring.worker.execute import ending
from mainspring.worker.executors.executor import Host
from mainspring.worker.executors.messages import (
    Begin,
    Begun,
    Ended,
    FromChild,
    Logged,
    Progressed,
    Settled,
    Setup,
)
from mainspring.worker.executors.process import Process
from mainspring.worker.executors.references import handler_reference, reference_to
from mainspring.worker.executors.switchboard import Switchboard
from mainspring.worker.failure import failure_of
from mainspring.worker.held import Held

GRACE = 4.0
"""Seconds between asking an attempt to end and killing its process; less than the watch waits for it."""

_HASTE = 1.0
"""The same, where another worker may begin the job soon."""

_LEAVING = 2.0
_PAUSE = 1.0
_DYING = 0.01

log = logging.getLogger("mainspring.worker")


class ProcessExecutor:
    """Up to *slots* child processes, started as they are needed and kept for the next job.

    With a limit of *memory* bytes, each job gets a process of its own, and so all of that memory. The timeout of an
    attempt counts from when its handler was found, so that a slow import in a new process does not use it up, and
    anew after a pause. An attempt that is paused stands still and gives its slot away.
    """

    def __init__(self, slots: int, host: Host, clock: Clock, url: str, memory: int | None = None) -> None:
        self._slots = slots
        self._host = host
        self._clock = clock
        self._setup = Setup(url, memory)
        self._queue: deque[Held] = deque()
        self._unfinished: set[Held] = set()
        self._processes: list[Process] = []
        self._frozen = 0
        self._start_after = 0.0
        self._closing = False
        self._making = threading.Lock()
        self._made: Switchboard | None = None

    @property
    def room(self) -> int:
        return self._slots - len(self._unfinished) + self._frozen

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, taken: Sequence[Held]) -> None:
        self._unfinished.update(taken)
        self._queue.extend(taken)
        self._switchboard.wake()

    def take_back(self) -> list[Held]:
        taken: list[Held] = []
        while self._queue:
            try:
                taken.append(self._queue.pop())
            except IndexError:
                break  # our thread was quicker
        self._unfinished.difference_update(taken)
        return taken

    def abandon(self, held: Held) -> None:
        if held in self._unfinished:
            self._switchboard.tell(lambda: self._forget(held))

    def close(self) -> None:
        if self._made is not None:
            self._made.tell(self._end_all)
            self._made.join(_LEAVING + 1)

    @property
    def _switchboard(self) -> Switchboard:
        with self._making:
            if self._made is None:
                self._made = Switchboard("processes", self._turn)
                self._made.start()
            return self._made

    # From here on, all is done by the switchboard's thread.

    def _turn(self) -> float:
        """Do what is due, and return the seconds until more is."""
        now = self._clock.steady()
        for process in self._processes:
            if process.kill_at <= now:
                process.kill()
        for process in [process for process in self._processes if process.over and process.collect()]:
            self._lay_to_rest(process)
        self._start_waiting()
        if self._closing and not self._processes:
            self._switchboard.end()
        if any(process.over for process in self._processes):
            return _DYING
        retry_at = self._start_after if self._queue and self._start_after > now else math.inf
        return max(0.0, min([retry_at, *(process.kill_at for process in self._processes)]) - self._clock.steady())

    def _start_waiting(self) -> None:
        while self._queue and (process := self._free_process()) is not None:
            try:
                held = self._queue.popleft()
            except IndexError:
                return  # taken back
            self._begin(process, held)

    def _free_process(self) -> Process | None:
        """Return a process that is free, started if need be; None when there can't be any more now."""
        staying = [process for process in self._processes if not process.leaving]
        for process in staying:
            if process.idle:
                return process
        if len(staying) - self._frozen >= self._slots or self._closing or self._clock.steady() < self._start_after:
            return None
        try:
            process = Process(self._setup, self._clock)
        except OSError as error:
            log.warning("can't start a process, trying on: %s", error)
            self._start_after = self._clock.steady() + _PAUSE
            return None
        self._processes.append(process)
        self._switchboard.connect(process.line, lambda: self._hear(process))
        return process

    def _begin(self, process: Process, held: Held) -> None:
        if held.stop is not None:
            self._report(held, ending(held.task, held.stop, held.stop))
            return
        try:
            order = _order(held)
        except InvalidValue as error:
            self._report(held, Failed(failure_of(error, held.task.name), retryable=False))
            return
        if not process.begin(held, order):
            self._queue.appendleft(held)
            return
        held.interrupt = lambda stop: self._switchboard.tell(lambda: self._interrupt(process, held, stop))
        if held.stop is not None:
            self._interrupt(process, held, held.stop)  # it came before anybody could have told us

    def _interrupt(self, process: Process, held: Held, stop: BaseException | None) -> None:
        if process.held is not held or process.over:
            return
        if stop is None:
            self._go_on(process, held)
        elif isinstance(stop, PauseRequested):
            self._pause(process, held)
        else:
            self._thaw(process)
            process.interrupt(stop, _HASTE if isinstance(stop, LeaseLost | WorkerStopped) else GRACE)

    def _pause(self, process: Process, held: Held) -> None:
        if process.stop is None and not process.frozen:
            self._unwatch(held)
            process.freeze()
            held.frozen = True
            self._frozen += 1
            self._host.hungry(self)

    def _go_on(self, process: Process, held: Held) -> None:
        if process.frozen:
            self._thaw(process)
            self._watch(process, held)

    def _thaw(self, process: Process) -> None:
        if process.frozen:
            process.thaw()
            self._frozen -= 1
            if process.held is not None:
                process.held.frozen = False

    def _watch(self, process: Process, held: Held) -> None:
        if held.task.timeout is not None and process.begun and not process.frozen:
            self._host.watch.begin(held)

    def _unwatch(self, held: Held) -> None:
        if held.task.timeout is not None:
            self._host.watch.end(held)

    def _hear(self, process: Process) -> None:
        for message in process.receive():
            if process.held is not None:
                self._take(process, process.held, message)
        if process.over:
            self._switchboard.disconnect(process.line)

    def _take(self, process: Process, held: Held, message: FromChild) -> None:
        match message:
            case Begun():
                process.begun = True
                self._watch(process, held)
            case Logged(line):
                self._host.record(line)
                # Here, because a program sets up its log where it starts, and a child does not start there.
                level = logging.getLevelNamesMapping().get(line.level.upper(), logging.INFO)
                logging.getLogger(f"mainspring.job.{held.job.task}").log(level, "%s", line.message)
            case Progressed(progress):
                self._host.record(progress)
            case Settled():
                self._host.succeeded(held)
            case Ended(last=last):
                self._end(process, held, message.outcome)
                # What was stopped in its midst may have left anything behind: locks, processes, half a module.
                if last or process.stop is not None:
                    process.hang_up(_LEAVING)

    def _lay_to_rest(self, process: Process) -> None:
        self._processes.remove(process)
        held = process.held
        if held is not None:
            stop = process.stop
            self._end(process, held, ending(held.task, stop, held.stop) if stop is not None else Lost(process.fate()))

    def _end(self, process: Process, held: Held, outcome: Outcome | None) -> None:
        self._thaw(process)
        process.held = None
        held.interrupt = None
        self._unwatch(held)
        self._report(held, None if isinstance(held.stop, LeaseLost) else outcome)

    def _report(self, held: Held, outcome: Outcome | None) -> None:
        self._unfinished.discard(held)
        self._host.ended(held, outcome)
        self._host.hungry(self)

    def _forget(self, held: Held) -> None:
        for process in self._processes:
            if process.held is held:
                self._thaw(process)
                process.held = None
                process.kill()
        held.interrupt = None
        self._unfinished.discard(held)
        self._host.hungry(self)

    def _end_all(self) -> None:
        self._closing = True
        for process in self._processes:
            self._thaw(process)
            process.hang_up(_LEAVING)


def _order(held: Held) -> Begin:
    """Return what a child must know to make the attempt."""
    task = held.task
    return Begin(
        job=held.job,
        handler=handler_reference(task),
        context=task.context,
        timeout=task.timeout,
        # A class that another process can't find, no handler can raise there.
        retry_on=[found for kind in task.retry.on if (found := reference_to(kind)) is not None],
        retry_never=[found for kind in task.retry.never if (found := reference_to(kind)) is not None],
    )
