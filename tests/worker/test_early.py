"""Jobs that are claimed ahead of their time start on time, and never before."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from mainspring import Context, JobState, Mainspring
from mainspring.clock import SystemClock
from tests.support.waiting import until

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def an_hour_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("claim", "early"):
        monkeypatch.setattr(f"mainspring.worker.{module}.AHEAD", HOUR)


def test_no_job_starts_before_its_time(app: Mainspring) -> None:
    started: dict[str, float] = {}

    @app.task
    def note(ctx: Context) -> None:
        started[str(ctx.job_id)] = time.time()

    with app.worker(concurrency=4):
        jobs = [note.using(run_after=0.1 + number / 50).enqueue() for number in range(20)]
        for job in jobs:
            job.result(timeout=30)

    for job in jobs:
        due = job.refresh().run_at.timestamp()
        assert started[str(job.id)] >= due
        assert [attempt.started_at.timestamp() >= due for attempt in job.attempts()] == [True]


def test_what_was_claimed_ahead_waits_and_holds_nothing_up(app: Mainspring) -> None:
    ran: list[str] = []

    @app.task
    def note(name: str) -> None:
        ran.append(name)

    early = note.using(run_after="1h").enqueue("early")
    app.client.store.promote(ahead=HOUR)
    with app.worker(concurrency=1):
        until(lambda: early.state is JobState.RUNNING)
        note.enqueue("due").result(timeout=30)

    assert ran == ["due"]


def test_a_worker_that_stops_gives_it_back(app: Mainspring) -> None:
    @app.task
    def never() -> None: ...

    early = never.using(run_after="1h").enqueue()
    app.client.store.promote(ahead=HOUR)
    with app.worker():
        until(lambda: early.state is JobState.RUNNING)

    given_back = early.refresh()
    assert given_back.state is JobState.READY
    assert (given_back.attempt, given_back.run_at > SystemClock().now()) == (0, True)
