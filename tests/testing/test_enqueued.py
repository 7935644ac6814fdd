"""What was enqueued, and what an assertion says when it was something else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from mainspring import Context, Mainspring
from mainspring.errors import InvalidPayload, InvalidValue, TaskNotFound
from mainspring.task_handle import TaskHandle
from mainspring.testing import SettableClock, assert_enqueued, drain, enqueued


@pytest.fixture
def app(sqlite_url: str, clock: SettableClock) -> Iterator[Mainspring]:
    made = Mainspring(sqlite_url, clock=clock)
    yield made
    made.close()


@pytest.fixture
def mail(app: Mainspring) -> TaskHandle[..., Any]:
    @app.task(queue="mail")
    def mail(ctx: Context, to: str, day: date, copies: tuple[int, ...] = ()) -> None: ...

    return mail


@pytest.fixture
def tidy(app: Mainspring) -> TaskHandle[..., Any]:
    @app.task
    def tidy(folder: str = "/tmp") -> None: ...

    return tidy


DAY = date(2026, 5, 17)


def test_enqueued_jobs_are_shown_as_calls(
    app: Mainspring, mail: TaskHandle[..., Any], tidy: TaskHandle[..., Any]
) -> None:
    mail.enqueue("ada", day=DAY)
    job = tidy.using(key="t").enqueue()
    drain(app)
    mail.enqueue("bob", DAY, (1, 2))

    first, second, third = enqueued(app)
    assert (first.task, first.args, first.kwargs) == ("mail", ("ada",), {"day": DAY})
    assert (second.job.id, second.job.key, second.job.state) == (job.id, "t", "succeeded")
    assert str(second) == "tidy()"
    assert third.args == ("bob", DAY, (1, 2))
    assert enqueued(app, mail) == [first, third]
    assert enqueued(app, "tidy") == [second]


def test_all_jobs_are_shown_however_many(app: Mainspring, tidy: TaskHandle[..., Any]) -> None:
    tidy.enqueue_many([((str(number),), {}) for number in range(2_500)])

    assert [call.args for call in enqueued(app)] == [(str(number),) for number in range(2_500)]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"args": ("ada", DAY)},
        {"kwargs": {"to": "ada", "day": DAY}},
        {"args": ["ada"], "kwargs": {"day": DAY, "copies": []}},
        {"args": ["ada", "2026-05-17"]},
        {"args": ["ada", ANY]},
        {"queue": "mail", "priority": 5, "key": "k"},
        {"priority": "normal"},
        {"run_after": "10m"},
        {"count": 1},
    ],
    ids=str,
)
def test_a_call_is_the_same_however_it_is_written(
    app: Mainspring, mail: TaskHandle[..., Any], clock: SettableClock, wanted: Any
) -> None:
    job = mail.using(run_after="10m", key="k").enqueue("ada", day=DAY)

    (found,) = assert_enqueued(app, mail, **wanted)
    assert found.job.id == job.id
    assert_enqueued(app, "mail", **wanted)
    assert_enqueued(app, mail, run_at=clock.now() + timedelta(minutes=10))


def failure_of(app: Mainspring, task: TaskHandle[..., Any] | str, **wanted: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(app, task, **wanted)
    return str(caught.value)


def test_the_message_says_what_was_enqueued_instead(
    app: Mainspring, mail: TaskHandle[..., Any], tidy: TaskHandle[..., Any]
) -> None:
    tidy.enqueue("/var")
    mail.enqueue("bob", DAY, copies=(1,))
    mail.using(queue="slow", run_after="1h").enqueue("ada", day=DAY)

    assert failure_of(app, mail, args=["ada", DAY], queue="mail", run_after=0) == (
        "expected mail('ada', datetime.date(2026, 5, 17)) with queue='mail', run_after=0:00:00 to be enqueued, "
        "but it was not; enqueued were:\n"
        "    mail('bob', datetime.date(2026, 5, 17), copies=(1,)): to is 'bob', not 'ada'; copies is (1,), not ()\n"
        "    mail('ada', day=datetime.date(2026, 5, 17)): queue is 'slow', not 'mail'; "
        "run_after is 1:00:00, not 0:00:00\n"
        "    tidy('/var')"
    )


def test_the_message_says_when_nothing_was_enqueued(app: Mainspring, tidy: TaskHandle[..., Any]) -> None:
    assert failure_of(app, tidy) == "expected a job of 'tidy' to be enqueued, but nothing was"


@pytest.mark.parametrize(
    ("count", "complaint"),
    [
        (0, "expected a job of 'tidy' to be enqueued 0 times, but it was enqueued 2 times"),
        (1, "expected a job of 'tidy' to be enqueued once, but it was enqueued 2 times"),
        (3, "expected a job of 'tidy' to be enqueued 3 times, but it was enqueued 2 times"),
    ],
)
def test_the_count_must_be_met(app: Mainspring, tidy: TaskHandle[..., Any], count: int, complaint: str) -> None:
    tidy.enqueue()
    tidy.enqueue()

    assert failure_of(app, tidy, count=count) == f"{complaint}; enqueued were:\n" + "\n".join(
        ["    tidy(): as expected"] * 2
    )
    assert_enqueued(app, tidy, count=2)
    assert_enqueued(app, tidy, args=["/var"], count=0)


def test_a_long_list_is_cut(app: Mainspring, tidy: TaskHandle[..., Any]) -> None:
    tidy.enqueue_many([((str(number),), {}) for number in range(25)])

    assert failure_of(app, tidy, args=["x"]).splitlines()[-1] == "    … and 5 more"


def test_an_expectation_that_could_not_be_met_is_refused(app: Mainspring, mail: TaskHandle[..., Any]) -> None:
    wrong: Any = {"queu": "mail"}
    with pytest.raises(TaskNotFound, match="no task is named 'male', did you mean 'mail'"):
        assert_enqueued(app, "male")
    with pytest.raises(
        InvalidPayload, match="task 'mail' can't be called like that: missing a required argument: 'day'"
    ):
        assert_enqueued(app, mail, args=["ada"])
    with pytest.raises(InvalidValue, match="nothing about a job is named 'queu', did you mean 'queue'"):
        assert_enqueued(app, mail, **wrong)


def test_what_a_sender_enqueued_by_name_can_be_asserted(app: Mainspring) -> None:
    app.enqueue("elsewhere", args=[1], kwargs={"b": [2]})

    assert_enqueued(app, "elsewhere", args=[1], kwargs={"b": (2,)})
    assert failure_of(app, "elsewhere", args=[2], kwargs={"c": 3}).endswith(
        "elsewhere(1, b=[2]): argument 1 is 1, not 2; b was not expected; c is missing"
    )


def test_a_call_that_its_handler_can_not_take_is_shown_as_it_came(
    app: Mainspring, sqlite_url: str, clock: SettableClock, mail: TaskHandle[..., Any]
) -> None:
    older = Mainspring(sqlite_url, clock=clock)
    older.enqueue("mail", args=[1, 2, 3, 4])
    older.close()

    assert failure_of(app, mail, args=["ada", DAY]).splitlines()[1] == (
        "    mail(1, 2, 3, 4): task 'mail' can't be called like that: too many positional arguments"
    )
