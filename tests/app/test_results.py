"""Waiting for a result, in a thread and in a coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.errors import InvalidValue, JobFailed, ResultNotReady
from mainspring.job_handle import JobHandle
from mainspring.testing import adrain, drain


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run *coroutine* on a loop that has a single thread to lend."""

    async def with_one_thread() -> Any:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
        return await coroutine

    return asyncio.run(with_one_thread())


@pytest.fixture
def jobs(app: Mainspring) -> list[JobHandle[int]]:
    """Three jobs that nobody runs."""

    @app.task(retry=Retry(max_attempts=1))
    def divide(by: int) -> int:
        return 6 // by

    return divide.enqueue_many([([by], {}) for by in (2, 3, 0)])


@contextmanager
def let_go(jobs: list[JobHandle[int]]) -> Iterator[None]:
    """End what a wait that should not occupy a thread waits for, so that a test that fails can end."""
    try:
        yield
    finally:
        for job in jobs:
            job.cancel()


def test_a_result_is_what_the_handler_returned_or_why_it_did_not(app: Mainspring, jobs: list[JobHandle[int]]) -> None:
    async def results() -> list[int | BaseException]:
        return await asyncio.gather(*(job.aresult() for job in jobs), return_exceptions=True)

    drain(app)
    first, second, failed = run(results())

    assert [jobs[0].result(), jobs[1].result()] == [first, second] == [3, 2]
    with pytest.raises(JobFailed) as caught:
        jobs[2].result()
    assert (type(failed), str(failed)) == (JobFailed, str(caught.value))


def test_a_result_that_does_not_come_in_time_is_the_same_error_in_both_ways(jobs: list[JobHandle[int]]) -> None:
    with pytest.raises(ResultNotReady) as caught:
        jobs[0].result(timeout=0.01)
    with pytest.raises(ResultNotReady) as awaited:
        run(jobs[0].aresult(timeout=0.01))

    assert str(caught.value) == str(awaited.value) == f"job {jobs[0].id} has not finished yet: it is ready"


def test_a_result_that_is_not_what_the_annotation_promises_is_returned_as_json_has_it(app: Mainspring) -> None:
    @app.task
    def promise(kind: str) -> dict[str, datetime]:
        return {"text": "soon", "list": [1, (2,)], "good": {"at": datetime(2030, 1, 1, tzinfo=UTC)}}[kind]  # type: ignore[return-value]

    jobs = [promise.enqueue(kind) for kind in ("text", "list", "good")]
    drain(app)

    results: list[Any] = [job.result() for job in jobs]
    assert results == ["soon", [1, [2]], {"at": datetime(2030, 1, 1, tzinfo=UTC)}]
    assert run(jobs[0].aresult()) == "soon"


def test_a_timeout_that_makes_no_sense_is_refused_in_both_ways(jobs: list[JobHandle[int]]) -> None:
    with pytest.raises(InvalidValue, match="expected timeout to be a duration such as '90s'"):
        jobs[0].result(timeout="soon")
    with pytest.raises(InvalidValue, match="expected timeout to be a duration such as '90s'"):
        run(jobs[0].aresult(timeout="soon"))


def test_coroutines_that_wait_leave_the_threads_to_what_they_wait_for(
    app: Mainspring, jobs: list[JobHandle[int]]
) -> None:
    async def wait() -> list[int | BaseException]:
        waits = asyncio.gather(*(job.aresult() for job in jobs), return_exceptions=True)
        await asyncio.sleep(0)
        with let_go(jobs):
            await adrain(app)
        return await waits

    first, second, failed = run(wait())

    assert (first, second, type(failed)) == (3, 2, JobFailed)


def test_a_wait_that_is_cancelled_is_over(jobs: list[JobHandle[int]]) -> None:
    async def wait_in_vain() -> None:
        with let_go(jobs):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(jobs[0].aresult(), 0.05)
            await jobs[0].arefresh()

    run(wait_in_vain())
