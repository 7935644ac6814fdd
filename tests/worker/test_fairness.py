"""Fairness as users meet it: one tenant's flood, and another who wants one thing done."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from mainspring import InvalidValue, JobState, Mainspring, every
from mainspring.errors import StoreUnavailable
from mainspring.model.job import Job
from mainspring.store.sql import SqlStore
from tests.support.waiting import until

FLOOD = 100_000
SLOTS = 8


@pytest.mark.slow
def test_a_flood_delays_another_tenants_job_by_no_more_than_the_slots_and_one(app: Mainspring) -> None:
    """A handler ends only by leave, so completions are counted, and nothing is claimed ahead of handlers so slow."""
    leave = threading.Semaphore(0)
    done: list[str] = []
    other_started = threading.Event()

    @app.task(fair="{tenant}")
    def work(tenant: str) -> None:
        if tenant == "other":
            other_started.set()
        leave.acquire()
        done.append(tenant)

    work.enqueue_many([(("flood",), {})] * FLOOD)
    with app.worker(concurrency=SLOTS):
        leave.release(20)
        until(lambda: len(done) == 20)
        until(lambda: app.client.store.counts()["default"][JobState.RUNNING] == SLOTS)
        work.enqueue("other")
        leave.release(SLOTS + 1)
        try:
            assert other_started.wait(60)
        finally:
            app.queues.pause("default")
            leave.release(10 * SLOTS)


def test_tenants_share_workers_evenly_however_much_each_of_them_sends(app: Mainspring) -> None:
    done: list[str] = []

    @app.task(fair="{tenant}")
    def work(tenant: str) -> None:
        done.append(tenant)

    jobs = work.enqueue_many([(("a",), {})] * 300 + [(("b",), {})] * 30 + [(("c",), {})] * 30)
    with app.worker(concurrency=1):
        for job in jobs:
            job.result(timeout=60)

    first = Counter(done[:90])
    assert max(first.values()) - min(first.values()) <= 2


def test_a_coroutine_and_a_schedule_take_turns_as_well(app: Mainspring) -> None:
    @app.task(fair="{tenant}")
    async def work(tenant: str) -> str:
        return tenant

    app.schedules.add("tick", work, every("1h"), kwargs={"tenant": "scheduled"})
    with app.worker(concurrency=2):
        assert work.using(fair="mine", weight=3).enqueue("a").result(timeout=30) == "a"
        app.schedules.trigger("tick")
        until(lambda: bool(app.jobs(state=JobState.SUCCEEDED, limit=5)[1:]))

    assert sorted(str(job.snapshot.fair) for job in app.jobs()) == ["mine", "scheduled"]


def test_a_job_with_a_key_of_its_own_starts_at_once(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promote gives it its turn, and must hear of it: it would not look again for as long as this test waits."""
    monkeypatch.setattr("mainspring.scheduler.sweep.POLL", 3_600.0)

    @app.task(fair="{tenant}", key="once:{tenant}")
    def work(tenant: str) -> str:
        return tenant

    with app.worker(concurrency=1):
        until(lambda: bool(app.client.store.sessions()))
        for tenant in "abc":
            assert work.enqueue(tenant).result(timeout=30) == tenant


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a bug")])
def test_a_job_whose_turn_can_not_be_noted_is_not_held_for_ever(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    errors = [error]
    reach = SqlStore.reach

    def fails_once(store: SqlStore, started: Sequence[Job]) -> None:
        if errors:
            raise errors.pop()
        reach(store, started)

    monkeypatch.setattr(SqlStore, "reach", fails_once)

    @app.task(fair="{tenant}")
    def work(tenant: str) -> str:
        return tenant

    with app.worker(concurrency=1):
        assert work.enqueue("a").result(timeout=30) == "a"
    assert not errors


def test_a_job_can_be_kept_out_of_turns(app: Mainspring) -> None:
    @app.task(fair="{tenant}")
    def work(tenant: str) -> None: ...

    assert work.using(fair=None).enqueue("a").snapshot.fair is None


@pytest.mark.parametrize("weight", [0, -1, 101, 1.5, True, "3"])
def test_a_weight_that_divides_no_turn_is_refused(app: Mainspring, weight: object) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(InvalidValue, match="expected weight to be a whole number from 1 to 100"):
        work.using(fair="a", weight=weight).enqueue()  # type: ignore[arg-type]
    assert app.jobs() == []


@pytest.mark.parametrize("fair", ["", "a\0b", 7, "x" * 10_000])
def test_a_fair_key_that_is_none_is_refused(app: Mainspring, fair: object) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(InvalidValue, match="expected fair to be"):
        work.using(fair=fair).enqueue()  # type: ignore[arg-type]
    assert app.jobs() == []


def test_a_weight_without_a_key_is_refused(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(InvalidValue, match="expected a fair key with weight"):
        work.using(weight=3).enqueue()


def test_a_fair_key_of_unknown_arguments_is_refused_at_the_decorator(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="expected fair to name arguments of the task"):

        @app.task(fair="{tenannt}")
        def work(tenant: str) -> None: ...
