"""Workflows as workers run them: on threads, on a loop, in processes, and by several workers at once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from mainspring import Context, JobFailed, JobState, Mainspring, Retry, StoreUnavailable, Workflow
from mainspring.store.sql import SqlStore
from mainspring.worker import prepare
from mainspring.workflow_handle import WorkflowHandle
from tests.support.waiting import until
from tests.worker import workflow_tasks


@pytest.fixture
def elsewhere(url: str) -> Iterator[Mainspring]:
    """The app of a module that child processes import."""
    with workflow_tasks.app.client.redirect(url):
        yield workflow_tasks.app


def test_results_go_from_thread_to_loop_to_process(elsewhere: Mainspring) -> None:
    with elsewhere.workflow("kinds") as wf:
        numbers = wf.map(workflow_tasks.halve, wf.map(workflow_tasks.double, [1, 2, 3]))
        wf.add(workflow_tasks.total, numbers)
    with elsewhere.worker(concurrency=2):
        result = wf.enqueue().result(timeout=60)

    assert result[0] == 6
    assert result[1] != os.getpid()


def test_a_workflow_may_be_made_and_added_to_in_a_process_of_its_own(elsewhere: Mainspring) -> None:
    with elsewhere.workflow("grows") as wf:
        wf.add(workflow_tasks.spread, [1, 2])
    with elsewhere.worker(concurrency=2):
        made = workflow_tasks.made_elsewhere.enqueue([1, 2])
        grown = wf.enqueue()
        result = made.result(timeout=60)
        assert grown.result(timeout=60) != os.getpid()

    assert result[0] == 3
    members = grown.jobs()
    assert [job.result() for job in members[1:3]] == [2, 4]
    assert members[3].result() == [4, 8]


def test_many_workflows_of_many_jobs_end_each_with_its_own_result(app: Mainspring) -> None:
    ran: Counter[tuple[int, int]] = Counter()
    lock = threading.Lock()

    @app.task
    def add(run: int, place: int, *before: int) -> int:
        with lock:
            ran[run, place] += 1
        return 1 + sum(before)

    @app.workflow
    def ladder(wf: Workflow, run: int) -> None:
        nodes: list[Any] = []
        for place in range(20):
            nodes.append(wf.add(add, run, place, *nodes[-2:]))

    with app.worker(concurrency=4), app.worker(concurrency=4):
        runs = [ladder.enqueue(number) for number in range(10)]
        results = {run.result(timeout=120) for run in runs}

    assert results == {_ladder(20)}
    assert set(ran.values()) == {1}
    assert len(ran) == 200


def _ladder(rungs: int) -> int:
    values: list[int] = []
    for _ in range(rungs):
        values.append(1 + sum(values[-2:]))
    return values[-1]


def test_a_workflow_that_is_cancelled_while_it_runs_ends_when_its_jobs_have(app: Mainspring) -> None:
    started = threading.Event()

    @app.task
    def endless(ctx: Context) -> None:
        started.set()
        while True:
            ctx.check()
            threading.Event().wait(0.001)

    @app.task
    def never() -> None: ...

    with app.workflow("long") as wf:
        wf.add(never.using(after=[wf.add(endless)]))
    with app.worker():
        run = wf.enqueue()
        started.wait()
        run.cancel("enough")
        with pytest.raises(JobFailed, match="cancelled: enough"):
            run.result(timeout=60)

    assert run.progress() == {JobState.CANCELLED: 2}


def test_members_that_a_running_job_adds_to_a_workflow_that_is_being_cancelled_are_cancelled_too(
    app: Mainspring,
) -> None:
    started, go_on = threading.Event(), threading.Event()

    @app.task
    def never() -> None: ...

    @app.task
    def stubborn(ctx: Context) -> None:
        ctx.add(never)
        started.set()
        go_on.wait()

    with app.workflow("long") as wf:
        wf.add(stubborn)
    with app.worker():
        run = wf.enqueue()
        started.wait()
        run.cancel()
        go_on.set()
        until(lambda: run.state.final)

    assert run.state is JobState.CANCELLED
    assert run.progress() == {JobState.SUCCEEDED: 1, JobState.CANCELLED: 1}


def test_results_that_are_too_large_together_fail_the_job_that_wants_them_and_no_other(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.store.results.LARGEST", 100)

    @app.task
    def text(length: int) -> str:
        return "x" * length

    @app.task(retry=Retry(max_attempts=1))
    def length(texts: list[str]) -> int:
        return sum(map(len, texts))

    def run(size: int) -> WorkflowHandle[Any]:
        with app.workflow("texts") as wf:
            wf.add(length, wf.map(text, [size] * 3))
        return wf.enqueue()

    with app.worker():
        large, small = run(50), run(5)
        assert small.result(timeout=60) == 15
        with pytest.raises(JobFailed, match=r"are larger than 100 characters together; have its jobs store their data"):
            large.result(timeout=60)


def test_a_map_of_too_many_items_fails(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "MOST_ITEMS", 2)

    @app.task
    def one(number: int) -> int:
        return number

    with app.workflow("many") as wf:
        wf.map(one, [1, 2, 3])
    with app.worker():
        with pytest.raises(JobFailed, match=r"expected at most 2 items to map 'one' over, got 3"):
            wf.enqueue().result(timeout=60)


def test_what_was_claimed_goes_back_when_the_results_that_it_needs_can_not_be_read(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StoreUnavailable("away for a moment")]
    results = SqlStore.results

    def flaky(self: SqlStore, ids: Any, *keys: Any) -> Any:
        if ids and failures:
            raise failures.pop()
        return results(self, ids, *keys)

    monkeypatch.setattr(SqlStore, "results", flaky)

    @app.task
    def one(number: int) -> int:
        return number + 1

    with app.workflow("flaky") as wf:
        last = wf.add(one, wf.add(one, 1))
    with app.worker():
        run = wf.enqueue()
        until(lambda: run.state.final)

    assert app.job(last.id).result() == 3
    assert [attempt.outcome for attempt in app.job(last.id).attempts()] == ["returned", "succeeded"]


@pytest.mark.parametrize("way", ["a key twice", "a parent that is gone"])
def test_a_workflow_that_can_not_be_stored_fails_with_the_reason(app: Mainspring, way: str) -> None:
    @app.task(key="{number}")
    def one(number: int) -> int:
        return number

    @app.workflow
    def impossible(wf: Workflow) -> None:
        if way == "a key twice":
            wf.add(one, 1)
            wf.add(one, 1)
        else:
            wf.add(one.using(after=[app.client.new_ids(1)[0]]), 1)

    with app.workflow("doubled") as wf:
        wf.map(one, [2, 2])
    with app.worker():
        with pytest.raises(JobFailed, match=r"has its key '1'" if way == "a key twice" else r"no job has the id"):
            impossible.enqueue().result(timeout=60)
        with pytest.raises(JobFailed, match=r"has its key '2'"):
            wf.enqueue().result(timeout=60)
