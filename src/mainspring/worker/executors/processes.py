"""Handlers in processes of their own, which can be killed, and can't take the worker with them when they die."""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from mainspring.clock import Clock
from mainspring.errors import InvalidValue, LeaseLost, PauseRequested, TimeExpired, WorkerStopped
from mainspring.model.job import Job
from mainspring.model.journal import LogLine
from mainspring.model.outcome import Failed, Lost, Outcome, Returned
from mainspring.traces import AttemptSpan, tracing
from mainspring.worker.execute import ending, expiry
from mainspring.worker.executors.executor import Host, take_all
from mainspring.worker.executors.messages import (
    Begin,
    Begun,
    Ended,
    Flush,
    FromChild,
    Logged,
    Progressed,
    Ready,
    Settled,
    Setup,
)
from mainspring.worker.executors.process import Process
from mainspring.worker.executors.references import handler_reference, reference_to
from mainspring.worker.executors.switchboard import Switchboard
from mainspring.worker.failure import failure_of
from mainspring.worker.held import Held, about

GRACE = 4.0
"""Seconds between asking an attempt to end and killing its process."""

_HASTE = 1.0
"""The same, where another worker may begin the job soon."""

IMPORTING = 60.0
"""Seconds that the import of a handler may take, or as long as its timeout if that is longer."""

_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds until the next start of a process, after one start that failed, two in a row, and so on."""

_LEAVING = 2.0
_COLLECTING = 0.01

log = logging.getLogger("mainspring.worker")


class ProcessExecutor:
    """Up to *slots* child processes, started as they are needed and kept for the next job.

    If *setup* limits the memory, each job gets a process of its own, and so all of that memory. The timeout of an
    attempt counts from when its handler was found, so that a slow import in a new process does not use it up. An
    attempt that is paused stands still, as does its time, and gives its slot away. A job whose process dies before it
    is ready has no part in that, and waits for another.
    """

    def __init__(self, slots: int, host: Host, clock: Clock, setup: Setup) -> None:
        self._slots = slots
        self._host = host
        self._clock = clock
        self._setup = setup
        self._queue: deque[Held] = deque()
        self._unfinished: set[Held] = set()
        self._processes: list[Process] = []
        self._spans: dict[Held, AttemptSpan] = {}
        self._frozen = 0
        self._failed_starts = 0
        self._start_after = 0.0
        self._closing = False
        self._making = threading.Lock()
        self._made: Switchboard | None = None

    @property
    def room(self) -> int:
        # While none can be started, what the processes at hand can't take is better left to other workers.
        most = self._slots if self._may_start else min(self._slots, len(self._processes) - self._frozen)
        return most - len(self._unfinished) + self._frozen

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, taken: Sequence[Held]) -> None:
        self._unfinished.update(taken)
        self._queue.extend(taken)
        self._switchboard.wake()

    def take_back(self) -> list[Held]:
        taken = take_all(self._queue)
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
    def _may_start(self) -> bool:
        return self._clock.steady() >= self._start_after

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
            if process.held is not None and process.expire_at <= now:
                self._expire(process, process.held)
            if process.kill_at <= now:
                self._kill(process)
        for process in [process for process in self._processes if process.over and process.collect()]:
            self._lay_to_rest(process)
        self._start_waiting()
        for process in self._processes:
            if not process.over:
                self._switchboard.attend(process.line, to_speak=process.has_more_to_say)
        if self._closing and not self._processes:
            self._switchboard.end()
        return self._until_due()

    def _until_due(self) -> float:
        if any(process.over for process in self._processes):
            return _COLLECTING
        start_at = self._start_after if self._queue and not self._may_start else math.inf
        due = [min(process.expire_at, process.kill_at) for process in self._processes]
        return max(0.0, min([start_at, *due]) - self._clock.steady())

    def _start_waiting(self) -> None:
        while self._queue and (process := self._free_process()) is not None:
            try:
                held = self._queue.popleft()
            except IndexError:
                return  # taken back
            self._give(process, held)

    def _free_process(self) -> Process | None:
        """Return a process that is free, started if need be; None when there can't be any more now."""
        for process in self._processes:
            if process.idle:
                return process
        # One that dies before it is ready keeps its slot until it is gone: only then do we know to hold back.
        staying = sum(not process.leaving or not process.ready for process in self._processes)
        if staying - self._frozen >= self._slots or self._closing or not self._may_start:
            return None
        try:
            process = Process(self._setup, self._clock)
        except OSError as error:
            self._hold_back(f"can't start a process: {error}")
            return None
        self._processes.append(process)
        self._switchboard.connect(process.line, lambda: self._hear(process), process.speak)
        return process

    def _hold_back(self, why: str) -> None:
        """Start no process for a while, which is longer each time until one gets ready."""
        if self._may_start:  # else this one was started together with another that came to nothing
            pause = _PAUSES[min(self._failed_starts, len(_PAUSES) - 1)]
            self._failed_starts += 1
            self._start_after = self._clock.steady() + pause
            log.warning("%s; trying again in %g s", why, pause)

    def _give(self, process: Process, held: Held) -> None:
        process.held = held
        held.interrupt = lambda stop: self._switchboard.tell(lambda: self._interrupt(process, held, stop))
        stop = held.stop  # it may have come before anybody could have told us
        if stop is not None:
            self._end(process, held, ending(held.task, stop, held.stop))
        elif process.ready:
            self._begin(process, held)

    def _welcome(self, process: Process) -> None:
        process.got_ready()
        self._failed_starts = 0
        if process.held is not None:
            self._begin(process, process.held)

    def _begin(self, process: Process, held: Held) -> None:
        try:
            order = _order(held, self._traced(held))
        except InvalidValue as error:
            self._end(process, held, Failed(failure_of(error, held.task.name), retryable=False))
            return
        if process.begin(order):
            process.allow(_time_to_import(held))
        else:
            self._put_back(process, held)

    def _traced(self, held: Held) -> Job:
        """Begin the span of an attempt, and return its job with that for the child: here it ends whatever happens."""
        makes = tracing()
        if makes is None:
            return held.job
        span = self._spans[held] = makes.begin(held.job)
        return replace(held.job, trace=span.traceparent or held.job.trace)

    def _end_span(self, held: Held, outcome: Outcome | None) -> None:
        span = self._spans.pop(held, None)
        if span is not None:
            span.end(outcome)

    def _put_back(self, process: Process, held: Held) -> None:
        """Let *held*, of which its process has heard nothing, be the next to start."""
        process.let_off()
        held.interrupt = None
        self._end_span(held, Returned())
        self._queue.appendleft(held)

    def _interrupt(self, process: Process, held: Held, stop: BaseException | None) -> None:
        if process.held is not held or process.over:
            return
        if stop is None:
            self._thaw(process)
        elif not process.ready:
            self._end(process, held, ending(held.task, stop, held.stop))
        elif isinstance(stop, PauseRequested):
            self._pause(process, held)
        else:
            self._thaw(process)
            process.interrupt(stop, _HASTE if isinstance(stop, LeaseLost | WorkerStopped) else GRACE)

    def _expire(self, process: Process, held: Held) -> None:
        process.expire_at = math.inf
        if process.begun:
            held.end(expiry(held.task))
        else:
            limit = _time_to_import(held)
            held.end(TimeExpired(f"its handler was not found in time: to import it took longer than {limit:g} s"))

    def _kill(self, process: Process) -> None:
        if process.killed:
            # The system keeps it, as while a disk does not answer; its fence keeps it from recording anything.
            self._leave(process)
        process.kill()

    def _pause(self, process: Process, held: Held) -> None:
        if process.stop is None and not process.frozen:
            process.freeze()
            held.frozen = True
            self._frozen += 1
            self._host.hungry(self)

    def _thaw(self, process: Process) -> None:
        if process.frozen:
            process.thaw()
            self._frozen -= 1
            if process.held is not None:
                process.held.frozen = False

    def _hear(self, process: Process) -> None:
        for message in process.receive():
            if isinstance(message, Ready):
                self._welcome(process)
            elif process.held is not None:
                self._take(process, process.held, message)
        if process.over:
            self._switchboard.disconnect(process.line)

    def _take(self, process: Process, held: Held, message: FromChild) -> None:
        match message:
            case Begun():
                process.begun = True
                held.began = self._clock.steady()
                process.allow(_timeout(held))
            case Logged(line, keep, log_it):
                if keep:
                    self._host.record(line)
                if log_it:
                    _log(held, line)
            case Progressed(progress):
                self._host.record(progress)
            case Flush():
                # Not here: the database may let it wait, and so all other children.
                threading.Thread(target=self._flush, args=(process, held), name="mainspring-flush", daemon=True).start()
            case Settled():
                self._host.succeeded(held)
            case Ended(last=last):
                self._end(process, held, message.outcome)
                # What was stopped in its midst may have left anything behind: locks, processes, half a module.
                if last or process.stop is not None:
                    process.hang_up(_LEAVING)

    def _flush(self, process: Process, held: Held) -> None:
        """On a thread of its own, have what the child has said written, and tell it."""
        self._host.flush()
        self._switchboard.tell(lambda: process.flushed() if process.held is held else None)

    def _lay_to_rest(self, process: Process) -> None:
        self._processes.remove(process)
        if not process.ready and not self._closing:
            self._hold_back(f"a process was not ready for jobs yet when it ended: {process.fate()}")
        self._leave(process)

    def _leave(self, process: Process) -> None:
        """See to the job of a process that will not."""
        held = process.held
        if held is None:
            return
        if process.stop is not None:
            self._end(process, held, ending(held.task, process.stop, held.stop))
        elif process.ready:
            self._end(process, held, Lost(process.fate()))
        else:
            self._put_back(process, held)

    def _end(self, process: Process, held: Held, outcome: Outcome | None) -> None:
        self._thaw(process)
        process.let_off()
        held.interrupt = None
        self._unfinished.discard(held)
        self._end_span(held, outcome)
        if held.began:
            held.took = self._clock.steady() - held.began
        self._host.ended(held, None if isinstance(held.stop, LeaseLost) else outcome)
        self._host.hungry(self)

    def _forget(self, held: Held) -> None:
        for process in self._processes:
            if process.held is held:
                self._thaw(process)
                process.let_off()
                process.kill()
        held.interrupt = None
        self._end_span(held, None)
        self._unfinished.discard(held)
        self._host.hungry(self)

    def _end_all(self) -> None:
        self._closing = True
        for process in self._processes:
            self._thaw(process)
            process.hang_up(_LEAVING)


def _order(held: Held, job: Job) -> Begin:
    """Return what a child must know to make the attempt, with the *job* as it is to see it."""
    task = held.task
    return Begin(
        job=job if held.revealed is None else replace(job, payload=held.revealed),
        handler=handler_reference(task),
        context=task.context,
        timeout=task.timeout,
        start_by=held.start_by,
        secrets=held.secrecy.values,
        sealed=held.secrecy.sealed,
        # A class that another process can't find, no handler can raise there.
        retry_on=[found for kind in task.retry.on if (found := reference_to(kind)) is not None],
        retry_never=[found for kind in task.retry.never if (found := reference_to(kind)) is not None],
    )


def _timeout(held: Held) -> float:
    return math.inf if held.task.timeout is None else held.task.timeout.total_seconds()


def _time_to_import(held: Held) -> float:
    return IMPORTING if held.task.timeout is None else max(IMPORTING, _timeout(held))


def _log(held: Held, line: LogLine) -> None:
    """Log *line* here, because a program sets up its log where it starts, and a child does not start there."""
    level = logging.getLevelNamesMapping().get(line.level.upper(), logging.INFO)
    logging.getLogger(line.logger or f"mainspring.job.{held.job.task}").log(
        level, "%s", line.message, extra=about(held.job)
    )
