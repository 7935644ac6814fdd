"""The in-process front door: callables on threads of this program, with nothing to set up and nothing left behind.

    scheduler = TaskScheduler(num_workers=2)
    scheduler.start()
    task_id = scheduler.submit(Task("greet", print, args=("hello",), priority=TaskPriority.HIGH))
    scheduler.get_status(task_id)
    scheduler.stop()

It is a façade over the engine that runs everything else: an app on a SQLite file in a private temporary directory,
and a worker on it. Only what a file can't hold stays in memory: the callables of tasks that have not ended. So tasks
live as long as the program does; for jobs that outlive it, use `mainspring.Mainspring`. And a program that runs for
months does not grow by its history: what has ended is forgotten after a day or two.
"""

from __future__ import annotations

import asyncio
import inspect
import shutil
import tempfile
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

from mainspring.app import Mainspring
from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.errors import CancelRequested, InvalidValue, MainspringError, NotFound
from mainspring.model.duration import duration
from mainspring.model.ids import uuid7
from mainspring.model.job import Job, JobState, NewJob, Priority, Wish, check_priority
from mainspring.model.lifecycle import NO_RETRY
from mainspring.model.outcome import Snooze
from mainspring.model.payload import encode_call
from mainspring.model.retry import Retry
from mainspring.model.text import shortened
from mainspring.node import Node
from mainspring.store.protocol import JobFilter
from mainspring.worker.context import Context

__all__ = ["SchedulerStopped", "Task", "TaskPriority", "TaskScheduler", "TaskStatus"]

_CENTURY = timedelta(days=36_525)
_LEASE = timedelta(days=7)
"""Longer than this process may stand still: nobody else could take its tasks over."""

_KIND = "callable"
_NO_ARGUMENTS = encode_call((), {})

_RETENTION = timedelta(days=1)
_KEPT = 100_000
"""Tasks whose status can still be asked after `stop`: some 20 MB."""

_PAGE = 1_000


class TaskPriority(IntEnum):
    """How urgent a task is; among equals, the one that was due first is first."""

    LOW = Priority.LOW
    NORMAL = Priority.NORMAL
    HIGH = Priority.HIGH
    URGENT = Priority.URGENT


class TaskStatus(StrEnum):
    """Where a task is in its life."""

    PENDING = "PENDING"  # has not begun
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"  # has failed, and will be tried again
    SUCCEEDED = "SUCCEEDED"  # final
    FAILED = "FAILED"  # final: it raised, and has no retries left
    CANCELLED = "CANCELLED"  # final: by `cancel`, or because the scheduler stopped before it was done


_STATUSES = {
    JobState.BLOCKED: TaskStatus.PENDING,
    JobState.SCHEDULED: TaskStatus.PENDING,
    JobState.READY: TaskStatus.PENDING,
    JobState.RUNNING: TaskStatus.RUNNING,
    JobState.RETRYING: TaskStatus.RETRYING,
    JobState.PAUSED: TaskStatus.PENDING,
    JobState.SUCCEEDED: TaskStatus.SUCCEEDED,
    JobState.FAILED: TaskStatus.FAILED,
    JobState.CANCELLED: TaskStatus.CANCELLED,
    JobState.EXPIRED: TaskStatus.CANCELLED,  # nothing failed: its time passed before it could begin
}


class SchedulerStopped(MainspringError, RuntimeError):
    """A scheduler that was stopped is asked for something that it could only do before."""


@dataclass(eq=False)
class Task:
    """A callable to be run once, by one scheduler. Any callable will do, and so will whatever it returns.

    `max_retries` counts the runs after the first. The first retry comes `retry_delay_seconds` after the failure, and
    each later one after twice the wait before. A coroutine function is run to its end on a loop of its own. An
    exception that is no Exception, such as SystemExit, is not retried.

    Once it has succeeded, `result` is what the callable returned. `error` says what its last run raised, if it raised
    anything. `scheduler` is the one that it was submitted to.
    """

    name: str
    func: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] | None = None
    priority: int = TaskPriority.NORMAL
    max_retries: int = 0
    retry_delay_seconds: float = 1.0
    id: str = field(init=False)
    result: Any = field(init=False, default=None, repr=False)
    error: str | None = field(init=False, default=None, repr=False)
    scheduler: TaskScheduler | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.func):
            raise InvalidValue(f"expected func of task {self.name!r} to be callable, got: {shortened(self.func)}")
        if isinstance(self.args, str | bytes):
            raise InvalidValue(f"expected args to be a tuple, got {shortened(self.args)}; one argument is written (x,)")
        check_priority(self.priority)
        retries = self.max_retries
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidValue(f"expected max_retries to be a whole number of at least 0, got: {shortened(retries)}")
        duration(self.retry_delay_seconds, "retry_delay_seconds")
        self.id = str(uuid7(microseconds(SystemClock().now()) // 1000, random_bits(74)))

    @property
    def status(self) -> TaskStatus:
        """Where it is now; the same that `TaskScheduler.get_status` says, and for as long."""
        return TaskStatus.PENDING if self.scheduler is None else self.scheduler.get_status(self.id)


class TaskScheduler:
    """Runs tasks on *num_workers* threads: the most urgent first, and each when it is due.

    Tasks may be submitted before `start`, by any thread, and by tasks. A `with` block starts it, and ends with `stop`.
    """

    def __init__(self, num_workers: int = 4) -> None:
        if isinstance(num_workers, bool) or not isinstance(num_workers, int) or not 1 <= num_workers <= 10_000:
            raise InvalidValue(f"expected num_workers to be from 1 to 10,000, got: {shortened(num_workers)}")
        directory = tempfile.mkdtemp(prefix="mainspring-")
        # Also when the program ends, and when a scheduler that was never started is dropped.
        self._remove = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        self._app = Mainspring(f"sqlite:///{quote(str(Path(directory, 'tasks.db')))}?synchronous=normal")
        self._node = Node(
            self._app.client,
            self._app.tasks,
            {"concurrency": num_workers, "lease": _LEASE, "grace": _CENTURY, "retention": _RETENTION},
        )
        self._unfinished = _Unfinished()
        # Held around every use of the database, so that none comes after it was removed; never while waiting for
        # tasks, which may call us.
        self._lock = threading.Lock()
        self._stopping: threading.Thread | None = None
        self._kept: dict[UUID, TaskStatus] | None = None

    def start(self) -> None:
        """Begin to run tasks; does nothing when it has begun already."""
        with self._lock:
            self._check_not_stopped("started again; make a new one")
            if self._node.worker is None:
                self._node.start()

    def submit(self, task: Task) -> str:
        """Have *task* run as soon as a worker is free, and return its id."""
        return self._enqueue(task, None)

    def schedule_at(self, task: Task, when: datetime) -> str:
        """Have *task* run at *when*, or at once when that has passed; a time without a zone is local time."""
        if not isinstance(when, datetime):
            raise InvalidValue(f"expected when to be a datetime, got: {shortened(when)}")
        return self._enqueue(task, when.astimezone() if when.tzinfo is None else when)

    def cancel(self, task_id: str) -> bool:
        """Cancel a task that does not run at the moment; return whether that was possible.

        True means that it will not run any more. One that is running is let be, for nothing can end a thread
        safely, and False is returned; but it is not tried again: should it fail with retries left, it ends as
        CANCELLED. Also False for a task that has finished, or that is not known.
        """
        with self._lock:
            if self._kept is not None or not self._unfinished.withdraw(task_id):
                return False
            self._app.client.store.cancel([UUID(task_id)])
            return True

    def get_status(self, task_id: str) -> TaskStatus:
        """Return where the task is now, unfinished or finished.

        One that has ended is known for a day at least. It can still be asked after `stop`: about all that had not
        ended, and the latest 100,000.
        """
        try:
            job_id = UUID(task_id)
        except (ValueError, AttributeError, TypeError):
            raise _not_found(task_id) from None
        with self._lock:
            status = self._look(job_id) if self._kept is None else self._kept.get(job_id)
        if status is None:
            raise _not_found(task_id)
        return status

    def stop(self, wait: bool = True) -> None:
        """Begin no more tasks, let those that run end, and remove the temporary files.

        What has not begun by then never will, and what would be tried again is not: all of that counts as CANCELLED.
        With *wait* it returns when the last task has ended, otherwise at once, and they end in the background. A
        task that stops its own scheduler does not wait for itself.
        """
        with self._lock:
            if self._stopping is None:
                self._stopping = threading.Thread(target=self._wind_up, name="mainspring-stop", daemon=True)
                self._stopping.start()
        if wait and not self._unfinished.has_one_here():
            self._stopping.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _enqueue(self, task: Task, run_at: datetime | None) -> str:
        if not isinstance(task, Task):
            raise InvalidValue(f"expected a Task, got: {shortened(task)}")
        with self._lock:
            self._check_not_stopped(f"given task {task.name!r}")
            if task.scheduler is not None:
                raise InvalidValue(f"task {task.name!r} was submitted already; make another Task to run it again")
            if not len(self._app.tasks):
                self._app.task(name=_KIND, retry=NO_RETRY)(self._run)
            job = NewJob(
                id=UUID(task.id), task=_KIND, payload=_NO_ARGUMENTS, priority=int(task.priority), run_at=run_at
            )
            task.scheduler = self
            try:
                self._unfinished.add(task)  # first, for it may be run before the next line is over
                self._app.client.enqueue([job])
            except BaseException:
                self._unfinished.withdraw(task.id)
                task.scheduler = None
                raise
        return task.id

    def _run(self, ctx: Context) -> None:
        """What the engine runs in place of the callable: it can't carry just any argument or result.

        Nor does it know how a task is retried, for its own retries go by kind, and every task may have a delay of its
        own: to the engine, a retry is a snooze.
        """
        entry = self._unfinished.begin(str(ctx.job_id))
        if entry is None:
            raise CancelRequested("cancelled before it could begin")
        task = entry.task
        try:
            result = _call(task)
        except BaseException as error:
            if not isinstance(error, Snooze):
                task.error = "".join(traceback.format_exception_only(error)).strip()
            again = entry.after(error)
            if self._unfinished.end(task, again=again is not None):
                raise CancelRequested("cancelled while it ran") from error
            if again is None or again is error:
                raise
            raise again from error
        task.result, task.error = result, None
        self._unfinished.end(task, again=False)

    def _look(self, job_id: UUID) -> TaskStatus | None:
        entry = self._unfinished.find(str(job_id))  # first, for it is dropped before the database knows of the end
        job = self._app.client.store.get([job_id]).get(job_id)
        if job is None:
            return None
        if job.state is JobState.RUNNING:
            return _status_of_claimed(job, entry)
        status = _STATUSES[job.state]
        return _status_of_waiting(entry) if entry is not None and status is TaskStatus.PENDING else status

    def _wind_up(self) -> None:
        try:
            self._node.stop()
        finally:
            with self._lock:
                self._forget_all()

    def _forget_all(self) -> None:
        """Keep what there is to say about each task, or about the latest of very many, and remove everything else."""
        self._kept = dict.fromkeys(self._unfinished.ids(), TaskStatus.CANCELLED)
        try:
            for job in islice(self._jobs(), _KEPT):
                status = _STATUSES[job.state]
                self._kept[job.id] = status if job.state.final else TaskStatus.CANCELLED
        finally:
            self._app.close()
            self._unfinished = _Unfinished()
            self._remove()

    def _jobs(self) -> Iterator[Job]:
        """All that there were, the latest first."""
        before = None
        while len(self._app.tasks) and (page := self._app.client.page(JobFilter(), before, _PAGE)):
            yield from page
            before = page[-1].id

    def _check_not_stopped(self, what: str) -> None:
        if self._stopping is not None:
            raise SchedulerStopped(f"this scheduler was stopped, so it can't be {what}")


class _Entry:
    """A task that has not ended."""

    __slots__ = ("_retry", "cancelled", "failures", "task", "thread")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.failures = 0
        self.cancelled = False  # while it ran: it is not to be tried again
        self.thread: int | None = None  # where it runs; None while it waits, to begin or to be tried again
        base = duration(task.retry_delay_seconds, "retry_delay_seconds")
        self._retry = Retry(max_attempts=task.max_retries + 1, base=base, cap=_CENTURY, jitter=False)

    def after(self, error: BaseException) -> Snooze | None:
        """Return when to run again after a run that ended with *error*; None when that was the last."""
        if isinstance(error, Snooze):
            return error
        self.failures += 1
        if not (self._retry.covers(error) and self._retry.allows(self.failures)):
            return None
        return Snooze(self._retry.delay(self.failures, jitter=1.0))


class _Unfinished:
    """The tasks that have not ended, by id. Whether one may begin is decided here, under a lock."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def add(self, task: Task) -> None:
        with self._lock:
            self._entries[task.id] = _Entry(task)

    def begin(self, task_id: str) -> _Entry | None:
        """Return the task, which runs in this thread from now on; None when it was withdrawn."""
        with self._lock:
            entry = self._entries.get(task_id)
            if entry is None:
                return None
            entry.thread = threading.get_ident()
            return entry

    def end(self, task: Task, again: bool) -> bool:
        """Take note that a run is over, and whether it is to be done again; return whether that was cancelled."""
        with self._lock:
            entry = self._entries.get(task.id)
            if entry is None:
                return False
            if entry.cancelled or not again:
                del self._entries[task.id]
            else:
                entry.thread = None
            return entry.cancelled and again

    def withdraw(self, task_id: str) -> bool:
        """Drop a task that waits, so that it can't begin, and return True; see to it that one that runs is the last."""
        with self._lock:
            entry = self._entries.get(task_id)
            if entry is None:
                return False
            if entry.thread is None:
                del self._entries[task_id]
                return True
            entry.cancelled = True
            return False

    def find(self, task_id: str) -> _Entry | None:
        with self._lock:
            return self._entries.get(task_id)

    def ids(self) -> list[UUID]:
        with self._lock:
            return [UUID(task_id) for task_id in self._entries]

    def has_one_here(self) -> bool:
        """Return whether this thread runs one of them."""
        here = threading.get_ident()
        with self._lock:
            return any(entry.thread == here for entry in self._entries.values())


def _status_of_waiting(entry: _Entry) -> TaskStatus:
    return TaskStatus.RETRYING if entry.failures else TaskStatus.PENDING


def _status_of_claimed(job: Job, entry: _Entry | None) -> TaskStatus:
    """Return the status of a task that a worker has claimed, perhaps ahead of the time when a thread is free."""
    if job.wish is Wish.CANCEL:
        return TaskStatus.CANCELLED  # asked for only while it waits, see `cancel`; the worker will say the same
    return _status_of_waiting(entry) if entry is not None and entry.thread is None else TaskStatus.RUNNING


def _call(task: Task) -> Any:
    result = task.func(*task.args, **task.kwargs or {})
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def _not_found(task_id: object) -> NotFound:
    return NotFound(f"no task of this scheduler has the id {shortened(task_id)}")
