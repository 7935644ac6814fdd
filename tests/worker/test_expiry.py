"""A job that was claimed in time, and could not start in time, does not start late."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime

import pytest

from mainspring import JobState, Mainspring
from tests.support.waiting import until


def test_a_job_that_waits_in_the_workers_memory_for_too_long_expires(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.worker.pace.Pace.at_hand", 10)  # so that it is claimed though no thread is free
    go_on = threading.Event()
    ran: list[str] = []
    block = app.task(name="block")(go_on.wait)

    @app.task(expires="1s")
    def late() -> None:
        ran.append("late")

    with app.worker(concurrency=1):
        blocking = block.enqueue()
        until(lambda: blocking.refresh().state is JobState.RUNNING)
        job = late.enqueue()
        until(lambda: job.refresh().state is JobState.RUNNING)
        expires_at = job.refresh().expires_at
        until(lambda: expires_at is not None and datetime.now(UTC) > expires_at)
        go_on.set()
        until(lambda: job.refresh().state is JobState.EXPIRED)

    assert ran == []
    assert [attempt.outcome for attempt in job.attempts()] == ["returned"]


def test_a_coroutine_that_gets_its_turn_too_late_expires(app: Mainspring) -> None:
    ran: list[str] = []
    hogging = threading.Event()

    @app.task
    async def hog() -> None:
        hogging.set()
        time.sleep(2)  # it should not, and so keeps the others from their turn

    @app.task(expires="1s")
    async def late() -> None:
        await asyncio.sleep(0)
        ran.append("late")

    with app.worker(concurrency=1):
        hog.enqueue()
        hogging.wait(30)
        job = late.enqueue()
        until(lambda: job.refresh().state is JobState.EXPIRED)

    assert ran == []


def test_a_job_expires_while_nobody_works_and_one_that_starts_in_time_runs(app: Mainspring) -> None:
    ran: list[int] = []

    @app.task(expires="1h")
    def note(number: int) -> None:
        ran.append(number)

    gone = note.using(expires="1ms").enqueue(1)
    time.sleep(0.01)
    in_time = note.enqueue(2)

    with app.worker(concurrency=1):
        in_time.result(timeout=30)
        until(lambda: gone.refresh().state is JobState.EXPIRED)

    assert ran == [2]
