"""The app: what users write against, and what it refuses."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
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
    ReplayRefused,
    TaskNotFound,
)
from mainspring.job_handle import JobHandle
from mainspring.model.task import Executor
from mainspring.testing import drain


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


def test_a_function_can_become_several_tasks_each_with_its_own_policies(app: Mainspring, tmp_path: Path) -> None:
    other = Mainspring(f"sqlite:///{tmp_path / 'other.db'}")

    @app.task(name="slowly", queue="slow")
    @other.task(name="elsewhere", queue="far")
    @app.task(name="quickly", queue="quick")
    async def work(ctx: Context, n: int) -> int:
        return n

    work.enqueue(1)
    app.enqueue("quickly", [2])
    other.enqueue("elsewhere", [3])

    assert [(job.snapshot.task, job.snapshot.queue) for job in app.jobs()] == [("quickly", "quick"), ("slowly", "slow")]
    assert [(job.snapshot.task, job.snapshot.queue) for job in other.jobs()] == [("elsewhere", "far")]
    assert {task.executor for task in app.tasks} == {Executor.COROUTINE}
    assert {task.context for task in app.tasks} == {"ctx"}
    other.close()


def test_what_a_function_carries_does_not_take_the_place_of_what_a_task_does(app: Mainspring) -> None:
    def marked() -> None: ...

    marked.__dict__.update(task="theirs", _client=None, _wishes={"queue": "theirs"}, enqueue=None)

    assert app.task(marked).enqueue().snapshot.queue == "default"


def test_an_argument_may_have_any_name(app: Mainspring) -> None:
    @app.task
    def describe(self: int, call: int, func: int, task: int, args: int, kwargs: int) -> int:
        return self

    arguments = dict.fromkeys(("self", "call", "func", "task", "args", "kwargs"), 1)

    assert describe(**arguments) == 1

    async def enqueue() -> JobHandle[int]:
        return await describe.aenqueue(**arguments)

    jobs = [describe.enqueue(**arguments), asyncio.run(enqueue()), app.enqueue("describe", kwargs=arguments)]
    jobs += describe.enqueue_many([((), arguments)])
    assert {job.snapshot.payload for job in jobs} == {describe.task.encode(**arguments)}


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


@pytest.mark.parametrize("wrong", [1, "ab", ("ab", {}), ((1,),), ((1,), [2]), ((1,), {}, {}), {"name": "Ada"}, None])
def test_calls_that_are_no_pairs_are_refused_and_nothing_is_stored(app: Mainspring, wrong: Any) -> None:
    task = app.task(greet)
    says = f"such as ((1,), {{'tenant': 'acme'}}), got: {wrong!r}"

    with pytest.raises(InvalidValue, match=f"^expected pairs of arguments by position and by name, {re.escape(says)}$"):
        task.enqueue_many([(["Ada"], {}), wrong])

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


def test_a_priority_may_be_said_by_name(app: Mainspring) -> None:
    task = app.task(priority="HIGH")(greet)

    jobs = [task.enqueue("Ada"), task.using(priority="urgent").enqueue("Ada")]
    jobs += [app.enqueue("greet", ["Ada"], priority="Low")]

    assert [job.snapshot.priority for job in jobs] == [Priority.HIGH, Priority.URGENT, Priority.LOW]


def test_a_key_returns_the_job_that_has_it(app: Mainspring) -> None:
    task = app.task(greet).using(key="once")

    assert task.enqueue("Ada") == task.enqueue("Grace")


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"run_at": datetime(2030, 1, 1)}, "run_at to have a time zone"),  # noqa: DTZ001
        ({"run_after": "soon"}, "expected run_after to be a duration such as '90s'"),
        ({"run_after": "1m", "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, "expected run_at or run_after, got both"),
        ({"priority": 101}, "priority to be a whole number from 0 to 100"),
        ({"priority": "hihg"}, "one of low, normal, high, urgent, got: 'hihg', did you mean 'high'"),
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
        ({"timeout": "never"}, "expected timeout to be a duration such as '90s'"),
        (
            {"executor": "treads"},
            "expected executor to be one of thread, coroutine, process, got: 'treads', did you mean 'thread'",
        ),
        ({"executor": "coroutine"}, "expected a handler that executor='coroutine' can run, got a plain function"),
        ({"que": "mail"}, "no setting is named 'que', did you mean 'queue'"),
        ({"queue": "my mail"}, "expected queue to be 1 to 128 ASCII letters"),
        ({"queue": 5}, "expected queue to be 1 to 128 ASCII letters"),
        ({"name": None}, "expected task name to be 1 to 128 ASCII letters"),
        ({"priority": "urgnt"}, "one of low, normal, high, urgent, got: 'urgnt', did you mean 'urgent'"),
        ({"priority": 1.5}, "priority to be a whole number from 0 to 100, got: 1.5"),
        ({"timeout": 0}, "expected timeout to be longer than 0"),
        ({"executor": 5}, "expected executor to be one of thread, coroutine, process, got: 5"),
    ],
)
def test_policies_that_make_no_sense_are_refused(app: Mainspring, policies: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        app.task(**policies)(greet)


def test_an_unknown_task_is_refused_by_an_app_that_has_tasks(app: Mainspring) -> None:
    app.task(greet)

    with pytest.raises(TaskNotFound, match="no task is named 'great', did you mean 'greet'"):
        app.enqueue("great")


def test_a_job_can_be_found_again_by_its_id(app: Mainspring) -> None:
    job = app.task(greet).enqueue("Ada")

    assert app.job(job.id) == app.job(str(job.id)) == job
    with pytest.raises(JobNotFound):
        app.job(uuid4())


@pytest.mark.parametrize("wrong", ["17", 5, None, b"17"])
def test_what_is_no_id_is_refused(app: Mainspring, wrong: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        app.job(wrong)

    assert str(caught.value) == f"expected the id of a job, a UUID, got: {wrong!r}"


def test_jobs_are_listed_newest_first(app: Mainspring) -> None:
    one, two, three = app.task(greet).enqueue_many([(["Ada"], {})] * 3)

    assert app.jobs() == [three, two, one]
    assert app.jobs(limit=1, before=three.id) == app.jobs(limit=1, before=str(three.id)) == [two]
    assert app.jobs(limit=0) == []
    assert app.jobs(state="succeeded") == []


def test_jobs_are_listed_by_time_and_by_error(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def fail() -> None:
        raise KeyError("no luck")

    failed, waiting = fail.enqueue(), app.task(greet).using(run_after="1h").enqueue("Ada")
    drain(app)
    now = app.client.store.now()

    assert app.jobs(since="1h", until=now + timedelta(minutes=1)) == [waiting, failed]
    assert app.jobs(until="1h") == app.jobs(since=now + timedelta(minutes=1)) == []
    assert app.jobs(finished_since=timedelta(hours=1)) == app.jobs(error="keyerror") == [failed]
    assert app.jobs(finished_until="1h") == app.jobs(error="had luck") == []
    assert app.jobs(error="") == app.jobs()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"since": datetime(2026, 1, 1)}, "expected since to have a time zone"),  # noqa: DTZ001 - what is refused
        ({"until": "soon"}, "expected until to be"),
        ({"error": 7}, "expected error to be text, got: 7"),
        ({"sinse": "1h"}, "no filter is named 'sinse', did you mean 'since'?"),
    ],
    ids=str,
)
def test_what_is_no_filter_is_refused(app: Mainspring, wrong: Any, said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        app.jobs(**wrong)

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "hint"), [("suceeded", ", did you mean 'succeeded'?"), ("x", ""), (5, ""), ([], "")], ids=str
)
def test_what_is_no_state_is_refused(app: Mainspring, wrong: Any, hint: str) -> None:
    known = "blocked, scheduled, ready, running, retrying, paused, succeeded, failed, cancelled, expired"
    with pytest.raises(InvalidValue) as caught:
        app.jobs(state=wrong)

    assert str(caught.value) == f"expected state to be one of {known}, got: {wrong!r}{hint}"


@pytest.mark.parametrize("wrong", [-1, "x", 1.5, True, None, 2**70])
def test_what_is_no_limit_is_refused(app: Mainspring, wrong: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        app.jobs(limit=wrong)

    assert str(caught.value) == f"expected limit to be a whole number from 0 to 1,000,000, got: {wrong!r}"


def test_a_page_begins_after_an_id(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="expected the id of a job, a UUID, got: 5"):
        app.jobs(before=5)  # type: ignore[arg-type]


def test_a_job_that_waits_can_be_paused_resumed_cancelled_and_replayed(app: Mainspring) -> None:
    job = app.task(greet).enqueue("Ada")

    assert job.pause("lunch", by="ada") is JobState.PAUSED
    assert job.explain()[0].sentence == "it was paused (by ada: lunch)"
    assert [reason.code for reason in job.explain()] == ["paused", "no_worker"]
    assert job.resume() is JobState.READY
    assert job.cancel() is JobState.CANCELLED
    assert job.explain() == []
    assert job.replay() is JobState.READY


def test_a_job_that_succeeded_can_not_be_replayed(app: Mainspring) -> None:
    job = app.task(greet).enqueue("Ada")
    drain(app)

    with pytest.raises(ReplayRefused) as caught:
        job.replay()
    assert str(caught.value) == f"job {job.id} can't be replayed: it has succeeded; enqueue another"


def test_a_job_whose_key_another_has_can_not_be_replayed_until_that_ends(app: Mainspring) -> None:
    task = app.task(greet).using(key="once")
    dead = task.enqueue("Ada")
    dead.cancel()
    other = task.enqueue("Grace")

    with pytest.raises(ReplayRefused) as caught:
        dead.replay()
    assert str(caught.value) == (
        f"job {dead.id} can't be replayed: an unfinished job has its key 'once'; let that end first"
    )
    other.cancel()
    assert dead.replay() is JobState.READY


def test_to_replay_twice_is_to_replay_once(app: Mainspring) -> None:
    job = app.task(greet).using(key="once").enqueue("Ada")
    job.cancel()

    assert [job.replay(), job.replay()] == [JobState.READY, JobState.READY]


def test_an_attempt_says_why_it_failed(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=2, base=0))
    def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError("no luck")

    job = flaky.enqueue()
    drain(app)

    first, second = job.attempts()
    assert first.failure is not None
    assert (first.failure.type, first.failure.message, second.failure) == ("ValueError", "no luck", None)


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


FORK = """
import os, signal, sys
from mainspring import Mainspring

app = Mainspring(sys.argv[1])
app.client._lock.acquire()  # as another thread does while it opens the store, for long when the server is away
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(30)  # rather than to wait for ever, if it has to wait at all
app.enqueue("greet")
os._exit(0)
"""


def test_a_fork_while_another_thread_opens_the_store_leaves_the_child_able_to_work(url: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, url])

    assert done.returncode == 0
    app = Mainspring(url)
    assert [job.snapshot.task for job in app.jobs()] == ["greet"]
    app.close()


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True])
def test_a_concurrency_that_makes_no_sense_is_refused(app: Mainspring, concurrency: int) -> None:
    with pytest.raises(InvalidValue, match="expected concurrency to be a whole number from 1 to 10,000"):
        app.worker(concurrency=concurrency).__enter__()


def test_all_that_is_raised_on_purpose_has_one_base(app: Mainspring) -> None:
    with pytest.raises(MainspringError):
        app.task(retry=Retry(max_attempts=1))(greet).enqueue(name=object())  # type: ignore[arg-type]


def test_a_job_that_no_worker_would_take_says_so(url: str) -> None:
    app, stranger = Mainspring(url), Mainspring(url)

    @app.task
    def known() -> None: ...

    @app.task(queue="mail")
    def in_another_queue() -> None: ...

    with app.worker(queues={"default": 1}):
        told = [
            [reason.code for reason in job.explain()]
            for job in (
                stranger.enqueue("unknown"),
                in_another_queue.enqueue(),
            )
        ]

    assert told == [["no_handler"], ["no_worker"]]
    stranger.close()
    app.close()
