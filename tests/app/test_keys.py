"""Keys of tasks, and what an enqueue can say about keys."""

from __future__ import annotations

import pytest

from mainspring import Context, IfTaken, InvalidValue, JobState, Mainspring
from mainspring.testing import drain, enqueued


def welcome(user_id: int, language: str = "en", /, *tags: str, tenant: str = "acme", ctx: Context | None = None) -> str:
    return f"{user_id} {language}"


@pytest.fixture
def app(sqlite_url: str) -> Mainspring:
    return Mainspring(sqlite_url)


def test_a_tasks_key_is_made_of_the_arguments(app: Mainspring) -> None:
    task = app.task(key="welcome:{user_id}:{language}:{tenant}")(welcome)

    first, other = task.enqueue(42), task.enqueue(43, "de", tenant="é")

    assert [first.snapshot.key, other.snapshot.key] == ["welcome:42:en:acme", "welcome:43:de:é"]
    assert task.enqueue(42, "en", tenant="acme").id == first.id


def test_each_of_many_has_its_own_key(app: Mainspring) -> None:
    task = app.task(key="welcome:{user_id}")(welcome)

    jobs = task.enqueue_many([((1,), {}), ((2,), {"tenant": "x"}), ((1, "de"), {})])

    assert jobs[0].id == jobs[2].id != jobs[1].id
    assert [job.snapshot.key for job in jobs[:2]] == ["welcome:1", "welcome:2"]


def test_an_enqueue_may_have_another_key_or_none(app: Mainspring) -> None:
    task = app.task(key="welcome:{user_id}")(welcome)

    assert task.using(key="mine").enqueue(1).snapshot.key == "mine"
    assert task.using(key=None).enqueue(1).snapshot.key is None
    assert app.enqueue("welcome", [1]).snapshot.key == "welcome:1"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("w:{user_di}", "'user_di', did you mean 'user_id'?"),
        ("w:{ctx}", "expected key to name arguments of the task"),
        ("w:{tags}", "expected key to name arguments of the task"),
        ("w:{user_id.real}", "expected key to name arguments as in"),
        ("w:{user_id", "expected key to be a template"),
        ("", "expected key to be text that is not empty"),
        (7, "expected key to be text"),
    ],
)
def test_a_key_that_can_not_be_made_is_refused_where_the_task_is(app: Mainspring, key: str, words: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        app.task(key=key)(welcome)

    assert words in str(caught.value)
    assert len(app.tasks) == 0


@pytest.mark.parametrize(("language", "words"), [("é" * 256, "at most 512 bytes, got 514")])
def test_a_key_that_comes_out_wrong_is_refused_at_the_enqueue(app: Mainspring, language: str, words: str) -> None:
    task = app.task(key="w:{language}")(welcome)

    with pytest.raises(InvalidValue, match=words):
        task.enqueue_many([((1, "en"), {}), ((1, language), {})])

    assert enqueued(app) == []


def test_a_burst_becomes_one_late_run_with_the_last_arguments(app: Mainspring) -> None:
    task = app.task(key="welcome:{user_id}")(welcome)
    later = task.using(if_taken=IfTaken.RESCHEDULE, run_after="1h")
    first = later.enqueue(1, "en")
    later.enqueue(1, "de")

    assert task.using(if_taken="reschedule").enqueue(1, "fr").id == first.id

    drain(app)
    assert first.result(timeout=1) == "1 fr"


def test_a_repeated_request_gets_the_first_job(app: Mainspring) -> None:
    task = app.task(welcome).using(idempotency_key="order-42")
    first = task.enqueue(1)
    drain(app)

    assert task.enqueue(1).id == first.id
    assert first.state is JobState.SUCCEEDED
    assert task.using(idempotency_key="order-43", idempotency_ttl="7d").enqueue(1).id != first.id


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"if_taken": "replace"}, "expected a key with if_taken='replace'"),
        ({"if_taken": "replaced", "key": "k"}, "expected if_taken to be one of return, replace, reschedule"),
        ({"if_taken": "replaced", "key": "k"}, "did you mean 'replace'?"),
        ({"if_taken": None, "key": "k"}, "expected if_taken to be one of"),
        ({"idempotency_ttl": "1h"}, "expected an idempotency_key with idempotency_ttl"),
        ({"idempotency_key": ""}, "expected idempotency_key to be text that is not empty"),
        ({"idempotency_key": "x" * 513}, "expected idempotency_key to be at most 512 bytes"),
        ({"idempotency_key": "a", "idempotency_ttl": "soon"}, "expected idempotency_ttl to be a duration"),
        ({"idempotency_key": "a", "idempotency_ttl": -1}, "expected idempotency_ttl to be between 0"),
        ({"idempotence_key": "a"}, "did you mean 'idempotency_key'?"),
        ({"conn": None}, "leave conn out"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_stored(
    app: Mainspring, wishes: dict[str, object], words: str
) -> None:
    task = app.task(welcome)

    with pytest.raises(InvalidValue) as caught:
        task.using(**wishes).enqueue(1)  # type: ignore[arg-type]

    assert words in str(caught.value)
    assert enqueued(app) == []
