"""Tasks: which calls a handler could take, and finding a task by its name."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from mainspring.errors import DuplicateTask, InvalidPayload, InvalidValue, TaskNotFound
from mainspring.model.job import Priority
from mainspring.model.payload import decode_call, encode_call
from mainspring.model.retry import Retry
from mainspring.model.task import Registry, Task

if TYPE_CHECKING:
    from collections.abc import Sized


def pay(user: int, amount: Decimal, *, due: date = date(2026, 1, 1)) -> None: ...


def add(*numbers: Decimal, **dates: date) -> None: ...


def only_by_position(user: int, /) -> None: ...


def of_unknown_kind(thing: Sized) -> None: ...


def unannotated(a, b=2):  # type: ignore[no-untyped-def]
    return a, b


def partly_annotated(a, day: date):  # type: ignore[no-untyped-def]
    return a, day


class Mailer:
    user: str

    def send(self, user: Decimal) -> None: ...

    def __call__(self, user: Decimal) -> None: ...


@dataclass
class Letter:
    user: Decimal


class Opaque:
    @property
    def __signature__(self) -> None:
        raise ValueError("no signature found")

    def __call__(self) -> None: ...


def task(handler: Any, name: str = "pay") -> Task:
    return Task(name=name, handler=handler)


def carried(handler: Any, *args: object, **kwargs: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with which a worker would call *handler*."""
    return task(handler).decode(task(handler).encode(*args, **kwargs))


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'user'"),
        ((1,), {}, "missing a required argument: 'amount'"),
        ((1, Decimal(1), date(2026, 1, 1)), {}, "too many positional arguments"),
        ((1, Decimal(1)), {"user": 1}, "multiple values for argument 'user'"),
        ((1, Decimal(1)), {"until": 1}, "got an unexpected keyword argument 'until'"),
    ],
)
def test_a_call_that_the_handler_could_not_take_is_refused(
    args: tuple[object, ...], kwargs: dict[str, object], why: str
) -> None:
    with pytest.raises(InvalidPayload) as caught:
        task(pay).encode(*args, **kwargs)

    assert str(caught.value) == f"task 'pay' can't be called like that: {why}"


def test_a_stored_call_that_the_handler_no_longer_takes_is_refused() -> None:
    with pytest.raises(InvalidPayload, match=r"^task 'pay' can't be called like that: too many positional"):
        task(pay).decode('{"args":[1,"2","2026-01-01"],"kwargs":{}}')


def test_a_stored_payload_that_is_no_call_is_refused() -> None:
    with pytest.raises(InvalidPayload, match=r"^the arguments can't be read"):
        task(pay).decode('{"user":1}')


def test_a_handler_whose_parameters_python_can_not_tell_is_refused() -> None:
    with pytest.raises(InvalidPayload, match=r"^task 'pay' can't be called like that: no signature found"):
        task(Opaque()).encode()


def test_a_parameter_by_position_only_is_refused_by_name() -> None:
    with pytest.raises(InvalidPayload, match=r"^task 'pay' can't be called like that: .*'user'"):
        task(only_by_position).encode(user=1)


def test_arguments_by_position_and_by_name_arrive_as_they_were_passed() -> None:
    args, kwargs = carried(pay, 1, amount=Decimal("2.50"), due=date(2027, 1, 1))

    assert args == (1, Decimal("2.50"))
    assert kwargs == {"due": date(2027, 1, 1)}


def test_a_default_is_left_to_the_handler() -> None:
    assert carried(pay, 1, Decimal(2)) == ((1, Decimal(2)), {})


def test_the_payload_holds_what_was_passed_and_no_defaults() -> None:
    assert task(pay).encode(1, amount=Decimal("2.50")) == '{"args":[1],"kwargs":{"amount":"2.50"}}'


def test_every_one_of_many_positional_arguments_is_converted() -> None:
    assert carried(add, Decimal(1), Decimal("2.5")) == ((Decimal(1), Decimal("2.5")), {})


def test_every_one_of_many_keyword_arguments_is_converted() -> None:
    assert carried(add, a=date(2026, 1, 1), b=date(2026, 1, 2)) == (
        (),
        {"a": date(2026, 1, 1), "b": date(2026, 1, 2)},
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [((Decimal(1), [2]), {}, r"argument '\*numbers'"), ((), {"a": date(2026, 1, 1), "b": 2}, "argument 'b'")],
)
def test_a_wrong_one_of_many_arguments_is_named(args: tuple[Any, ...], kwargs: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidPayload, match=f"^{named}: expected "):
        task(add).encode(*args, **kwargs)


def test_a_keyword_argument_may_be_called_self() -> None:
    assert carried(add, self=date(2026, 1, 1)) == ((), {"self": date(2026, 1, 1)})


def test_a_handler_without_annotations_gets_plain_json() -> None:
    assert carried(unannotated, (1, date(2026, 1, 1)), b=Decimal("2.5")) == (([1, "2026-01-01"], "2.5"), {})


def test_only_the_annotated_parameters_are_converted() -> None:
    assert carried(partly_annotated, date(2026, 1, 1), date(2026, 1, 2)) == (("2026-01-01", date(2026, 1, 2)), {})


def test_a_handler_without_annotations_still_refuses_what_json_can_not_carry() -> None:
    with pytest.raises(InvalidPayload, match=r"^argument 1: expected a value that JSON can carry"):
        task(unannotated).encode(object())


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(Letter, id="class"),
        pytest.param(Mailer().send, id="method"),
        pytest.param(Mailer(), id="callable-object"),
        pytest.param(functools.partial(pay, 1), id="partial"),
        pytest.param(functools.partial(functools.partial(pay, 1), due=date(2026, 1, 1)), id="partial-of-partial"),
        pytest.param(functools.partial(Mailer()), id="partial-of-callable-object"),
        pytest.param(functools.lru_cache(Mailer().send), id="cached"),
    ],
)
def test_annotations_are_found_on_every_kind_of_handler(handler: Any) -> None:
    args, _ = carried(handler, Decimal("2.5"))

    assert args == (Decimal("2.5"),)


def test_an_annotation_that_can_not_be_resolved_is_named_with_its_task() -> None:
    with pytest.raises(InvalidPayload, match=r"^task 'pay' has an annotation that can't be resolved: name 'Sized'"):
        task(of_unknown_kind).encode([])


@pytest.mark.parametrize("name", ["", "has space", "-dash", "a" * 129, "é", "new\nline", "nul\0", 7, None])
def test_a_task_name_that_a_url_could_not_carry_is_refused(name: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^expected task name to be 1 to 128 ASCII letters"):
        Task(name=name, handler=pay)


def test_a_queue_name_that_a_url_could_not_carry_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"^expected queue to be 1 to 128 ASCII letters"):
        Task(name="pay", handler=pay, queue="my queue")


def test_a_task_has_defaults_for_everything_but_name_and_handler() -> None:
    made = task(pay)

    assert (made.queue, made.priority, made.retry) == ("default", Priority.NORMAL, Retry())


def test_a_registered_task_is_found_by_its_name() -> None:
    registry = Registry()
    mine = task(pay)

    registry.add(mine)

    assert registry.get("pay") is mine


def test_a_second_task_of_the_same_name_is_refused_and_the_first_stays() -> None:
    registry = Registry()
    first = task(pay)
    registry.add(first)

    with pytest.raises(DuplicateTask, match="a task named 'pay' exists already"):
        registry.add(task(add))

    assert list(registry) == [first]


def test_an_unknown_task_is_reported_with_the_nearest_name() -> None:
    registry = Registry()
    registry.add(task(pay, "send_welcome"))

    with pytest.raises(TaskNotFound, match=r"^no task is named 'send_wellcome', did you mean 'send_welcome'\?$"):
        registry.get("send_wellcome")


def test_an_unknown_task_far_from_all_names_is_reported_alone() -> None:
    with pytest.raises(TaskNotFound, match=r"^no task is named 'digest'$"):
        Registry().get("digest")


def test_a_registry_knows_which_names_it_holds() -> None:
    registry = Registry()
    registry.add(task(pay))

    assert "pay" in registry
    assert "add" not in registry


def test_a_registry_lists_its_tasks_in_the_order_they_came() -> None:
    registry = Registry()
    for name in ["c", "a", "b"]:
        registry.add(task(pay, name))

    assert [item.name for item in registry] == ["c", "a", "b"]


def test_calls_of_a_known_shape_are_checked_as_strictly_as_the_first() -> None:
    known = task(pay)
    for _ in range(2):
        known.encode(1, amount=Decimal(2), due=date(2026, 1, 2))

    with pytest.raises(InvalidPayload, match="argument 'user'"):
        known.encode("one", amount=Decimal(2), due=date(2026, 1, 2))
    with pytest.raises(InvalidPayload, match="multiple values for argument 'user'"):
        known.encode(1, amount=Decimal(2), user=3)
    with pytest.raises(InvalidPayload, match="got an unexpected keyword argument 'until'"):
        known.decode('{"args":[1],"kwargs":{"amount":"2","due":"2026-01-02","until":3}}')


def test_calls_of_every_shape_are_decoded() -> None:
    known = task(pay)
    payloads = [
        known.encode(1, Decimal(2)),
        known.encode(1, amount=Decimal(2)),
        known.encode(user=1, amount=Decimal(2)),
        known.encode(1, Decimal(2), due=date(2026, 1, 2)),
    ]

    assert [known.decode(payload) for payload in payloads] == [
        ((1, Decimal(2)), {}),
        ((1,), {"amount": Decimal(2)}),
        ((), {"user": 1, "amount": Decimal(2)}),
        ((1, Decimal(2)), {"due": date(2026, 1, 2)}),
    ]


def test_the_context_is_no_argument_of_the_job() -> None:
    def handler(ctx: object, user: int) -> None: ...

    known = Task(name="greet", handler=handler, context="ctx")

    assert known.decode(known.encode(1)) == ((1,), {})
    with pytest.raises(InvalidPayload, match="unexpected keyword argument 'ctx'"):
        known.encode(1, ctx=2)


def test_a_timeout_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="timeout to be longer than 0"):
        Task(name="greet", handler=pay, timeout=timedelta(0))


@pytest.mark.parametrize(
    ("args", "kwargs", "patch", "patched"),
    [
        ((1, 2), {}, {"amount": Decimal(3)}, ([1, "3"], {})),
        ((1,), {"amount": 2}, {"amount": 3}, ([1], {"amount": 3})),
        ((1, 2), {}, {"due": date(2027, 1, 1), "user": 9}, ([9, 2], {"due": "2027-01-01"})),
        (
            (),
            {"user": 1, "amount": 2, "due": "2026-01-01"},
            {"user": 5},
            ([], {"user": 5, "amount": 2, "due": "2026-01-01"}),
        ),
    ],
)
def test_a_patch_takes_the_place_of_arguments_by_position_and_by_name(
    args: tuple[object, ...], kwargs: dict[str, object], patch: dict[str, object], patched: tuple[object, object]
) -> None:
    payload = task(pay).patched(encode_call(args, kwargs), patch)

    call = decode_call(payload)
    assert (call.args, call.kwargs) == patched


def test_a_patch_reaches_what_can_be_given_by_position_only_and_leaves_the_many_alone() -> None:
    assert decode_call(task(only_by_position).patched(encode_call([1], {}), {"user": 2})).args == [2]
    call = decode_call(task(add).patched(encode_call([1, 2], {}), {"first": date(2026, 1, 1)}))
    assert (call.args, call.kwargs) == ([1, 2], {"first": "2026-01-01"})


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"user": "x"}, "argument 'user'"),
        ({"usr": 1}, "unexpected keyword argument 'usr'"),
        ({"due": object()}, "'due'"),
    ],
)
def test_a_patch_that_the_handler_could_not_take_is_refused(patch: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidPayload, match=words):
        task(pay).patched(encode_call([1, 2], {}), patch)


def test_a_patch_may_mend_a_call_that_the_handler_no_longer_takes() -> None:
    assert decode_call(task(pay).patched(encode_call([1], {}), {"amount": 2})).kwargs == {"amount": 2}


def test_a_task_that_is_not_known_takes_any_arguments() -> None:
    registry = Registry()
    registry.add(task(pay))

    assert registry.known("pay").handler is pay
    assert registry.known("other").patched(encode_call([1], {}), {"x": 2}) == encode_call([1], {"x": 2})


def test_a_job_may_say_how_often_it_is_tried_where_its_task_lets_it() -> None:
    def work(max_attempts: int = 4) -> None: ...

    task = Task(name="work", handler=work, attempts="max_attempts", retry=Retry(base="3s"))

    assert task.retry_of(task.encode(max_attempts=2)) == Retry(max_attempts=2, base="3s")
    assert task.retry_of(task.encode(7)).max_attempts == 7
    assert task.retry_of(task.encode()).max_attempts == 4
    assert task.retry_of('{"args":["often"],"kwargs":{}}') == task.retry
    assert Task(name="other", handler=work).retry_of(task.encode(max_attempts=2)) == Retry()
