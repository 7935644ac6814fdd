"""Threads: each job finds its thread as new, and nothing that a job does takes a thread away from the others."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from mainspring.clock import SystemClock
from mainspring.errors import TimeExpired
from mainspring.model.outcome import Failed, Succeeded, TimedOut
from mainspring.worker.executors import threads
from mainspring.worker.executors.interruption import Interruption
from mainspring.worker.executors.threads import ThreadExecutor
from mainspring.worker.pace import Pace
from tests.support.waiting import until
from tests.worker.hosts import ListHost, held_job


def executor(slots: int, host: ListHost) -> ThreadExecutor:
    return ThreadExecutor(slots, host, SystemClock(), Pace(slots))


@pytest.mark.parametrize("timeout", [None, timedelta(hours=1)])
def test_context_variables_that_a_job_has_set_are_not_seen_by_the_next(timeout: timedelta | None) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
    host = ListHost()
    one = executor(1, host)

    def set_it() -> None:
        tenant.set("acme")

    one.put([held_job(set_it, timeout=timeout), held_job(lambda: tenant.get(), timeout=timeout)])
    until(lambda: len(host.outcomes) == 2)
    one.close()

    assert host.outcomes[1] == Succeeded('"nobody"')


def refuse_threads(monkeypatch: pytest.MonkeyPatch, refused: Callable[[int], bool]) -> None:
    """Have the system refuse a thread of ours, if *refused* says so of its number."""
    start = threading.Thread.start
    asked = 0

    def start_or_not(thread: threading.Thread) -> None:
        nonlocal asked
        if thread.name == "mainspring-execute":
            asked += 1
            if refused(asked):
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_not)


def test_a_thread_that_could_not_be_started_does_not_use_up_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_threads(monkeypatch, lambda number: number == 1)
    monkeypatch.setattr(threads, "_PAUSE", 0)
    host = ListHost()
    one = executor(1, host)

    one.put([held_job(lambda: 1)])
    one.put([held_job(lambda: 2)])
    until(lambda: len(host.outcomes) == 2)
    one.close()

    assert host.outcomes == [Succeeded("1"), Succeeded("2")]


def test_threads_go_on_when_the_system_gives_us_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses when a thread that has just taken a job asks for help with the others."""
    refuse_threads(monkeypatch, lambda number: number > 1)
    host = ListHost()
    two = executor(2, host)

    two.put([held_job(lambda: 1) for _ in range(10)])
    until(lambda: len(host.outcomes) == 10)
    two.close()


def test_a_system_that_refuses_threads_is_not_asked_for_every_job(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_threads(monkeypatch, lambda number: number > 1)
    monkeypatch.setattr(threads, "_PAUSE", 3600)
    host = ListHost()
    two = executor(2, host)

    two.put([held_job(lambda: 1) for _ in range(100)])
    until(lambda: len(host.outcomes) == 100)
    two.close()

    assert [record.message for record in caplog.records] == [
        "can't start another thread, going on with 1: can't start new thread"
    ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_leaves_its_slot_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    host, dying = ListHost(), list[threading.Thread]()
    ended = host.ended

    def ended_badly(*_: object) -> None:
        dying.append(threading.current_thread())
        raise MemoryError

    monkeypatch.setattr(host, "ended", ended_badly)
    one = executor(1, host)
    one.put([held_job(lambda: 1)])
    until(lambda: dying)
    dying[0].join()
    monkeypatch.setattr(host, "ended", ended)

    one.put([held_job(lambda: 2)])
    until(lambda: host.outcomes)
    one.close()

    assert host.outcomes == [Succeeded("2")]


def test_an_exception_that_arrives_as_the_handler_ends_leaves_nothing_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(_: Interruption) -> None:
        raise TimeExpired

    monkeypatch.setattr(Interruption, "shut", shut)
    host = ListHost()
    one = executor(1, host)

    one.put([held_job(lambda: 1, timeout=timedelta(hours=1))])
    until(lambda: host.outcomes)
    one.close()

    (outcome,) = host.outcomes
    assert isinstance(outcome, TimedOut)
    assert host.watch.watched == []


def test_a_job_of_which_nobody_can_say_what_it_came_to_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room to say so")

    monkeypatch.setattr(threads, "ending", fail)
    host = ListHost()
    one = executor(1, host)

    one.put([held_job(lambda: 1 / 0), held_job(lambda: 1)])
    until(lambda: len(host.outcomes) == 2)
    one.close()

    failed, succeeded = host.outcomes
    assert isinstance(failed, Failed)
    assert (failed.failure.message, failed.retryable) == ("no room to say so", False)
    assert succeeded == Succeeded("1")
