"""Cancel, pause and time out while a handler runs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mainspring import Context, JobState, Mainspring, Retry
from mainspring.errors import CancelRequested, JobFailed
from mainspring.worker import watch
from tests.support.waiting import until
from tests.worker.endings import ended, outcomes

LONG = "60s"
ONCE = Retry(max_attempts=1)


def test_a_running_function_that_checks_can_be_cancelled(app: Mainspring) -> None:
    started = threading.Event()

    @app.task
    def endless(ctx: Context) -> None:
        started.set()
        while True:
            ctx.check()

    job = endless.enqueue()
    with app.worker():
        started.wait()
        job.cancel("enough")  # the state that this returns is running, or cancelled already if the worker is quick

        assert ended(job) is JobState.CANCELLED

    assert outcomes(job) == ["cancelled"]
    assert job.snapshot.reason == "enough"


def test_a_handler_that_goes_on_after_errors_is_cancelled_all_the_same(app: Mainspring) -> None:
    started = threading.Event()

    @app.task
    def stubborn(ctx: Context) -> None:
        while True:
            started.set()
            try:
                ctx.check()
            except Exception:  # noqa: BLE001
                continue

    job = stubborn.enqueue()
    with app.worker():
        started.wait()
        job.cancel()

        assert ended(job) is JobState.CANCELLED


def test_a_running_coroutine_is_cancelled(app: Mainspring) -> None:
    started, cleaned_up = threading.Event(), threading.Event()

    @app.task
    async def endless() -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned_up.set()

    job = endless.enqueue()
    with app.worker():
        started.wait()
        job.cancel()

        assert ended(job) is JobState.CANCELLED
    assert cleaned_up.is_set()


def test_a_function_that_never_checks_ends_by_itself_and_keeps_its_result(app: Mainspring) -> None:
    started, go_on = threading.Event(), threading.Event()

    @app.task
    def deaf() -> int:
        started.set()
        go_on.wait()
        return 1

    job = deaf.enqueue()
    with app.worker():
        started.wait()
        job.cancel()
        go_on.set()

        assert job.result(timeout=LONG) == 1


def test_a_job_that_fails_after_it_was_cancelled_is_not_tried_again(app: Mainspring) -> None:
    started, go_on = threading.Event(), threading.Event()

    @app.task(retry=Retry(base="10ms"))
    def deaf() -> None:
        started.set()
        go_on.wait()
        raise ConnectionError("no")

    job = deaf.enqueue()
    with app.worker():
        started.wait()
        job.cancel()
        go_on.set()

        assert ended(job) is JobState.CANCELLED
    assert outcomes(job) == ["failed"]


def test_a_running_job_is_paused_and_starts_again_when_it_is_resumed(app: Mainspring) -> None:
    starts = threading.Semaphore(0)
    finish = threading.Event()

    @app.task(retry=ONCE)
    def endless(ctx: Context) -> int:
        starts.release()
        while not finish.is_set():
            ctx.check()
        return ctx.attempt

    job = endless.enqueue()
    with app.worker():
        starts.acquire()
        job.pause("lunch")
        until(lambda: job.state is JobState.PAUSED)
        job.resume()
        starts.acquire()
        finish.set()

        assert job.result(timeout=LONG) == 1

    assert outcomes(job) == ["paused", "succeeded"]


@pytest.mark.parametrize("swallows", [False, True])
def test_a_function_that_takes_too_long_is_interrupted(
    app: Mainspring, swallows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that never checks. One that goes on regardless is left alone, and its slot is given to the next."""
    monkeypatch.setattr(watch, "GRACE", 0.2)
    stop = threading.Event()

    @app.task(timeout="100ms", retry=ONCE)
    def endless() -> None:
        while not stop.is_set():
            try:
                while not stop.is_set():
                    pass
            except BaseException:
                if not swallows:
                    raise

    @app.task
    def quick() -> int:
        return 1

    job = endless.enqueue()
    with app.worker(concurrency=1):
        with pytest.raises(JobFailed, match=r"took longer than its timeout of 0\.1 s"):
            job.result(timeout=LONG)

        assert quick.enqueue().result(timeout=LONG) == 1
        stop.set()

    assert outcomes(job) == ["timed_out"]


def test_a_coroutine_that_takes_too_long_is_cancelled(app: Mainspring) -> None:
    @app.task(timeout="100ms", retry=ONCE)
    async def endless() -> None:
        await asyncio.sleep(3600)

    job = endless.enqueue()
    with app.worker(), pytest.raises(JobFailed, match=r"took longer than its timeout of 0\.1 s"):
        job.result(timeout=LONG)

    assert outcomes(job) == ["timed_out"]


def test_a_coroutine_that_ignores_its_cancellation_is_left_alone(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "GRACE", 0.2)
    stop = threading.Event()

    @app.task(timeout="100ms", retry=ONCE)
    async def endless() -> None:
        while not stop.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    job = endless.enqueue()
    with app.worker():
        with pytest.raises(JobFailed, match="took longer than its timeout"):
            job.result(timeout=LONG)
        stop.set()


def test_a_timed_out_attempt_is_tried_again(app: Mainspring) -> None:
    @app.task(timeout="200ms", retry=Retry(max_attempts=2, base="10ms"))
    def slow_at_first(ctx: Context) -> int:
        while ctx.attempt == 1:
            pass
        return ctx.attempt

    job = slow_at_first.enqueue()
    with app.worker():
        assert job.result(timeout=LONG) == 2

    assert outcomes(job) == ["timed_out", "succeeded"]


def test_a_timeout_that_comes_as_the_handler_ends_harms_no_other_job(app: Mainspring) -> None:
    """Hundreds of handlers that end at about their timeout, on few threads: an exception must never arrive late."""

    @app.task(timeout="5ms", retry=ONCE)
    def close_call(n: int) -> int:
        waiting = threading.Event()
        waiting.wait(0.004 + (n % 20) / 10_000)
        return n

    @app.task
    def untimed(n: int) -> int:
        return sum(range(2_000)) and n

    calls: list[tuple[tuple[int], dict[str, int]]] = [((n,), {}) for n in range(300)]
    with app.worker(concurrency=4):
        timed, others = close_call.enqueue_many(calls), untimed.enqueue_many(calls)

        assert [job.result(timeout=LONG) for job in others] == list(range(300))
        assert {ended(job) for job in timed} <= {JobState.SUCCEEDED, JobState.FAILED}
    assert {outcome for job in timed for outcome in outcomes(job)} <= {"succeeded", "timed_out"}


def test_cancel_is_no_error_that_a_handler_could_take_for_its_own() -> None:
    assert not issubclass(CancelRequested, Exception)
