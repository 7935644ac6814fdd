"""Coroutines: nothing that one does takes their common loop away from the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from mainspring import Context, JobState, Mainspring, Retry
from mainspring.errors import StoreError
from mainspring.model.outcome import Failed, Succeeded
from mainspring.worker.executors import coroutines
from mainspring.worker.executors.coroutines import CoroutineExecutor
from tests.support.waiting import until
from tests.worker.endings import ended, outcomes
from tests.worker.hosts import ListHost, held_job

LONG = "60s"
ONCE = Retry(max_attempts=1)


def raising(error: BaseException) -> Callable[[], None]:
    def throw() -> None:
        raise error

    return throw


def in_a_sub_task(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> object:
    async def inner() -> None:
        what()

    return loop.create_task(inner())


def in_a_callback(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> object:
    return loop.call_soon(what)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("do", [in_a_sub_task, in_a_callback])
def test_a_coroutine_can_not_end_the_loop_of_all(
    do: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], object],
    error: BaseException,
    caplog: pytest.LogCaptureFixture,
) -> None:
    host, rude_is_done = ListHost(), asyncio.Event()

    async def innocent() -> int:
        await rude_is_done.wait()
        return 1

    async def rude() -> int:
        kept = do(asyncio.get_running_loop(), raising(error))
        await asyncio.sleep(0.01)
        rude_is_done.set()
        if isinstance(kept, asyncio.Task):
            kept.exception()  # looked at, or else asyncio complains
        return 2

    async def later() -> int:
        return 3

    many = CoroutineExecutor(10, host)
    many.put([held_job(innocent), held_job(rude)])
    until(lambda: len(host.outcomes) == 2)
    many.put([held_job(later)])
    until(lambda: len(host.outcomes) == 3)
    many.close()

    assert {outcome.result for outcome in host.outcomes if isinstance(outcome, Succeeded)} == {"1", "2", "3"}
    assert "a coroutine wanted to end the process; going on" in caplog.messages


def test_a_coroutine_that_stops_the_loop_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    host = ListHost()

    async def rude() -> int:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
        return 1

    many = CoroutineExecutor(10, host)
    many.put([held_job(rude)])
    until(lambda: host.outcomes)
    many.close()

    assert host.outcomes == [Succeeded("1")]
    assert caplog.messages == ["a coroutine stopped the loop that it shares with all others; going on"]


def test_a_loop_that_fails_in_itself_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ListHost()

    class Failing(asyncio.SelectorEventLoop):
        failures = 1

        def run_forever(self) -> None:
            if self.failures:
                self.failures -= 1
                raise MemoryError
            super().run_forever()

    monkeypatch.setattr(asyncio, "new_event_loop", Failing)

    async def work() -> int:
        return 1

    many = CoroutineExecutor(10, host)
    many.put([held_job(work)])
    until(lambda: host.outcomes)
    many.close()

    assert host.outcomes == [Succeeded("1")]


@pytest.mark.parametrize("rudely", [lambda: asyncio.get_running_loop().stop(), raising(SystemExit())])
def test_a_coroutine_that_is_rude_to_the_last_does_not_keep_the_loop_from_ending(rudely: Callable[[], None]) -> None:
    host, started = ListHost(), threading.Event()

    async def endless() -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            asyncio.get_running_loop().call_soon(rudely)
            await asyncio.sleep(0.01)

    many = CoroutineExecutor(10, host)
    many.put([held_job(endless)])
    started.wait()
    many.close()

    assert many._loop is not None
    assert many._thread is not None
    assert many._loop.is_closed()
    assert not many._thread.is_alive()


def test_an_attempt_that_outlives_its_loop_may_be_told_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heartbeat may tell it, which must not fail for the sake of the others that it has to tell."""
    monkeypatch.setattr(coroutines, "_FAREWELL", 0.01)
    host, started = ListHost(), threading.Event()

    async def deaf() -> None:
        started.set()
        while True:
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                continue

    many = CoroutineExecutor(10, host)
    held = held_job(deaf)
    many.put([held])
    started.wait()
    many.close()
    assert many._loop is not None
    until(many._loop.is_closed)
    many._running[held]._log_destroy_pending = False  # type: ignore[attr-defined] # as we know

    held.end(KeyboardInterrupt())


def test_a_job_of_which_nobody_can_say_what_it_came_to_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room to say so")

    async def broken() -> float:
        return 1 / 0

    monkeypatch.setattr(coroutines, "ending", fail)
    host = ListHost()
    many = CoroutineExecutor(1, host)

    many.put([held_job(broken)])
    until(lambda: host.outcomes)
    room = many.room
    many.close()

    (failed,) = host.outcomes
    assert isinstance(failed, Failed)
    assert (failed.failure.message, failed.retryable) == ("no room to say so", False)
    assert room == 1


@pytest.fixture
def app(sqlite_url: str) -> Mainspring:
    return Mainspring(sqlite_url)


def test_a_coroutine_that_is_cancelled_from_within_is_tried_again_like_any_failure(app: Mainspring) -> None:
    @app.task(retry=Retry(base="10ms"))
    async def waits(ctx: Context) -> int:
        if ctx.attempt == 1:
            inner = asyncio.create_task(asyncio.sleep(3600))
            asyncio.get_running_loop().call_soon(inner.cancel)
            await inner
        return ctx.attempt

    @app.task(retry=Retry(base="10ms", never=(asyncio.CancelledError,)))
    async def never_again() -> None:
        raise asyncio.CancelledError

    again, once = waits.enqueue(), never_again.enqueue()
    with app.worker():
        assert again.result(timeout=LONG) == 2
        assert ended(once) is JobState.FAILED

    assert outcomes(again) == ["failed", "succeeded"]
    assert outcomes(once) == ["failed"]
    failure = once.refresh().failure
    assert failure is not None
    assert failure.type == "asyncio.exceptions.CancelledError"
    assert failure.message == "it was raised in the handler: nobody had asked the worker to cancel it"
    app.close()


def test_a_coroutine_that_is_kept_out_by_a_block_of_another_is_told_why(app: Mainspring) -> None:
    """On SQLite, which has one writer at a time; to wait there would hold up the loop, and so the block itself."""
    refused = asyncio.Event()

    @app.task(retry=ONCE)
    async def writes(ctx: Context) -> None:
        try:
            with ctx.transaction():
                await refused.wait()
        except StoreError:
            refused.set()
            raise

    jobs = writes.enqueue_many([((), {})] * 2)
    with app.worker():
        assert sorted(ended(job) for job in jobs) == [JobState.FAILED, JobState.SUCCEEDED]

    (failure,) = [failure for job in jobs if (failure := job.refresh().failure) is not None]
    assert "let no coroutine await anything inside one" in failure.message
    app.close()
