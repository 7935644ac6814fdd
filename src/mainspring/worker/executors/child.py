"""A child process of a worker: makes attempts, one at a time, for the worker at the other end of a socket.

The main thread calls the handlers, so that a signal can end them. A second thread listens to the worker.
"""

from __future__ import annotations

import asyncio
import contextvars
import faulthandler
import fcntl
import inspect
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, TypeVar

from mainspring.clock import SystemClock
from mainspring.errors import InvalidValue
from mainspring.keys import Keyring
from mainspring.model.job import Job
from mainspring.model.journal import LogLine, Progress
from mainspring.model.outcome import Outcome
from mainspring.model.retry import Retry
from mainspring.model.task import Task
from mainspring.store import Store, open_store
from mainspring.store.open import keyring
from mainspring.traces import continue_trace
from mainspring.worker.attempt import RecordingAttempt
from mainspring.worker.capture import Capture, unheard
from mainspring.worker.context import Context, JobLog
from mainspring.worker.execute import call, check_in_time, ending, success
from mainspring.worker.executors.messages import (
    Begin,
    Begun,
    Ended,
    Flush,
    Flushed,
    Frames,
    FromChild,
    Logged,
    Progressed,
    Ready,
    Settled,
    Setup,
    Stop,
    TimeLeft,
    ToChild,
    frame,
    to_child,
)
from mainspring.worker.executors.references import find
from mainspring.worker.held import Held
from mainspring.worker.secrecy import Secrecy

T = TypeVar("T")

_CHUNK = 65_536
_FLUSH = 10.0
"""Seconds to wait for the worker's answer, which has a limit of its own: what was said is not worth a job."""


def main() -> None:
    """Serve the worker that started us: our arguments are a socket, a leash, its process id, and its own arguments."""
    line, leash, worker = (int(argument) for argument in sys.argv[2:5])
    sys.argv[:] = sys.argv[5:]
    _tie_to(worker, leash)
    faulthandler.enable()
    _leave_job_logs_to_worker()
    os.set_inheritable(line, False)
    Child(socket.socket(fileno=line)).serve()


class Child:
    """The child's side of the line."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._sending = threading.Lock()
        self._flushed = threading.Event()
        self._orders: SimpleQueue[Setup | Begin | None] = SimpleQueue()
        self._stopper = Stopper()
        self._clock = SystemClock()
        self._context: Context | None = None  # of the present or last attempt
        self._tasks: dict[str, Task] = {}
        self._database = ""
        self._keys = Keyring(None)
        self._opened: Store | None = None
        self._limit: int | None = None
        self._capture: Capture | None = None
        os.register_at_fork(after_in_child=self._after_fork)

    def serve(self) -> None:
        """Make the attempts that the worker asks for, until it hangs up."""
        threading.Thread(target=self._listen, name="mainspring-line", daemon=True).start()
        while (order := self._orders.get()) is not None:
            if isinstance(order, Begin):
                outcome = self._attempt(order)
                _flush_output()
                self.send(Ended.with_outcome(outcome, last=self._limit is not None))
            else:
                self._prepare(order)
        if self._opened is not None:
            self._opened.close()

    def send(self, message: FromChild) -> None:
        """Tell the worker. Called by the handler, from any thread of its."""
        data = frame(message)
        # A stop that came in the midst of a message would leave half of it on the line.
        with self._stopper.held_off(), self._sending:
            self._line.sendall(data)

    def flush(self) -> None:
        """Wait until the worker has written what was said so far, for a while at most. Called like `send`."""
        self._flushed.clear()
        self.send(Flush())
        self._flushed.wait(_FLUSH)

    @property
    def store(self) -> Store:
        if self._opened is None:
            self._opened = open_store(self._database)
        return self._opened

    def _prepare(self, setup: Setup) -> None:
        """Make ready for handlers, and say so before anything of theirs is imported: that may be what kills us."""
        self._database, self._limit = setup.url, setup.memory
        self._keys = keyring(setup.url)
        os.environ["MAINSPRING_URL"] = setup.url  # for an app that names no database: the worker may have been told one
        if setup.capture is not None:
            self._capture = Capture(setup.capture, _log_of, instead=True)
        _limit_memory(setup.memory)
        self.send(Ready())

    def _attempt(self, order: Begin) -> Outcome | None:
        task, self._context = _unknown(order.job.task), None
        secrecy = Secrecy(order.job.id, order.job.task, order.secrets, self._keys if order.sealed else None)
        try:
            self._stopper.open()
            task = self._task(order)
            check_in_time(order.job, order.start_by)  # here, because to import the handler may take long
            self.send(Begun())
            outcome = success(task, self._call(task, order, secrecy), self._context, secrecy)
            self._stopper.shut()
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome, and the child goes on
            self._stopper.shut()
            details = None if self._context is None else self._context.details
            return ending(task, self._explained(error), self._stopper.stop, details, secrecy)
        return outcome

    def _call(self, task: Task, order: Begin, secrecy: Secrecy) -> Any:
        deadline = None if order.timeout is None else self._clock.now() + order.timeout
        awaits = inspect.iscoroutinefunction(task.handler)
        attempt = _Attempt(self, self._stopper, order.job)
        context = self._context = Context(order.job, attempt, deadline, awaits=awaits, secrecy=secrecy)
        held = Held(order.job, task)
        held.log = context.log
        if self._capture is not None:
            _listen_by(self._capture)
        # In a context of its own, so that no job finds context variables as another has left them.
        own = contextvars.Context()
        own.run(continue_trace, order.job)
        try:
            result = own.run(call, task, order.job.payload, context, held)
            return own.run(asyncio.run, result) if awaits else result
        finally:
            held.settled = True

    def _task(self, order: Begin) -> Task:
        """Return the task as the worker knows it, with the handler as it is found here."""
        name = order.job.task
        if name not in self._tasks:
            self._tasks[name] = Task(
                name=name,
                handler=find(order.handler),
                context=order.context,
                retry=Retry(
                    on=tuple(find(kind) for kind in order.retry_on),
                    never=tuple(find(kind) for kind in order.retry_never),
                ),
            )
        return self._tasks[name]

    def _explained(self, error: BaseException) -> BaseException:
        """Return *error*, with a word about the limit if it is one of memory."""
        if self._limit is None or not isinstance(error, MemoryError):
            return error
        _limit_memory(None)  # there must be room to say so
        limit = f"the attempt needed more than the {self._limit / 1_000_000:,.0f} MB of memory that it may use"
        return MemoryError(limit).with_traceback(error.__traceback__)

    def _listen(self) -> None:
        for message in self._incoming():
            match message:
                case Stop():
                    self._stopper.send(message.exception())
                case TimeLeft(seconds):
                    if self._context is not None:
                        self._context.deadline = self._clock.now() + timedelta(seconds=seconds)
                case Flushed():
                    self._flushed.set()
                case Begin():
                    self._stopper.expect()
                    self._orders.put(message)
                case Setup():
                    self._orders.put(message)
        if self._stopper.expecting:
            os.killpg(0, signal.SIGKILL)  # nobody would hear what the attempt comes to
        self._orders.put(None)

    def _incoming(self) -> Iterator[ToChild]:
        frames = Frames()
        with suppress(OSError):
            while data := self._line.recv(_CHUNK):
                for message in frames.feed(data):
                    yield to_child.decode(message)

    def _after_fork(self) -> None:
        """Leave the line and the stops to the child proper, in a process that a handler has forked."""
        self._line.close()
        self._stopper.leave()


class Stopper:
    """Ends an attempt from outside: raises in the main thread, once at most, what the worker sent.

    The signal goes to the whole process group, so to what the handler has started as well. One that comes from
    anywhere else, as when a service manager stops the worker with all that belongs to it, ends nothing here.
    """

    def __init__(self) -> None:
        self.stop: BaseException | None = None
        self.expecting = False
        self._open = False
        self._raised = False
        self._busy = False
        self._late = False
        signal.signal(signal.SIGTERM, self._raise)

    def expect(self) -> None:
        """Be ready for a stop of the attempt that was asked for. Called by the listening thread, as is `send`."""
        self.stop = None
        self._raised = self._late = False
        self.expecting = True

    def send(self, stop: BaseException) -> None:
        """End the attempt because of *stop*."""
        if self.expecting:
            self.stop = stop
            os.killpg(0, signal.SIGTERM)

    def open(self) -> None:
        """Let the stop through from now on, also one that has come already."""
        signal.signal(signal.SIGTERM, self._raise)  # each time: a handler may have set its own
        self._open = True
        self._raise()

    def shut(self) -> None:
        self._open = self.expecting = False

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Let the block end before a stop is raised."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._late:
            self._raise()

    def leave(self) -> None:
        if signal.getsignal(signal.SIGTERM) == self._raise:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _raise(self, *_: object) -> None:
        if self.stop is None or not self._open or self._raised:
            return
        self._late = self._busy
        if not self._busy:
            self._raised = True
            raise self.stop


class _Attempt(RecordingAttempt):
    """An attempt at the other end of the line, which also carries what is only to be logged."""

    def __init__(self, child: Child, stopper: Stopper, job: Job) -> None:
        super().__init__(job, lambda: child.store)
        self._child = child
        self._stopper = stopper

    def stop(self) -> BaseException | None:
        return self._stopper.stop

    def say(self, entry: LogLine | Progress, *, keep: bool) -> None:
        if isinstance(entry, Progress):
            self._child.send(Progressed(entry))
        else:
            self._child.send(Logged(entry, keep, log=entry.logger is None or unheard(entry.logger)))

    def flush(self) -> None:
        self._child.flush()

    def with_store(self, work: Callable[[Store], T]) -> T:
        # A stop in the midst of a call would leave a connection behind that nobody could use.
        with self._stopper.held_off():
            return super().with_store(work)

    def succeeded(self) -> None:
        self._child.send(Settled())


def _tie_to(worker: int, leash: int) -> None:
    """See to it that this process and what it starts do not outlive *worker*, whatever they may be doing then.

    The listening thread notices when the line is cut, but it may be kept from running, or stand still in a pause. So
    we have the system send a signal to our process group when the other end of the leash is closed. A signal on the
    parent's death would come to this process alone, and with it the leash would be gone.
    """
    os.set_inheritable(leash, False)
    if sys.platform == "linux":
        fcntl.fcntl(leash, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(leash, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(leash, fcntl.F_SETFL, fcntl.fcntl(leash, fcntl.F_GETFL) | os.O_ASYNC)
    if os.getppid() != worker:
        os._exit(1)  # it died before we were ready


def _limit_memory(limit: int | None) -> None:
    """Let this process use up to *limit* bytes. Memory that is only set aside does not count."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    soft = most if limit is None else limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, most))


def _log_of(held: Held) -> JobLog | None:
    return None if held.settled else held.log


def _listen_by(capture: Capture) -> None:
    """Have records kept, once what the handler's module does to logging is done: it may do so before each attempt.

    Where it leaves logging alone, nobody else will say from which level on there are records at all.
    """
    if not logging.root.handlers:
        logging.root.setLevel(capture.level)
    capture.install()


def _leave_job_logs_to_worker() -> None:
    said = logging.getLogger("mainspring.job")
    said.propagate = False
    said.addHandler(logging.NullHandler())


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _unknown(name: str) -> Task:
    """Return what stands for a task until its handler is found. A name that leads nowhere never will."""
    return Task(name=name, handler=_unknown, retry=Retry(never=(InvalidValue,)))
