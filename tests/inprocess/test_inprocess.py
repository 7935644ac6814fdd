"""Callables on threads of this program, through the same engine as everything else."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mainspring import Snooze, inprocess
from mainspring.errors import InvalidValue, NotFound
from mainspring.inprocess import SchedulerStopped, Task, TaskPriority, TaskScheduler, TaskStatus
from mainspring.model.job import Job
from mainspring.scheduler import prune
from mainspring.store.open import sqlite_file
from tests.support.databases import execute
from tests.support.waiting import until

PENDING, RUNNING, RETRYING, SUCCEEDED, FAILED, CANCELLED = TaskStatus
LATER = timedelta(days=1)


@pytest.fixture
def scheduler() -> Iterator[TaskScheduler]:
    """A scheduler with one worker, not started yet."""
    made = TaskScheduler(num_workers=1)
    yield made
    Gate.open_all()
    made.stop()


class Gate:
    """A callable that says that it has begun, and ends when it is let go."""

    _made: ClassVar[list[Gate]] = []

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()
        self._made.append(self)

    @classmethod
    def open_all(cls) -> None:
        """Let go what a test that failed has left closed."""
        while cls._made:
            cls._made.pop().go.set()

    def __call__(self) -> str:
        self.begun.set()
        self.go.wait()
        return "gone"


class Failing:
    """A callable that fails a number of times before it returns."""

    def __init__(self, times: int, then: Callable[[], object] = lambda: "done") -> None:
        self.calls = 0
        self._times = times
        self._then = then

    def __call__(self) -> object:
        self.calls += 1
        if self.calls <= self._times:
            raise ConnectionError(f"refused {self.calls}")
        return self._then()


def finished(*tasks: Task) -> list[TaskStatus]:
    until(lambda: all(task.status in (SUCCEEDED, FAILED, CANCELLED) for task in tasks))
    return [task.status for task in tasks]


def soon() -> datetime:
    return datetime.now()  # noqa: DTZ005 - as users write it


def job_of(scheduler: TaskScheduler, task: Task) -> Job:
    return scheduler._app.job(task.id).snapshot


# What can be run, and what comes of it.


def test_a_task_takes_its_settings_by_position_or_by_name() -> None:
    by_position = Task("sum", sum, ([1, 2],), {"start": 3}, TaskPriority.HIGH, 2, 0.5)
    by_name = Task(
        name="sum",
        func=sum,
        args=([1, 2],),
        kwargs={"start": 3},
        priority=TaskPriority.HIGH,
        max_retries=2,
        retry_delay_seconds=0.5,
    )

    assert repr(by_position).replace(by_position.id, "") == repr(by_name).replace(by_name.id, "")
    assert (by_name.status, by_name.error, by_name.result) == (PENDING, None, None)
    assert by_name.id != by_position.id


def test_any_callable_and_any_result_will_do(scheduler: TaskScheduler) -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, number: int, *, twice: bool) -> Counter:
            self.count += number * (1 + twice)
            return self

    async def wait(value: object) -> object:
        return value

    counter, thing = Counter(), object()
    method = Task("method", counter.add, (2,), {"twice": True})
    closure = Task("closure", lambda: (counter, {thing}))
    coroutine = Task("coroutine", wait, args=(thing,))
    builtin = Task("a name of any kind: ☂", dict, kwargs={"a": thing})
    for task in (method, closure, coroutine, builtin):
        scheduler.submit(task)
    scheduler.start()

    assert finished(method, closure, coroutine, builtin) == [SUCCEEDED] * 4
    assert method.result is counter
    assert counter.count == 4
    assert closure.result == (counter, {thing})
    assert coroutine.result is thing
    assert builtin.result == {"a": thing}


def test_several_workers_run_several_tasks_at_once() -> None:
    together = threading.Barrier(3)
    with TaskScheduler(num_workers=3) as scheduler:
        tasks = [Task("wait for the others", together.wait) for _ in range(3)]
        for task in tasks:
            scheduler.submit(task)

        assert finished(*tasks) == [SUCCEEDED] * 3


@pytest.mark.parametrize(
    "before_start", [True, False], ids=["submitted before the start", "submitted to a busy worker"]
)
def test_the_most_urgent_goes_first(scheduler: TaskScheduler, before_start: bool) -> None:
    order: list[str] = []
    gate = Gate()
    if not before_start:
        scheduler.start()
        scheduler.submit(Task("gate", gate))
        gate.begun.wait()
    tasks = [Task(priority.name, order.append, (priority.name,), priority=priority) for priority in TaskPriority]
    for task in tasks:
        scheduler.submit(task)
    assert [task.status for task in tasks] == [PENDING] * 4

    gate.go.set()
    scheduler.start()

    assert finished(*tasks) == [SUCCEEDED] * 4
    assert order == ["URGENT", "HIGH", "NORMAL", "LOW"]


def test_tasks_can_submit_tasks(scheduler: TaskScheduler) -> None:
    inner = Task("inner", lambda: 7)
    outer = Task("outer", scheduler.submit, (inner,))
    scheduler.start()
    scheduler.submit(outer)

    assert finished(outer, inner) == [SUCCEEDED, SUCCEEDED]
    assert (outer.result, inner.result) == (inner.id, 7)


# When.


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_new_york")
def test_a_time_without_a_zone_is_local_time(scheduler: TaskScheduler) -> None:
    local, aware = Task("local", print), Task("aware", print)
    scheduler.schedule_at(local, datetime(2030, 1, 1, 12))  # noqa: DTZ001 - that is the point
    scheduler.schedule_at(aware, datetime(2030, 1, 1, 12, tzinfo=UTC))

    assert job_of(scheduler, local).run_at == datetime(2030, 1, 1, 17, tzinfo=UTC)
    assert job_of(scheduler, aware).run_at == datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert scheduler.get_status(local.id) is PENDING


def test_a_task_runs_when_its_time_comes_and_not_before(scheduler: TaskScheduler) -> None:
    due = datetime.now(UTC) + timedelta(milliseconds=200)
    task = Task("look at the clock", lambda: datetime.now(UTC))
    past = Task("past", lambda: datetime.now(UTC))
    scheduler.start()
    scheduler.schedule_at(task, due)
    scheduler.schedule_at(past, soon() - LATER)

    assert finished(task, past) == [SUCCEEDED, SUCCEEDED]
    assert past.result < task.result
    assert task.result >= due


# When it fails.


def test_a_task_that_fails_twice_is_retried_after_delays_that_double(scheduler: TaskScheduler) -> None:
    gate = Gate()
    # The one worker is kept busy after the first failure, so that what is to be retried can be looked at.
    blocker = Task("block", gate, priority=TaskPriority.URGENT)
    due: list[datetime] = []

    def work() -> str:
        due.append(job_of(scheduler, task).run_at)
        if len(due) == 1:
            scheduler.submit(blocker)
        if len(due) <= 2:
            raise ConnectionError("refused")
        return "done"

    task = Task("flaky", work, max_retries=2, retry_delay_seconds=0.05)
    scheduler.submit(task)
    assert task.status is PENDING

    scheduler.start()
    gate.begun.wait()
    assert (task.status, task.error) == (RETRYING, "ConnectionError: refused")
    until(lambda: job_of(scheduler, task).state == "ready")
    assert task.status is RETRYING
    gate.go.set()

    assert finished(task) == [SUCCEEDED]
    assert (task.result, task.error) == ("done", None)
    first, second, third = scheduler._app.job(task.id).attempts()
    assert [first.outcome, second.outcome, third.outcome] == ["snoozed", "snoozed", "succeeded"]
    assert first.finished_at is not None
    assert second.finished_at is not None
    assert due[1:] == [
        first.finished_at + timedelta(seconds=0.05),
        second.finished_at + timedelta(seconds=0.1),
    ]


def test_a_task_without_retries_left_fails(scheduler: TaskScheduler) -> None:
    once, thrice = Failing(9), Failing(9)
    tasks = [Task("once", once), Task("thrice", thrice, max_retries=2, retry_delay_seconds=0)]
    scheduler.start()
    for task in tasks:
        scheduler.submit(task)

    assert finished(*tasks) == [FAILED, FAILED]
    assert (once.calls, thrice.calls) == (1, 3)
    assert [task.error for task in tasks] == ["ConnectionError: refused 1", "ConnectionError: refused 3"]
    assert [task.result for task in tasks] == [None, None]


def test_tasks_that_are_retried_in_ways_of_their_own_leave_nothing_of_that_behind(scheduler: TaskScheduler) -> None:
    tasks = [Task("odd", lambda: 1, max_retries=number, retry_delay_seconds=number / 7) for number in range(50)]
    for task in tasks:
        scheduler.submit(task)
    scheduler.start()
    finished(*tasks)

    assert len(scheduler._app.tasks) == 1
    assert not scheduler._unfinished._entries


@pytest.mark.parametrize("stop", [KeyboardInterrupt("no"), SystemExit("no")], ids=repr)
def test_what_would_end_a_program_ends_a_task(scheduler: TaskScheduler, stop: BaseException) -> None:
    def end() -> None:
        raise stop

    task = Task("end", end, max_retries=5)
    after = Task("after", lambda: "still here")
    scheduler.start()
    scheduler.submit(task)
    scheduler.submit(after)

    assert finished(task, after) == [FAILED, SUCCEEDED]
    assert task.error == f"{type(stop).__name__}: no"


def test_a_task_may_snooze(scheduler: TaskScheduler) -> None:
    def snooze_once() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise Snooze(0)
        return len(calls)

    calls: list[int] = []
    task = Task("snooze", snooze_once)
    scheduler.start()
    scheduler.submit(task)

    assert finished(task) == [SUCCEEDED]
    assert task.result == 2


def test_a_task_that_snoozes_has_not_failed(scheduler: TaskScheduler) -> None:
    calls = 0

    def snooze() -> None:
        nonlocal calls
        calls += 1
        raise Snooze(0 if calls < 3 else "1h")

    task = Task("snooze", snooze, max_retries=1)
    scheduler.start()
    scheduler.submit(task)
    until(lambda: calls == 3 and job_of(scheduler, task).state == "scheduled")

    assert (task.status, task.error) == (PENDING, None)


# Cancelling.


def test_a_task_that_waits_can_be_cancelled(scheduler: TaskScheduler) -> None:
    calls: list[int] = []
    scheduled, ready = Task("scheduled", calls.append, (1,)), Task("ready", calls.append, (1,))
    last = Task("last", lambda: None, priority=TaskPriority.LOW)
    scheduler.schedule_at(scheduled, soon() + LATER)
    scheduler.submit(ready)
    scheduler.submit(last)

    assert [scheduler.cancel(task.id) for task in (scheduled, ready)] == [True, True]
    assert [scheduler.cancel(task.id) for task in (scheduled, ready)] == [False, False]
    assert [scheduled.status, ready.status] == [CANCELLED, CANCELLED]
    scheduler.start()
    finished(last)
    assert calls == []


def test_a_task_that_waits_to_be_retried_can_be_cancelled(scheduler: TaskScheduler) -> None:
    failing = Failing(9)
    task = Task("flaky", failing, max_retries=5, retry_delay_seconds=3600)
    scheduler.start()
    scheduler.submit(task)
    until(lambda: task.status is RETRYING)

    assert scheduler.cancel(task.id) is True
    assert task.status is CANCELLED
    assert failing.calls == 1
    assert not scheduler._unfinished._entries


def test_a_task_that_a_worker_took_ahead_can_be_cancelled(scheduler: TaskScheduler) -> None:
    """Many quick tasks make the worker take several at once; those that have not begun are still pending."""
    scheduler.start()
    quick = [Task("quick", lambda: None) for _ in range(100)]
    for task in quick:
        scheduler.submit(task)
    finished(*quick)
    gate = Gate()
    calls: list[int] = []
    scheduler.submit(Task("gate", gate))
    gate.begun.wait()
    ahead = Task("ahead", calls.append, (1,))
    scheduler.submit(ahead)
    until(lambda: job_of(scheduler, ahead).state == "running")

    assert ahead.status is PENDING
    assert scheduler.cancel(ahead.id) is True
    assert ahead.status is CANCELLED
    gate.go.set()
    until(lambda: job_of(scheduler, ahead).state == "cancelled")
    assert calls == []


def test_a_task_that_runs_is_let_be_when_it_is_cancelled(scheduler: TaskScheduler) -> None:
    gate = Gate()
    task = Task("gate", gate)
    scheduler.start()
    scheduler.submit(task)
    gate.begun.wait()

    assert scheduler.cancel(task.id) is False
    assert task.status is RUNNING
    gate.go.set()
    assert finished(task) == [SUCCEEDED]
    assert task.result == "gone"


@pytest.mark.parametrize(
    ("error", "told"),
    [(ConnectionError("refused"), "ConnectionError: refused"), (Snooze("1h"), None)],
    ids=["fails", "snoozes"],
)
def test_a_task_that_was_cancelled_while_it_ran_does_not_run_again(
    scheduler: TaskScheduler, error: Exception, told: str | None
) -> None:
    gate = Gate()

    def fail() -> None:
        gate()
        raise error

    task = Task("fail", fail, max_retries=5, retry_delay_seconds=3600)
    scheduler.start()
    scheduler.submit(task)
    gate.begun.wait()
    assert scheduler.cancel(task.id) is False
    gate.go.set()

    assert finished(task) == [CANCELLED]
    assert task.error == told
    assert not scheduler._unfinished._entries


def test_a_task_that_has_finished_or_is_not_known_can_not_be_cancelled(scheduler: TaskScheduler) -> None:
    task, failed = Task("quick", lambda: None), Task("failing", Failing(1))
    scheduler.start()
    scheduler.submit(task)
    scheduler.submit(failed)
    finished(task, failed)

    unknown = [task.id, failed.id, Task("never submitted", print).id, "nonsense"]
    assert [scheduler.cancel(task_id) for task_id in unknown] == [False] * 4
    assert [task.status, failed.status] == [SUCCEEDED, FAILED]


# Asking.


@pytest.mark.parametrize("unknown", [Task("never submitted", print).id, "nonsense", 7], ids=["id", "text", "number"])
def test_the_status_of_an_unknown_task_is_an_error(scheduler: TaskScheduler, unknown: Any) -> None:
    with pytest.raises(NotFound, match=r"^no task of this scheduler has the id ") as caught:
        scheduler.get_status(unknown)

    assert isinstance(caught.value, LookupError)


def test_nothing_of_a_finished_task_is_kept_in_memory(scheduler: TaskScheduler) -> None:
    scheduler.start()
    tasks = [Task("ok", lambda: None), Task("failing", Failing(9)), Task("cancelled", print)]
    scheduler.schedule_at(tasks[2], soon() + LATER)
    scheduler.cancel(tasks[2].id)
    scheduler.submit(tasks[0])
    scheduler.submit(tasks[1])
    finished(*tasks)
    ids, dropped = [task.id for task in tasks], [weakref.ref(task) for task in tasks]

    tasks.clear()
    until(lambda: gc.collect() >= 0 and all(reference() is None for reference in dropped))

    assert [scheduler.get_status(task_id) for task_id in ids] == [SUCCEEDED, FAILED, CANCELLED]


def test_what_ended_days_ago_is_forgotten(scheduler: TaskScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "FIRST", 0.01)
    monkeypatch.setattr(prune, "EVERY", 0.01)
    old, young, waiting = Task("old", lambda: 1), Task("young", lambda: 1), Task("waiting", print)
    scheduler.start()
    scheduler.submit(old)
    scheduler.schedule_at(waiting, soon() + LATER)
    finished(old)
    database = f"sqlite:///{sqlite_file(scheduler._app.client.url)}"
    execute(database, "UPDATE mainspring_jobs_done SET finished_at = finished_at - 2 * 86400 * 1000000")
    scheduler.submit(young)
    finished(young)
    until(lambda: execute(database, f"SELECT 1 FROM mainspring_jobs_done WHERE id = '{old.id}'") == [])

    with pytest.raises(NotFound):
        scheduler.get_status(old.id)
    assert [young.status, waiting.status] == [SUCCEEDED, PENDING]


# Stopping.


def test_stopping_lets_end_what_runs_and_drops_the_rest() -> None:
    gate = Gate()
    scheduler = TaskScheduler(num_workers=1)
    file = sqlite_file(scheduler._app.client.url)
    assert file is not None
    running, waiting, later = Task("gate", gate), Task("waiting", lambda: 1), Task("later", lambda: 1)
    flaky, done = Task("flaky", Failing(9), max_retries=1, retry_delay_seconds=3600), Task("done", lambda: 1)
    scheduler.start()
    scheduler.submit(done)
    scheduler.submit(flaky)
    until(lambda: flaky.status is RETRYING)
    scheduler.submit(running)
    gate.begun.wait()
    scheduler.submit(waiting)
    scheduler.schedule_at(later, soon() + LATER)

    stopping = threading.Thread(target=scheduler.stop, daemon=True)
    stopping.start()
    until(lambda: scheduler._stopping is not None)
    assert running.status is RUNNING
    gate.go.set()
    stopping.join()

    statuses = [SUCCEEDED, SUCCEEDED, CANCELLED, CANCELLED, CANCELLED]
    assert [task.status for task in (done, running, waiting, later, flaky)] == statuses
    assert scheduler.get_status(running.id) is SUCCEEDED
    assert (running.result, waiting.result) == ("gone", None)
    assert not file.parent.exists()


def test_of_very_many_tasks_the_latest_can_be_asked_about_after_stopping(
    scheduler: TaskScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inprocess, "_KEPT", 2)
    made = [Task("task", lambda: 1) for _ in range(6)]
    waiting, *done = sorted(made, key=lambda task: task.id)  # ids of one millisecond come in any order
    scheduler.start()
    scheduler.schedule_at(waiting, soon() + LATER)
    for task in done:
        scheduler.submit(task)
    finished(*done)

    scheduler.stop()

    assert [task.status for task in done[-2:]] == [SUCCEEDED] * 2
    assert waiting.status is CANCELLED
    for task in done[:-2]:
        with pytest.raises(NotFound):
            scheduler.get_status(task.id)


def test_stopping_without_waiting_lets_what_runs_end_in_the_background() -> None:
    gate = Gate()
    scheduler = TaskScheduler(num_workers=1)
    directory = sqlite_file(scheduler._app.client.url)
    assert directory is not None
    task = Task("gate", gate)
    scheduler.start()
    scheduler.submit(task)
    gate.begun.wait()

    scheduler.stop(wait=False)

    assert task.status is RUNNING
    gate.go.set()
    scheduler.stop()
    assert (task.status, task.result) == (SUCCEEDED, "gone")
    assert not directory.parent.exists()


def test_a_task_can_stop_its_own_scheduler() -> None:
    scheduler = TaskScheduler(num_workers=1)
    task = Task("stop", scheduler.stop)
    scheduler.start()
    scheduler.submit(task)

    until(lambda: scheduler._stopping is not None)
    scheduler.stop()

    assert task.status is SUCCEEDED


def test_a_scheduler_that_never_started_can_be_stopped() -> None:
    unused, filled = TaskScheduler(), TaskScheduler()
    task = Task("never", print)
    filled.submit(task)
    for scheduler in (unused, filled):
        scheduler.stop()
        scheduler.stop()
        file = sqlite_file(scheduler._app.client.url)
        assert file is not None
        assert not file.parent.exists()

    assert task.status is CANCELLED


def test_starting_twice_is_starting_once(scheduler: TaskScheduler) -> None:
    scheduler.start()
    scheduler.start()
    task = Task("one", lambda: 1)
    scheduler.submit(task)

    assert finished(task) == [SUCCEEDED]


# What is refused.


def test_a_stopped_scheduler_refuses_tasks_and_to_start_again() -> None:
    with TaskScheduler() as scheduler:
        task = Task("late", print)

    with pytest.raises(SchedulerStopped, match=r"^this scheduler was stopped, so it can't be given task 'late'$"):
        scheduler.submit(task)
    with pytest.raises(SchedulerStopped, match="make a new one"):
        scheduler.start()
    assert task.status is PENDING


def test_a_task_is_submitted_once(scheduler: TaskScheduler) -> None:
    task = Task("twice", print)
    scheduler.submit(task)

    with pytest.raises(InvalidValue, match=r"^task 'twice' was submitted already; make another Task to run it again$"):
        scheduler.schedule_at(task, soon())


def test_a_task_that_could_not_be_submitted_can_be_submitted_again(scheduler: TaskScheduler) -> None:
    task = Task("out of range", lambda: 1)
    with pytest.raises(InvalidValue, match="run_at"):
        scheduler.schedule_at(task, datetime(1960, 1, 1, tzinfo=UTC))
    scheduler.submit(task)
    scheduler.start()

    assert finished(task) == [SUCCEEDED]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"func": "print"}, "expected func of task 't' to be callable, got: 'print'"),
        ({"args": "ada"}, "expected args to be a tuple, got 'ada'; one argument is written (x,)"),
        ({"max_retries": -1}, "expected max_retries to be a whole number of at least 0, got: -1"),
        ({"max_retries": 1.5}, "expected max_retries to be a whole number of at least 0, got: 1.5"),
        ({"retry_delay_seconds": -1}, "expected retry_delay_seconds to be between 0 and 100 years, got: -1"),
        ({"priority": 1000}, "expected priority to be a whole number from 0 to 100, got: 1000"),
    ],
)
def test_a_task_that_could_not_work_is_refused_when_it_is_made(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Task(**{"name": "t", "func": print, **settings})

    assert str(caught.value) == complaint


@pytest.mark.parametrize("number", [0, -1, 2.0, "4", True])
def test_a_number_of_workers_that_makes_no_sense_is_refused(number: Any) -> None:
    with pytest.raises(InvalidValue, match="expected num_workers to be from 1 to 10,000"):
        TaskScheduler(num_workers=number)


def test_what_is_no_task_and_no_time_is_refused(scheduler: TaskScheduler) -> None:
    wrong: Any = "print"
    with pytest.raises(InvalidValue, match="expected a Task, got: 'print'"):
        scheduler.submit(wrong)
    with pytest.raises(InvalidValue, match="expected when to be a datetime, got: 'print'"):
        scheduler.schedule_at(Task("t", print), wrong)


def test_the_files_are_private(scheduler: TaskScheduler) -> None:
    file = sqlite_file(scheduler._app.client.url)
    assert file is not None

    assert Path(file).parent.stat().st_mode & 0o777 == 0o700
