"""Interruption: a handler on a thread is ended in its midst, but never where it would leave a lock behind."""

from __future__ import annotations

import io
import logging
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.cookiejar import CookieJar
from typing import Any, Protocol

import pytest

from mainspring.errors import CancelRequested, TimeExpired
from mainspring.model.task import Task
from mainspring.worker.execute import call
from mainspring.worker.executors.interruption import Interruption
from tests.support.waiting import until

NO_ARGUMENTS = '{"args":[],"kwargs":{}}'


class Handler:
    """A handler that runs on a thread of its own, and what it raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._task = Task(name="work", handler=work)
        self._made = threading.Event()
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self._made.wait()

    @property
    def innermost(self) -> str:
        """The name of the function in which the thread is."""
        return sys._current_frames()[self.thread.ident or 0].f_code.co_name

    def tell(self) -> None:
        self.interruption.send(TimeExpired("too late"))

    def keep_telling(self) -> None:
        """Tell it until it has heard, as the watch does, or for long enough to see that it never will."""
        for _ in range(500):
            self.tell()
            if self.interruption._sent:
                return
            time.sleep(0.001)

    def _run(self) -> None:
        self.interruption = Interruption()
        self._made.set()
        try:
            try:
                call(self._task, NO_ARGUMENTS, None)
            finally:
                self.interruption.shut()
        except BaseException as error:  # noqa: BLE001
            self.error = error


class Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


# Locks that outlive a test are exchanged for it: one that is left locked must not stop what follows, nor the report.
Guarded = tuple[Lock, Callable[[], object]]


def lock_of_a_log(monkeypatch: pytest.MonkeyPatch) -> Guarded:
    log, handler, lock = logging.Logger("of the test"), logging.StreamHandler(io.StringIO()), threading.RLock()
    monkeypatch.setattr(handler, "lock", lock)
    log.addHandler(handler)
    return lock, lambda: log.warning("hello")


def lock_of_logging(monkeypatch: pytest.MonkeyPatch) -> Guarded:
    lock = threading.RLock()
    monkeypatch.setattr(logging, "_lock", lock)
    return lock, lambda: logging.getLogger("one that nobody has asked for yet")


def lock_of_a_condition(_: pytest.MonkeyPatch) -> Guarded:
    lock = threading.Lock()
    condition = threading.Condition(lock)

    def notify() -> None:
        with condition:
            condition.notify()

    return lock, notify


def lock_of_a_queue(_: pytest.MonkeyPatch) -> Guarded:
    made: queue.Queue[int] = queue.Queue()
    return made.mutex, lambda: made.put(1)


def lock_of_cookies(_: pytest.MonkeyPatch) -> Guarded:
    jar: Any = CookieJar()
    return jar._cookies_lock, jar.clear_expired_cookies


def lock_of_temporary_files(monkeypatch: pytest.MonkeyPatch) -> Guarded:
    module: Any = tempfile
    lock = threading.Lock()
    monkeypatch.setattr(module, "_once_lock", lock)
    monkeypatch.setattr(module, "_name_sequence", None)
    return lock, module._get_candidate_names


@pytest.mark.parametrize(
    "make",
    [
        lock_of_a_log,
        lock_of_logging,
        lock_of_a_condition,
        lock_of_a_queue,
        lock_of_cookies,
        lock_of_temporary_files,
    ],
)
def test_a_lock_that_python_takes_for_a_handler_is_not_left_locked(
    make: Callable[[pytest.MonkeyPatch], Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception would arrive with the lock in hand, just before whoever took it is ready to give it back."""
    lock, work = make(monkeypatch)
    lock.acquire()
    blocked = threading.Event()

    def handler() -> None:
        blocked.set()
        work()

    running = Handler(handler)
    blocked.wait()
    until(lambda: running.innermost != "handler")
    for _ in range(50):
        time.sleep(0.001)
        running.tell()
    lock.release()
    running.thread.join()

    assert lock.acquire(blocking=False)
    lock.release()


def test_a_handler_that_waits_for_an_event_is_interrupted_as_soon_as_it_wakes() -> None:
    condition = threading.Condition()

    def wait() -> None:
        with condition:
            condition.wait()

    running = Handler(wait)
    running.keep_telling()
    with condition:
        condition.notify()
    running.thread.join()

    assert isinstance(running.error, TimeExpired)
    assert condition.acquire(blocking=False)


def test_a_handler_that_is_called_by_a_log_is_interrupted_and_the_log_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, stop = threading.Event(), threading.Event()

    class Endless(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            entered.set()
            while not stop.is_set():
                pass

    log, handler, lock = logging.Logger("of the test"), Endless(), threading.RLock()
    monkeypatch.setattr(handler, "lock", lock)
    log.addHandler(handler)
    running = Handler(lambda: log.warning("hello"))
    entered.wait()
    running.keep_telling()
    stop.set()
    running.thread.join()

    assert isinstance(running.error, TimeExpired)
    assert lock.acquire(blocking=False)


def test_a_thread_that_is_not_in_its_handler_is_left_alone() -> None:
    """It may be about to begin, or to report what became of the handler."""
    made: list[Interruption] = []
    stop, errors = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            made.append(Interruption())
            while not stop.is_set():
                pass
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: made)
    for _ in range(50):
        made[0].send(TimeExpired("too late"))
        time.sleep(0.001)
    stop.set()
    thread.join()

    assert errors == []


def test_only_the_end_of_its_time_interrupts_a_handler() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            pass

    running = Handler(work)
    for _ in range(50):
        running.interruption.send(CancelRequested("cancelled"))
        running.interruption.send(None)
        time.sleep(0.001)
    stop.set()
    running.thread.join()

    assert running.error is None


def test_what_is_sent_too_late_never_arrives() -> None:
    running = Handler(lambda: None)
    running.thread.join()

    running.tell()

    assert running.error is None
    assert not running.interruption._sent
