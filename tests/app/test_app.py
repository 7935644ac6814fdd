"""The app: what users write against, and what it refuses."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mainspring import Context, JobState, Mainspring, Priority, Retry
from mainspring.errors import (
    DuplicateTask,
    InvalidPayload,
    InvalidValue,
    JobNotFound,
    MainspringError,
    ResultNotReady,
    TaskNotFound,
)


def greet(name: str, times: int = 1) -> str:
    return f"Hello, {name}! " * times


def test_making_an_app_touches_nothing(tmp_path: Path) -> None:
    app = Mainspring(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.task(greet)

    assert list(tmp_path.iterdir()) == []


def test_the_database_is_the_one_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", f"sqlite:///{tmp_path / 'jobs.db'}")
    app = Mainspring()

    app.enqueue("greet", args=["Ada"])

    assert (tmp_path / "jobs.db").exists()
    app.close()


def test_a_task_is_still_a_function(app: Mainspring) -> None:
    task = app.task(greet)

    assert task("Ada") == "Hello, Ada! "
    assert (task.name, task.__wrapped__) == ("greet", greet)


def test_a_second_task_of_the_same_name_is_refused(app: Mainspring) -> None:
    app.task(greet)

    with pytest.raises(DuplicateTask, match="a task named 'greet' exists already"):
        app.task(greet)
    app.task(name="greet2")(greet)


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ([], {}, "missing a required argument: 'name'"),
        (["Ada", 1, 2], {}, "too many positional arguments"),
        (["Ada"], {"often": 1}, "unexpected keyword argument 'often'"),
        (["Ada", "twice"], {}, "argument 'times': expected `int`, got `str`"),
        ([object()], {}, "expected a value that JSON can carry"),
    ],
)
def test_a_call_that_could_not_work_is_refused_at_once_and_nothing_is_stored(
    app: Mainspring, args: list[Any], kwargs: dict[str, Any], why: str
) -> None:
    task = app.task(greet)

    with pytest.raises(InvalidPayload, match=why):
        task.enqueue(*args, **kwargs)
    with pytest.raises(InvalidPayload, match=why):
        app.enqueue("greet", args, kwargs)
    with pytest.raises(InvalidPayload, match=why):
        task.enqueue_many([(["Ada"], {}), (args, kwargs)])

    assert app.jobs() == []


def test_wishes_are_those_of_the_task_unless_one_says_otherwise(app: Mainspring) -> None:
    task = app.task(queue="mail", priority=Priority.HIGH)(greet)
    at = datetime(2030, 1, 1, tzinfo=UTC)

    plain, urgent, later, dated = (
        task.enqueue("Ada").snapshot,
        task.using(queue="fast", priority=20).enqueue("Ada").snapshot,
        task.using(run_after="10m").using(key="k").enqueue("Ada").snapshot,
        task.using(run_at=at).enqueue("Ada").snapshot,
    )

    assert (plain.queue, plain.priority, plain.state) == ("mail", 10, JobState.READY)
    assert (urgent.queue, urgent.priority) == ("fast", 20)
    assert (later.queue, later.key, later.state) == ("mail", "k", JobState.SCHEDULED)
    assert later.run_at - later.created_at == timedelta(minutes=10)
    assert dated.run_at == at


def test_a_key_returns_the_job_that_has_it(app: Mainspring) -> None:
    task = app.task(greet).using(key="once")

    assert task.enqueue("Ada") == task.enqueue("Grace")


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"run_at": datetime(2030, 1, 1)}, "run_at to have a time zone"),  # noqa: DTZ001
        ({"run_after": "soon"}, "expected run_after to be a timedelta, a number of seconds or text like '10m'"),
        ({"run_after": "1m", "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, "expected run_at or run_after, got both"),
        ({"priority": 101}, "priority to be a whole number from 0 to 100"),
        ({"prio": 1}, "no setting is named 'prio', did you mean 'priority'"),
        ({"key": ""}, "expected key to be text that is not empty"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(app: Mainspring, wishes: dict[str, Any], why: str) -> None:
    task = app.task(greet)

    with pytest.raises(InvalidValue, match=why):
        task.using(**wishes).enqueue("Ada")


@pytest.mark.parametrize(
    ("policies", "why"),
    [
        ({"timeout": "never"}, "expected timeout to be a timedelta"),
        (
            {"executor": "treads"},
            "expected executor to be one of thread, coroutine, process, got: 'treads', did you mean",
        ),
        ({"executor": "coroutine"}, "expected a handler that executor='coroutine' can run, got a plain function"),
        ({"que": "mail"}, "no setting is named 'que', did you mean 'queue'"),
        ({"queue": "my mail"}, "expected queue to be 1 to 128 letters"),
    ],
)
def test_policies_that_make_no_sense_are_refused(app: Mainspring, policies: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        app.task(**policies)(greet)


def test_a_context_that_is_not_where_it_can_be_passed_is_refused(app: Mainspring) -> None:
    def confused(n: int, ctx: Context) -> None: ...

    with pytest.raises(InvalidValue, match="the Context to be one parameter: the first, or one that is passed by name"):
        app.task(confused)


def test_an_unknown_task_is_refused_by_an_app_that_has_tasks(app: Mainspring) -> None:
    app.task(greet)

    with pytest.raises(TaskNotFound, match="no task is named 'great', did you mean 'greet'"):
        app.enqueue("great")


def test_a_job_can_be_found_again_by_its_id(app: Mainspring) -> None:
    job = app.task(greet).enqueue("Ada")

    assert app.job(job.id) == app.job(str(job.id)) == job
    with pytest.raises(JobNotFound):
        app.job(uuid4())
    with pytest.raises(InvalidValue, match="expected the id of a job"):
        app.job("17")


def test_jobs_are_listed_newest_first(app: Mainspring) -> None:
    one, two, three = app.task(greet).enqueue_many([(["Ada"], {})] * 3)

    assert app.jobs() == [three, two, one]
    assert app.jobs(limit=1, before=three.id) == [two]
    assert app.jobs(state="succeeded") == []


def test_a_job_that_waits_can_be_paused_resumed_cancelled_and_replayed(app: Mainspring) -> None:
    job = app.task(greet).enqueue("Ada")

    assert job.pause("lunch") is JobState.PAUSED
    assert [reason.code for reason in job.explain()] == ["paused", "no_worker"]
    assert job.resume() is JobState.READY
    assert job.cancel() is JobState.CANCELLED
    assert job.explain() == []
    assert job.replay() is JobState.READY


def test_a_result_that_does_not_come_in_time_says_so(app: Mainspring) -> None:
    job = app.task(greet).using(run_after="1h").enqueue("Ada")

    with pytest.raises(ResultNotReady, match="has not finished yet: it is scheduled"):
        job.result(timeout=0.01)
    assert issubclass(ResultNotReady, TimeoutError)


def test_every_call_has_an_awaitable_twin(app: Mainspring) -> None:
    task = app.task(greet)

    async def use() -> list[Any]:
        job = await task.aenqueue("Ada", times=2)
        await app.aenqueue("greet", ["Ada"])
        await task.aenqueue_many([(["Ada"], {})])
        return [
            await job.apause(),
            await job.aresume(),
            await job.acancel(),
            await job.areplay(),
            await job.aattempts(),
        ]

    assert asyncio.run(use()) == [JobState.PAUSED, JobState.READY, JobState.CANCELLED, JobState.READY, []]
    assert len(app.jobs()) == 3


def test_delay_is_another_word_for_enqueue(app: Mainspring) -> None:
    assert app.task(greet).delay("Ada").state is JobState.READY


def test_an_app_that_was_closed_opens_again(app: Mainspring) -> None:
    task = app.task(greet)
    job = task.enqueue("Ada")
    app.close()

    assert app.job(job.id).state is JobState.READY


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True])
def test_a_concurrency_that_makes_no_sense_is_refused(app: Mainspring, concurrency: int) -> None:
    with pytest.raises(InvalidValue, match="expected concurrency to be a whole number from 1 to 10,000"):
        app.worker(concurrency=concurrency).__enter__()


def test_all_that_is_raised_on_purpose_has_one_base(app: Mainspring) -> None:
    with pytest.raises(MainspringError):
        app.task(retry=Retry(max_attempts=1))(greet).enqueue(name=object())  # type: ignore[arg-type]
