"""What can become a task, and where its context goes."""

from __future__ import annotations

import decimal
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Optional, Union

import pytest

from mainspring import Context, InvalidValue, JobState, Mainspring
from mainspring.model.task import Executor
from mainspring.testing import drain
from tests.app import unresolved


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Mainspring]:
    made = Mainspring(sqlite_url)
    yield made
    made.close()


def rows() -> Iterator[int]:
    yield 1


async def events() -> AsyncIterator[int]:
    yield 1


class Report:
    def __init__(self, day: int = 1) -> None: ...


class Counter:
    def __call__(self) -> Iterator[int]:
        yield 1


class Awaited:
    async def __call__(self) -> int:
        return 7


def total(n: int = 1) -> int:
    return n


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (rows, "a task of, got the generator rows, which yields; return a list, or enqueue a job for each item"),
        (events, "a task of, got the generator events, which yields; return a list, or enqueue a job for each item"),
        (functools.partial(rows), "a task of, got the generator rows, which yields; return a list"),
        (Counter(), "a task of, got the generator Counter.__call__, which yields; return a list"),
        (Report, "a task of, got the class Report; write a function that uses it"),
        (5, "a task of, got: 5"),
        ("mail", r"a task of, got: 'mail'; write @app.task\(name='mail'\)"),
    ],
    ids=["generator", "async generator", "partial", "object", "class", "number", "text"],
)
def test_what_is_no_function_that_returns_is_refused(app: Mainspring, wrong: Any, why: str) -> None:
    with pytest.raises(InvalidValue, match=f"^expected a function to make {why}"):
        app.task(wrong)
    with pytest.raises(InvalidValue, match=f"^expected a function to make {why}"):
        app.task(name="named")(wrong)

    assert len(app.tasks) == 0


@pytest.mark.parametrize(
    "nameless", [lambda: 1, functools.partial(total, 1), Awaited()], ids=["lambda", "partial", "object"]
)
def test_a_function_without_a_name_needs_one(app: Mainspring, nameless: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^expected a function that has a name, got: .*; give the task a name=$"):
        app.task(nameless)

    app.task(name="named")(nameless)
    assert "named" in app.tasks


def test_an_object_whose_call_is_a_coroutine_function_is_awaited(app: Mainspring) -> None:
    task: Any = app.task(name="awaited")(Awaited())

    job = task.enqueue()
    drain(app)

    assert (task.task.executor, job.result()) == (Executor.COROUTINE, 7)


def test_what_no_other_process_can_find_is_refused_at_once(app: Mainspring) -> None:
    def local() -> None: ...

    for lost in (local, lambda: 1):
        with pytest.raises(InvalidValue) as caught:
            app.task(name="lost", executor="process")(lost)
        assert str(caught.value).startswith(
            "expected executor='process' with a function that can be imported by name, got <function "
        )
    app.task(executor="process")(total)

    assert [task.name for task in app.tasks] == ["total"]


@pytest.mark.parametrize(
    ("retry", "instead"),
    [
        (3, "Retry(max_attempts=3)"),
        (0, "Retry(max_attempts=1) for none"),
        (None, "Retry(max_attempts=1) for none"),
        (True, "Retry(max_attempts=1) for none"),
    ],
)
def test_a_retry_that_is_none_is_refused_with_what_to_write_instead(app: Mainspring, retry: Any, instead: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        app.task(retry=retry)(total)

    assert str(caught.value) == f"expected retry to be a Retry, got: {retry!r}; write {instead}"


def annotated_as(annotation: Any) -> Callable[[Any], None]:
    """Return a handler whose first parameter has this annotation, as it is without `from __future__`."""

    def handler(ctx: Any = None) -> None: ...

    handler.__annotations__["ctx"] = annotation
    return handler


@pytest.mark.parametrize(
    "annotation",
    [Context, Context | None, Optional[Context], Union[None, Context], "Context", Optional["Context"]],  # noqa: UP007, UP045
    ids=str,
)
def test_a_context_is_known_by_what_its_annotation_means(app: Mainspring, annotation: Any) -> None:
    assert app.task(annotated_as(annotation)).task.context == "ctx"


@pytest.mark.parametrize("handler", unresolved.CONTEXT, ids=lambda handler: handler.__name__)
def test_a_context_is_known_though_annotations_are_text(app: Mainspring, handler: Callable[..., Any]) -> None:
    assert app.task(handler).task.context == "ctx"


@pytest.mark.parametrize("annotation", [decimal.Context, "decimal.Context", "ssl.Context", "list[Context]", Any, int])
def test_what_only_looks_like_a_context_is_none(app: Mainspring, annotation: Any) -> None:
    assert app.task(annotated_as(annotation)).task.context is None
    assert app.task(name="other")(unresolved.of_another_kind).task.context is None


@pytest.mark.parametrize("handler", [unresolved.plain, unresolved.renamed], ids=lambda handler: handler.__name__)
def test_a_handler_gets_a_context_that_only_type_checkers_import(
    app: Mainspring, handler: Callable[[Any, int], int]
) -> None:
    job = app.task(handler).enqueue(5)
    drain(app)

    assert job.result() == 5


def test_an_optional_context_is_given(app: Mainspring) -> None:
    @app.task
    def number(ctx: Context | None = None) -> int | None:
        return None if ctx is None else ctx.attempt

    job = number.enqueue()
    drain(app)

    assert (number(), job.result()) == (None, 1)


def second(n: int, ctx: Context) -> None: ...


def two(ctx: Context, *, more: Context | None = None) -> None: ...


def many(*ctx: Context) -> None: ...


def named(**ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("handler", "shown"),
    [(second, "second(n, ctx)"), (two, "two(ctx, more)"), (many, "many(ctx)"), (named, "named(ctx)")],
)
def test_a_context_that_is_not_where_it_can_be_passed_is_refused(
    app: Mainspring, handler: Callable[..., Any], shown: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        app.task(handler)

    assert str(caught.value) == (
        f"expected the Context to be one parameter: the first, or one that is passed by name only, got: {shown}"
    )


def test_an_annotation_of_the_result_that_means_nothing_stands_in_nobodys_way(app: Mainspring) -> None:
    job = app.task(unresolved.returns_a_later_name).enqueue()
    drain(app)

    assert (job.state, job.result()) == (JobState.SUCCEEDED, "text")
