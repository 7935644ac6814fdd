"""What a worker settles is counted, and the counts reach the store, without anybody waiting for them."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any, cast

import pytest

from mainspring import Breaker, JobState, Mainspring, Retry
from mainspring.errors import StoreUnavailable
from mainspring.model.failure import Failure
from mainspring.model.history import Sample
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Outcome, Paused, Returned, Succeeded, TimedOut
from mainspring.model.task import Task
from mainspring.store import Store
from mainspring.store.sql import SqlStore
from mainspring.tally import Histogram, Tally
from mainspring.worker import sample
from mainspring.worker.count import Ended, count
from mainspring.worker.held import Held
from mainspring.worker.sample import Sampler
from tests.support.factories import claimed_job
from tests.support.waiting import until

TASK = Task(name="greet", handler=print)
BOOM = Failure(type="ValueError", message="boom")


def totals(app: Mainspring, over: str = "1h") -> tuple[int, int, int]:
    samples = app.history(over).samples
    return (
        sum(one.succeeded for one in samples),
        sum(one.failed for one in samples),
        sum(one.retried for one in samples),
    )


def ended(store: SqlStore, outcome: Outcome, **job: Any) -> Ended:
    held = Held(claimed_job(store, **job), TASK)
    held.began = 1.0
    return held, settle(held.job, outcome, Retry(max_attempts=2))


def unwanted(store: SqlStore) -> Ended:
    """Return an attempt that fails after somebody has cancelled its job, as that ends in *store*."""
    held, settlement = ended(store, Failed(BOOM))
    store.cancel([held.job.id])
    return held, store.settle([settlement]).otherwise[held.job.id]


def test_what_became_of_jobs_is_in_the_history_when_the_worker_has_stopped(app: Mainspring) -> None:
    @app.task
    def fine() -> None: ...

    @app.task(retry=Retry(max_attempts=3, base="1ms"))
    def boom() -> None:
        raise ValueError("boom")

    with app.worker():
        jobs = [*fine.enqueue_many([((), {})] * 300), boom.enqueue()]
        until(lambda: all(job.refresh().state.final for job in jobs))

    assert [totals(app, over) for over in ("1h", "24h", "7d")] == [(300, 1, 2)] * 3
    assert any(one.wait_p99 is not None for one in app.history().samples)


def test_what_a_breaker_spares_has_not_failed(app: Mainspring) -> None:
    all_run, go_on = threading.Barrier(4), threading.Event()

    @app.task(retry=Retry(max_attempts=1), breaker=Breaker("smtp"))
    def call() -> None:
        all_run.wait()
        go_on.wait()
        raise ConnectionError("it is away")

    with app.worker(concurrency=3):
        jobs = call.enqueue_many([((), {})] * 3)
        all_run.wait()
        app.breakers.trip("smtp")
        go_on.set()
        until(lambda: all(job.refresh().state is JobState.BLOCKED for job in jobs))

    assert totals(app) == (0, 0, 0)
    assert (app.client.tally.finished, app.client.tally.attempts) == ({}, {("call", "spared"): 3})


def test_what_fails_after_somebody_has_cancelled_it_is_not_made_again(app: Mainspring) -> None:
    started, go_on = threading.Event(), threading.Event()

    @app.task(retry=Retry(max_attempts=3))
    def deaf() -> None:
        started.set()
        go_on.wait()
        raise ConnectionError("no")

    with app.worker():
        job = deaf.enqueue()
        started.wait()
        job.cancel()
        go_on.set()
        until(lambda: job.refresh().state is JobState.CANCELLED)

    assert totals(app) == (0, 0, 0)
    assert (app.client.tally.finished, app.client.tally.attempts) == (
        {("deaf", "cancelled"): 1},
        {("deaf", "failed"): 1},
    )


def test_it_is_told_while_the_worker_goes_on(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "EVERY", 0.01)

    @app.task
    def fine() -> None: ...

    with app.worker():
        fine.enqueue()
        until(lambda: totals(app) == (1, 0, 0))
        fine.enqueue()
        until(lambda: totals(app) == (2, 0, 0))


def test_each_team_hears_of_its_own(app: Mainspring) -> None:
    @app.task
    def fine() -> None: ...

    acme = app.within("acme")
    with app.worker():
        jobs = [*fine.enqueue_many([((), {})] * 3), *(acme.enqueue("fine") for _ in range(2))]
        until(lambda: all(job.refresh().state.final for job in jobs))

    assert [totals(one)[0] for one in (app, acme, app.within("default"), app.within("other"))] == [5, 2, 3, 0]


def test_a_node_looks_at_what_waits(app: Mainspring) -> None:
    @app.task
    def fine() -> None: ...

    app.queues.pause("default")
    fine.enqueue_many([((), {})] * 3)
    with app.worker():

        def looked() -> Sample | None:
            return next((one for one in app.history().samples if one.ready is not None), None)

        until(looked)
        seen = looked()

    assert seen is not None
    assert (seen.ready, (seen.oldest or timedelta(0)) > timedelta(0)) == (3, True)


def test_endings_are_told_apart_by_place_and_kind(store: SqlStore) -> None:
    tally = Tally()
    count(
        tally,
        [
            ended(store, Succeeded("1")),
            ended(store, Failed(BOOM, retryable=False), queue="mail"),
            ended(store, Failed(BOOM, retryable=False)),
            ended(store, Failed(BOOM)),
            ended(store, TimedOut(BOOM), team="acme"),
            ended(store, Paused()),
            unwanted(store),
            ended(store, Returned(), queue="bulk"),
        ],
    )

    assert tally.finished == {("greet", "failed"): 2, ("greet", "succeeded"): 1, ("greet", "cancelled"): 1}
    assert {place: (one.succeeded, one.failed, one.retried) for place, one in tally.take_counts().items()} == {
        (None, "default"): (1, 1, 1),
        (None, "mail"): (0, 1, 0),
        ("acme", "default"): (0, 0, 1),
        (None, "bulk"): (0, 0, 0),
    }
    assert tally.take_counts() == {}


def test_a_flood_of_one_kind_is_its_teams(store: SqlStore) -> None:
    tally = Tally()
    count(tally, [ended(store, Succeeded("1"), team="acme") for _ in range(30)])

    ((place, counted),) = tally.take_counts().items()
    assert (place, counted.succeeded, sum(counted.waits.counts)) == (("acme", "default"), 30, 30)


class Away:
    """A store that can't be reached, or only says so."""

    def __init__(self) -> None:
        self.asked = 0

    def add_counts(self, counts: object) -> None:
        self.asked += 1
        raise StoreUnavailable("the database is away; it may be done all the same")


def test_what_could_not_be_told_is_left_out_rather_than_told_twice(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    tally, away = Tally(), Away()
    count(tally, [ended(store, Succeeded("1"))])
    with caplog.at_level(logging.WARNING, "mainspring.worker"):
        Sampler(cast(Store, away), tally).add()
    Sampler(store, tally).add()

    assert "missing from the history" in caplog.text
    assert (away.asked, store.history("1h").samples[-1].succeeded) == (1, 0)


@pytest.mark.parametrize(
    ("values", "share", "quantile"),
    [
        ((), 0.5, None),
        ((0.5,), 0.5, 0.5),
        ((0.5,), 0.99, 0.99),
        ((0.5, 1.5, 1.5, 1.5), 0.25, 1.0),
        ((1.5, 1.5), 0.5, 1.5),
        ((7.0, 7.0), 0.5, 2.0),
    ],
)
def test_a_histogram_tells_about_what_a_share_of_values_does_not_exceed(
    values: tuple[float, ...], share: float, quantile: float | None
) -> None:
    histogram = Histogram((1.0, 2.0))
    for value in values:
        histogram.add(value)

    assert histogram.quantile(share) == quantile
