"""Breakers as users meet them: handlers whose downstream goes away and comes back."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from mainspring import Breaker, Context, InvalidValue, JobState, Mainspring, Retry
from mainspring.model.breaker import Phase
from mainspring.service import person
from tests.support.waiting import until

QUICK = Retry(max_attempts=3, base="10ms", cap="10ms")


class Downstream:
    """Something that can be away, and counts who calls it at once since it is back."""

    def __init__(self) -> None:
        self.up = threading.Event()
        self.failed = self.worked = self._calling = 0
        self.stampede = False
        self._lock = threading.Lock()

    def call(self) -> None:
        with self._lock:
            self._calling += 1
            self.stampede |= self.up.is_set() and self._calling > 1 + self.worked
        try:
            if not self.up.wait(0.005):
                self.failed += 1
                raise ConnectionError("it is away")
        finally:
            with self._lock:
                self._calling -= 1
                self.worked += self.up.is_set()


def test_jobs_wait_while_their_downstream_is_away_and_go_on_by_and_by(app: Mainspring) -> None:
    downstream = Downstream()

    @app.task(breaker=Breaker("api", open_at="50% of 20 in 1m", cooldown="200ms..400ms"), retry=QUICK)
    def call() -> None:
        downstream.call()

    @app.task
    def other() -> str:
        return "done"

    with app.worker(concurrency=4), app.worker(concurrency=4):
        jobs = call.enqueue_many([((), {})] * 100)
        until(lambda: app.breakers.get("api").phase is Phase.OPEN)
        assert other.enqueue().result(timeout=30) == "done"
        until(lambda: app.breakers.get("api").waiting > 80)
        downstream.up.set()
        for job in jobs:
            job.result(timeout=60)
        until(lambda: app.breakers.get("api").phase is Phase.CLOSED)

    assert not downstream.stampede
    assert app.client.store.slot_holders("@breaker:api") == []


def test_a_job_says_that_it_waits_for_a_breaker_and_why(app: Mainspring) -> None:
    @app.task(breaker=Breaker("api:{host}", open_at="100% of 1 in 1m", cooldown="1h"), retry=QUICK)
    def call(host: str) -> None:
        raise ConnectionError("it is away")

    with app.worker(concurrency=1):
        call.enqueue("a")
        until(lambda: app.breakers.get("api:a").phase is Phase.OPEN)
        waits = call.enqueue("a")
        until(lambda: waits.state is JobState.BLOCKED)
        (reason,) = waits.explain()
        assert reason.code == "breaker_open"
        assert reason.sentence.startswith("breaker 'api:a' is open until 2")
        assert reason.sentence.endswith("because 1 of the last 1 attempts failed; then a probe goes first")
        app.breakers.trip("api:a", lasting="1h", reason="moving house", by="ada")
        assert "because ada tripped it (moving house);" in waits.explain()[0].sentence
        app.breakers.trip("api:a", lasting="1ms", by="ada")
        until(lambda: waits.explain()[0].sentence.startswith("breaker 'api:a' was open, because ada tripped it, and"))


def test_the_log_does_not_say_that_a_job_has_failed_for_good_which_its_breaker_may_spare(
    app: Mainspring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mainspring.worker")
    started, opened = threading.Event(), threading.Event()

    @app.task(breaker=Breaker("api"), retry=Retry(max_attempts=1))
    def call() -> None:
        started.set()
        opened.wait(30)
        raise ConnectionError("it is away")

    @app.task(breaker=Breaker("api"), retry=Retry(base="1h", cap="1h", jitter=False, never=(KeyError,)))
    def call_again(*, never: bool) -> None:
        raise KeyError if never else ConnectionError("it is away")

    with app.worker():
        last, again, never = call.enqueue(), call_again.enqueue(never=False), call_again.enqueue(never=True)
        until(lambda: again.state is JobState.RETRYING and never.state is JobState.FAILED)
        assert started.wait(30)
        app.breakers.trip("api", lasting="1h")
        opened.set()
        until(lambda: last.state is JobState.BLOCKED)

    logged = [record.getMessage() for record in caplog.records if "failed in attempt" in record.getMessage()]
    failed, away = "failed in attempt 1", "ConnectionError: it is away"
    assert sorted(logged) == sorted(
        [
            f"job {last.id} (call) {failed}, its last unless its breaker spares it: {away}",
            f"job {again.id} (call_again) {failed}, trying again in 3600.0 s, or when its breaker lets it: {away}",
            f"job {never.id} (call_again) {failed}: KeyError: ",
        ]
    )
    assert [(attempt.number, attempt.outcome) for attempt in last.attempts()] == [(1, "spared")]


def test_a_trip_keeps_jobs_from_starting_and_a_reset_lets_them_go_on(app: Mainspring) -> None:
    @app.task(breaker=Breaker("api"))
    def call() -> str:
        return "done"

    told = app.breakers.trip("api", reason="maintenance")
    with app.worker(concurrency=2):
        jobs = [call.enqueue() for _ in range(5)]
        until(lambda: app.breakers.get("api").waiting == 5)
        assert app.breakers.reset("api")
        assert [job.result(timeout=30) for job in jobs] == ["done"] * 5

    assert (told.phase, told.by, told.reason) == (Phase.OPEN, person(), "maintenance")
    assert told.until is not None
    assert told.since is not None
    assert (told.until - told.since).total_seconds() == 15 * 60
    assert all(job.refresh().attempt == 1 for job in jobs)


def test_a_transaction_of_a_probe_counts(app: Mainspring) -> None:
    @app.task(breaker=Breaker("db"))
    def work(ctx: Context) -> None:
        with ctx.transaction():
            pass

    app.breakers.trip("db", lasting="1ms")
    with app.worker(concurrency=2):
        for job in [work.enqueue() for _ in range(10)]:
            job.result(timeout=30)
        until(lambda: app.breakers.get("db").phase is Phase.CLOSED)

    assert app.client.store.slot_holders("@breaker:db") == []


def test_each_has_an_awaitable_twin(app: Mainspring) -> None:
    async def use() -> list[Any]:
        await app.breakers.atrip("a", lasting="1h", by="ada")
        return [await app.breakers.aget("a"), *await app.breakers.alist(), await app.breakers.areset("a")]

    got, listed, was_open = asyncio.run(use())

    assert (got, got.by, was_open) == (listed, "ada", True)
    assert app.breakers.get("never heard of").phase is Phase.CLOSED


@pytest.mark.parametrize(
    ("breaker", "says"),
    [
        (Breaker("api:{hots}"), "expected the key of a breaker to name arguments of the task.*did you mean 'host'"),
        ("api", r"expected breaker to be a Breaker such as Breaker\('smtp'\), got: 'api'"),
    ],
)
def test_a_breaker_that_makes_no_sense_is_refused_where_it_is_written(app: Mainspring, breaker: Any, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):

        @app.task(breaker=breaker)
        def call(host: str) -> None: ...

    assert len(app.tasks) == 0


def test_keys_that_make_no_sense_are_refused(app: Mainspring) -> None:
    for use in (app.breakers.trip, app.breakers.reset, app.breakers.get):
        with pytest.raises(InvalidValue, match="expected the key of a breaker"):
            use("")
