"""The process executor by itself, on a clock that the test moves: starts that fail, and attempts that take too long."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.errors import CancelRequested, PauseRequested, WorkerStopped
from mainspring.handler import context_of
from mainspring.model.outcome import Cancelled, Outcome, Paused, Returned, Succeeded, TimedOut
from mainspring.model.task import Task
from mainspring.store import open_store
from mainspring.testing import SettableClock
from mainspring.worker.executors import process, processes
from mainspring.worker.executors.messages import Setup, TimeLeft, frame
from mainspring.worker.executors.process import Process
from mainspring.worker.executors.processes import ProcessExecutor
from mainspring.worker.held import Held
from tests.support.factories import claimed_job
from tests.support.waiting import until
from tests.worker import process_tasks
from tests.worker.children import endless_to_import, read
from tests.worker.hosts import ListHost

MINUTE = 60.0


class Host(ListHost):
    """Knows also which job came to what."""

    def __init__(self) -> None:
        super().__init__()
        self.by_job: dict[Held, Outcome | None] = {}

    def ended(self, held: Held, outcome: Outcome | None) -> None:
        super().ended(held, outcome)
        self.by_job[held] = outcome

    def outcome(self, held: Held) -> Outcome | None:
        """Return what *held* came to, having waited for it."""
        until(lambda: held in self.by_job)
        return self.by_job[held]


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def executor(host: Host, clock: SettableClock, sqlite_url: str) -> Iterator[ProcessExecutor]:
    """An executor with two slots."""
    made = ProcessExecutor(2, host, clock, Setup(sqlite_url, None))
    yield made
    for child in list(made._processes):
        made._switchboard.tell(child.kill)  # nobody else will, while the clock stands still
    made.close()


@pytest.fixture
def hold(sqlite_url: str) -> Callable[..., Held]:
    def hold(handler: Callable[..., Any], *args: object, timeout: timedelta | None = None) -> Held:
        task = Task(name=handler.__name__, handler=handler, context=context_of(handler), timeout=timeout)
        store = open_store(sqlite_url)
        job = claimed_job(store, task=task.name, payload=task.encode(*args))
        store.close()
        return Held(job, task)

    return hold


def turn(executor: ProcessExecutor) -> None:
    """Have the executor take in all that has come, and do what is due by now."""
    for _ in range(2):
        done = threading.Event()
        executor._switchboard.tell(done.set)
        done.wait()


@contextmanager
def none_starting() -> Iterator[None]:
    """Let every process end before it has begun, while the block lasts."""
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        yield


@contextmanager
def none_getting_ready() -> Iterator[None]:
    """Let every process that is started while the block lasts do nothing, for ever."""
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(process, "_PROGRAM", "import signal; signal.pause()")
        yield


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().rpartition("; ")[2] for record in caplog.records if record.levelno == logging.WARNING]


# --- processes that do not get ready -----------------------------------------------------------------------------


def test_jobs_whose_processes_can_not_start_wait_longer_each_time_until_one_gets_ready(
    executor: ProcessExecutor,
    host: Host,
    hold: Callable[..., Held],
    clock: SettableClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    jobs = [hold(process_tasks.pid), hold(process_tasks.pid)]

    with none_starting():
        executor.put(jobs)
        turn(executor)
        for pause in (1, 2, 5, 10, 30, 30):
            until(lambda: executor.waiting == 2 and not executor._processes)
            turn(executor)
            assert executor.waiting == 2
            clock.advance(pause)
            turn(executor)
        until(lambda: executor.waiting == 2 and not executor._processes)

    assert warnings(caplog) == [f"trying again in {pause} s" for pause in (1, 2, 5, 10, 30, 30, 30)]
    assert not host.outcomes
    assert executor.room < 0  # others may be able to run what is due
    clock.advance(30)
    turn(executor)
    assert all(isinstance(host.outcome(job), Succeeded) for job in jobs)
    assert executor.room == 2

    with none_starting():
        for child in executor._processes:
            child.kill()
        executor.put([again := hold(process_tasks.pid)])
        until(lambda: len(warnings(caplog)) == 8)
    assert warnings(caplog)[-1] == "trying again in 1 s"
    clock.advance(1)
    turn(executor)
    assert isinstance(host.outcome(again), Succeeded)


def test_a_job_that_was_put_back_is_the_next_to_start_and_may_be_taken_back(
    executor: ProcessExecutor,
    hold: Callable[..., Held],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collect, dead = Process.collect, threading.Event()
    monkeypatch.setattr(Process, "collect", lambda process: dead.is_set() and collect(process))
    jobs = [hold(process_tasks.pid) for _ in range(3)]
    with none_getting_ready():
        executor.put(jobs)
        until(lambda: executor.waiting == 1)
    for child in list(executor._processes):
        os.kill(child._popen.pid, signal.SIGKILL)
    until(lambda: all(child.over for child in executor._processes))
    turn(executor)
    assert executor.waiting == 1  # what is dying has its slot still
    dead.set()
    until(lambda: executor.waiting == 3)

    assert executor._queue[-1] is jobs[2]
    assert set(executor.take_back()) == set(jobs)
    assert (executor.waiting, executor.room) == (0, 0)  # and no more of them, as long as no process can start


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        (CancelRequested("enough"), Cancelled()),
        (PauseRequested("wait"), Paused()),
        (WorkerStopped("the end"), Returned()),
    ],
)
def test_a_job_whose_process_is_not_ready_yet_is_stopped_at_once(
    executor: ProcessExecutor,
    host: Host,
    hold: Callable[..., Held],
    stop: BaseException,
    outcome: Outcome,
) -> None:
    waiting, stopped_before = hold(process_tasks.pid), hold(process_tasks.pid)
    with none_getting_ready():
        executor.put([waiting])
        until(lambda: waiting.interrupt is not None)
    waiting.end(stop)
    stopped_before.end(stop)
    executor.put([stopped_before])

    assert host.outcome(waiting) == host.outcome(stopped_before) == outcome
    assert len(executor._processes) == 1


def test_a_process_that_does_not_get_ready_is_given_up(
    executor: ProcessExecutor,
    host: Host,
    hold: Callable[..., Held],
    clock: SettableClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = hold(process_tasks.pid)
    with none_getting_ready():
        executor.put([job])
        until(lambda: executor._processes)
        clock.advance(process.STARTING)
        turn(executor)
        until(lambda: warnings(caplog))

    assert "was killed by SIGKILL after 60.0 s" in caplog.text
    clock.advance(1)
    turn(executor)
    assert isinstance(host.outcome(job), Succeeded)


# --- attempts that take too long ---------------------------------------------------------------------------------


def test_after_a_pause_an_attempt_has_the_rest_of_its_time(
    executor: ProcessExecutor, host: Host, hold: Callable[..., Held], clock: SettableClock, tmp_path: Path
) -> None:
    job = hold(process_tasks.count, str(tmp_path), timeout=timedelta(hours=1))
    executor.put([job])
    read(tmp_path / "counted")
    turn(executor)

    clock.advance(40 * MINUTE)
    job.end(PauseRequested("wait"))
    until(lambda: job.frozen)
    clock.advance(100 * MINUTE)
    turn(executor)
    job.go_on()
    turn(executor)
    clock.advance(19 * MINUTE)
    turn(executor)
    assert (job.frozen, job.stop, executor._processes[0].stop) == (False, None, None)

    clock.advance(1 * MINUTE)
    turn(executor)
    outcome = host.outcome(job)
    assert isinstance(outcome, TimedOut)
    assert outcome.failure.message == "the attempt took longer than its timeout of 3600 s"


def test_after_a_pause_a_handler_sees_the_deadline_that_it_has_then(
    executor: ProcessExecutor,
    host: Host,
    hold: Callable[..., Held],
    clock: SettableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[bytes] = []
    send = Process._send

    def tell(process: Process, data: bytes) -> bool:
        told.append(data)
        return send(process, data)

    monkeypatch.setattr(Process, "_send", tell)
    job = hold(process_tasks.watch_deadline, str(tmp_path), timeout=timedelta(hours=1))
    executor.put([job])
    read(tmp_path / "first")
    turn(executor)

    clock.advance(40 * MINUTE)
    job.end(PauseRequested("wait"))
    until(lambda: job.frozen)
    clock.advance(100 * MINUTE)
    job.go_on()

    assert isinstance(host.outcome(job), Succeeded)
    assert told[-1] == frame(TimeLeft(20 * MINUTE))
    assert read(tmp_path / "moved") != read(tmp_path / "first")


@pytest.mark.parametrize(("timeout", "limit"), [(None, 60), (timedelta(seconds=1), 60), (timedelta(hours=1), 3600)])
def test_the_import_of_a_handler_has_a_limit_too(
    executor: ProcessExecutor,
    host: Host,
    hold: Callable[..., Held],
    clock: SettableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    timeout: timedelta | None,
    limit: int,
) -> None:
    job = hold(endless_to_import(tmp_path, monkeypatch), timeout=timeout)
    executor.put([job])
    read(tmp_path / "importing")
    turn(executor)

    clock.advance(limit - 1)
    turn(executor)
    assert job.stop is None

    clock.advance(1)
    turn(executor)
    outcome = host.outcome(job)
    assert isinstance(outcome, TimedOut)
    assert outcome.failure.message == (f"its handler was not found in time: to import it took longer than {limit} s")


def test_a_process_that_can_not_be_killed_is_no_longer_waited_for(
    executor: ProcessExecutor,
    host: Host,
    hold: Callable[..., Held],
    clock: SettableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deaf, others = hold(process_tasks.deaf, str(tmp_path)), [hold(process_tasks.pid) for _ in range(2)]
    with monkeypatch.context() as stuck:
        stuck.setattr(Process, "_signal", lambda process, number: None)
        executor.put([deaf])
        read(tmp_path / "started")
        deaf.end(CancelRequested("enough"))
        turn(executor)
        clock.advance(processes.GRACE)
        turn(executor)
        assert not host.outcomes  # it was killed just now

        clock.advance(process.DYING)
        turn(executor)
        assert host.outcome(deaf) == Cancelled()
        assert executor.room == 2
        executor.put(others)
        assert all(isinstance(host.outcome(other), Succeeded) for other in others)


def test_a_job_that_expired_while_its_process_got_ready_goes_back_unstarted(
    executor: ProcessExecutor, host: Host, hold: Callable[..., Held]
) -> None:
    """It is the child that looks, after the import of the handler, which may take long."""
    late, in_time = hold(process_tasks.pid), hold(process_tasks.pid)
    late.start_by, in_time.start_by = SystemClock().steady() - 1, SystemClock().steady() + 1_000

    executor.put([late, in_time])

    assert host.outcome(late) == Returned()
    assert isinstance(host.outcome(in_time), Succeeded)
