"""Limits as users meet them: handlers that never run more at once, or start faster, than their limit says."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from mainspring import Context, InvalidValue, JobState, Limit, Mainspring, Retry
from tests.support.waiting import until


def test_no_more_run_at_once_than_the_limit_of_their_key_allows(app: Mainspring) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    lock = threading.Lock()

    @app.task(limits=[Limit("tenant:{tenant}", concurrency=2), Limit("all", concurrency=3)])
    def work(tenant: str) -> None:
        with lock:
            running.update([tenant, "all"])
            most.update({name: max(0, running[name] - most[name]) for name in (tenant, "all")})
        time.sleep(0.05)
        with lock:
            running.subtract([tenant, "all"])

    with app.worker(concurrency=8), app.worker(concurrency=8):
        jobs = work.enqueue_many([((tenant,), {}) for tenant in "aabb" * 10])
        for job in jobs:
            job.result(timeout=60)

    assert max(most["a"], most["b"]) == 2
    assert most["all"] == 3
    assert all(job.refresh().attempt == 1 for job in jobs)


def test_what_waits_for_a_limit_holds_up_nothing_else(app: Mainspring) -> None:
    go_on = threading.Event()

    @app.task(limits=[Limit("one", concurrency=1)])
    def slow() -> None:
        go_on.wait(30)

    @app.task
    def quick() -> str:
        return "done"

    with app.worker(concurrency=2):
        waiting = slow.enqueue_many([((), {})] * 50)
        until(lambda: sum(job.state is JobState.BLOCKED for job in waiting) == 49)
        (running,) = [job for job in waiting if job.state is JobState.RUNNING]
        (reason,) = waiting[-1].explain()
        assert reason.code == "limit"
        assert f"limit 'one' lets 1 run at once, held by {running.id}, and " in reason.sentence
        assert quick.enqueue().result(timeout=30) == "done"
        go_on.set()
        for job in waiting:
            job.result(timeout=60)


def test_a_rate_holds_over_any_stretch_of_time(app: Mainspring) -> None:
    starts: list[float] = []

    @app.task(limits=[Limit("r", rate="20/s", burst=2)])
    def note() -> None:
        starts.append(time.monotonic())

    with app.worker(concurrency=8):
        jobs = note.enqueue_many([((), {})] * 30)
        until(lambda: jobs[-1].state is not JobState.READY)  # blocked, or has been, if this thread was kept waiting
        told = [(reason.code, reason.sentence.partition(", and ")[0]) for reason in jobs[-1].explain()]
        for job in jobs:
            job.result(timeout=60)

    assert told in ([], [("rate", "limit 'r' lets one start every 0.05 s")])

    # From token to handler there is some way, which may be long for one and short for the next.
    slack = 5
    for first, start in enumerate(starts):
        for last in range(first, len(starts)):
            assert last - first + 1 <= 2 + slack + 20 * (starts[last] - start)
    assert starts[-1] - starts[0] >= (30 - 2 - slack) / 20


def test_an_attempt_that_fails_gives_its_slot_back(app: Mainspring) -> None:
    @app.task(limits=[Limit("one", concurrency=1)], retry=Retry(max_attempts=3, base="10ms", cap="10ms"))
    def fails_twice(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return ctx.attempt

    with app.worker(concurrency=4):
        jobs = [fails_twice.enqueue() for _ in range(5)]

        assert [job.result(timeout=60) for job in jobs] == [3] * 5
    assert app.client.store.slot_holders("one") == []


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ([Limit("tenant:{tenamt}", concurrency=1)], "did you mean 'tenant'"),
        ([Limit("a", concurrency=1), Limit("a", rate="1/s")], "got one twice"),
        (Limit("a", concurrency=1), "expected limits to be a list of Limit"),
        (["a"], "expected limits to be a list of Limit"),
        (7, "expected limits to be a list of Limit"),
    ],
)
def test_limits_that_make_no_sense_are_refused_where_they_are_written(
    app: Mainspring, limits: list[Limit], says: str
) -> None:
    with pytest.raises(InvalidValue, match=says):

        @app.task(limits=limits)
        def work(tenant: str) -> None: ...

    assert len(app.tasks) == 0
