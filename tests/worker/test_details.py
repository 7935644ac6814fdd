"""What an attempt says of itself is kept with it, whatever it comes to and wherever it was made."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from mainspring import Context, JobState, Mainspring, Retry
from mainspring.job_handle import JobHandle
from mainspring.model.payload import MOST_DETAILS, encode_details
from mainspring.testing import drain
from tests.support.waiting import until
from tests.worker import process_tasks
from tests.worker.children import LONG, in_process
from tests.worker.endings import ended

ONCE = Retry(max_attempts=1)
EACH = pytest.mark.parametrize("kind", ["thread", "coroutine", "process"])


def details(job: JobHandle[Any]) -> list[Any]:
    return [None if attempt.details is None else json.loads(attempt.details) for attempt in job.attempts()]


def task_of(app: Mainspring, kind: str, retry: Retry = ONCE) -> Any:
    if kind == "process":
        return in_process(app, process_tasks.say_of_itself, retry=retry)
    if kind == "coroutine":

        @app.task(retry=retry)
        async def later(ctx: Context, then: str) -> None:
            process_tasks.say_of_itself(ctx, then)

        return later
    return app.task(retry=retry)(process_tasks.say_of_itself)


@EACH
@pytest.mark.parametrize("then", ["succeed", "fail"])
def test_details_are_kept_with_success_and_failure(app: Mainspring, kind: str, then: str) -> None:
    task = task_of(app, kind)
    with app.worker():
        job = task.enqueue(then)
        ended(job)
    assert details(job) == [{"rows": 7}]


def test_those_of_an_attempt_that_is_tried_again_are_kept_with_it(app: Mainspring) -> None:
    task = task_of(app, "thread", Retry(max_attempts=3, base="0s"))
    with app.worker():
        job = task.enqueue("fail")
        ended(job)
    assert details(job) == [{"rows": 7}] * 3


def test_those_of_an_attempt_in_a_drain_are_kept(app: Mainspring) -> None:
    task = task_of(app, "thread")
    jobs = [task.enqueue("succeed"), task.enqueue("fail")]
    drain(app)
    assert [details(job) for job in jobs] == [[{"rows": 7}], [{"rows": 7}]]


def test_those_of_a_transaction_are_kept_as_they_are_when_its_block_ends(app: Mainspring) -> None:
    @app.task
    def write(ctx: Context) -> None:
        with ctx.transaction():
            ctx.details["rows"] = 3

    with app.worker():
        job = write.enqueue()
        ended(job)
    assert details(job) == [{"rows": 3}]


def test_those_of_a_cancelled_attempt_are_kept(app: Mainspring) -> None:
    begun = threading.Event()

    @app.task
    async def wait(ctx: Context) -> None:
        ctx.details["rows"] = 5
        begun.set()
        await asyncio.Event().wait()

    with app.worker():
        job = wait.enqueue()
        begun.wait()
        job.cancel()
        until(lambda: job.refresh().state is JobState.CANCELLED)
    assert details(job) == [{"rows": 5}]


def test_those_of_an_attempt_that_is_no_longer_waited_for_are_kept(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.worker.watch.GRACE", 0.01)
    over = threading.Event()

    @app.task(timeout="10ms", retry=ONCE)
    def deaf(ctx: Context) -> None:
        ctx.details["rows"] = 9
        while not over.is_set():
            try:
                over.wait()
            except BaseException:  # noqa: BLE001
                continue

    with app.worker():
        job = deaf.enqueue()
        ended(job)
        over.set()
    assert job.attempts()[0].outcome == "timed_out"
    assert details(job) == [{"rows": 9}]


def test_a_handler_that_says_nothing_of_itself_leaves_nothing(app: Mainspring) -> None:
    @app.task
    def work(ctx: Context) -> None: ...

    with app.worker():
        job = work.enqueue()
        assert job.result(timeout=LONG) is None
    assert details(job) == [None]


@pytest.mark.parametrize("said", [{"x": object()}, {"x": float("nan")}, {"x": "y" * MOST_DETAILS}, {"x": "\0"}])
def test_what_cant_be_kept_fails_nothing_and_leaves_a_word(said: dict[str, object]) -> None:
    (kept,) = json.loads(encode_details(said) or "{}")
    assert kept == "not_kept"
