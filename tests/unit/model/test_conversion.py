"""Conversion: what the caller passes is what the handler gets, by the handler's annotations."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidPayload
from mainspring.model.task import Task


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


@dataclass
class Address:
    street: str
    since: date


@dataclass(frozen=True)
class Customer:
    id: uuid.UUID
    home: Address
    balance: Decimal = Decimal(0)
    tags: frozenset[str] = field(default_factory=frozenset)


class Point(msgspec.Struct, frozen=True):
    x: float
    y: float = 0.0


class Circle(msgspec.Struct, tag=True):
    centre: Point


class Square(msgspec.Struct, tag=True):
    corner: Point


class Pair(NamedTuple):
    left: int
    right: datetime


class Options(TypedDict):
    when: date
    level: Level


def carried(kind: Any, value: object) -> object:
    """Return what a handler whose parameter is annotated as *kind* gets when *value* is passed."""

    def handler(value: object) -> None: ...

    handler.__annotations__ = {"value": kind}
    task = Task(name="carry", handler=handler)
    payload = task.encode(value)
    ((first,), _) = Task(name="carry", handler=handler).decode(payload)
    ((again,), _) = task.decode(payload)
    assert (type(again), again) == (type(first), first), "a call of a known shape is decoded in another way"
    return first


INSTANT = datetime(2026, 3, 29, 1, 59, 59, 999_999, tzinfo=UTC)
CUSTOMER = Customer(uuid.UUID(int=7), Address("Main St", date(2020, 2, 29)), Decimal("1.10"), frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (datetime, INSTANT),
        (datetime, INSTANT.astimezone(timezone(timedelta(hours=-9, minutes=-30)))),
        (date, date(1, 1, 1)),
        (time, time(23, 59, 59, 1)),
        (timedelta, timedelta(days=3, microseconds=1)),
        (uuid.UUID, uuid.UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")),
        (Decimal, Decimal("1.10")),
        (Decimal, Decimal("1E+400")),
        (bytes, b""),
        (bytes, bytes(range(256))),
        (Colour, Colour.BLUE),
        (Level, Level.HIGH),
        (Address, CUSTOMER.home),
        (Customer, CUSTOMER),
        (Point, Point(1.5)),
        (Circle | Square, Square(Point(1.0, 2.0))),
        (Pair, Pair(1, INSTANT)),
        (Options, {"when": date(2026, 1, 1), "level": Level.LOW}),
        (Literal["a", "b"], "b"),
        (Annotated[int, msgspec.Meta(ge=1)], 1),
        (set[int], {1, 2, 3}),
        (frozenset[Colour], frozenset({Colour.RED})),
        (tuple[int, str], (1, "a")),
        (tuple[date, ...], (date(2026, 1, 1), date(2026, 1, 2))),
        (list[tuple[int, int]], [(1, 2), (3, 4)]),
        (dict[int, str], {1: "a", -2: "b"}),
        (dict[str, dict[int, set[int]]], {"a": {1: {2}}}),
        (dict[uuid.UUID, datetime], {uuid.UUID(int=1): INSTANT}),
        (dict[Colour, int], {Colour.RED: 1}),
        (list[Customer], [CUSTOMER, CUSTOMER]),
        (datetime | None, None),
        (datetime | None, INSTANT),
        (int | str, "1"),
        (int | str, 1),
        (float, 0.1),
        (str, "2026-01-01"),
        (bool, True),
        (Any, {"a": [1, None]}),
        (object, "text"),
    ],
)
def test_the_handler_gets_what_the_caller_passed(kind: Any, value: object) -> None:
    got = carried(kind, value)

    assert got == value
    assert type(got) is type(value)


def test_an_instant_keeps_its_offset() -> None:
    offset = timezone(timedelta(hours=5, minutes=45))

    got = carried(datetime, INSTANT.astimezone(offset))

    assert isinstance(got, datetime)
    assert got.utcoffset() == timedelta(hours=5, minutes=45)


@given(value=st.datetimes(timezones=st.just(UTC)))
def test_any_instant_is_carried_to_the_microsecond(value: datetime) -> None:
    assert carried(datetime, value) == value


@given(value=st.decimals(allow_nan=False, allow_infinity=False))
def test_any_decimal_is_carried_digit_by_digit(value: Decimal) -> None:
    got = carried(Decimal, value)

    assert isinstance(got, Decimal)
    assert got.as_tuple() == value.as_tuple()


@given(value=st.binary(max_size=200))
def test_any_bytes_are_carried(value: bytes) -> None:
    assert carried(bytes, value) == value


@given(value=st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.sets(st.integers(0, 99)), max_size=5))
def test_any_dict_with_whole_numbers_as_keys_is_carried(value: dict[int, set[int]]) -> None:
    assert carried(dict[int, set[int]], value) == value


def test_without_an_annotation_the_handler_gets_plain_json() -> None:
    got = carried(Any, {"at": INSTANT, "of": (1, 2), "by": CUSTOMER.home, 3: Colour.RED})

    assert got == {
        "at": "2026-03-29T01:59:59.999999Z",
        "of": [1, 2],
        "by": {"street": "Main St", "since": "2020-02-29"},
        "3": "red",
    }


def test_a_whole_number_becomes_the_float_that_is_asked_for() -> None:
    assert repr(carried(float, 3)) == "3.0"


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (int, "42", "expected `int`, got `str`: '42'"),
        (int, 1.5, "expected `int`, got `float`: 1.5"),
        (str, 42, "expected `str`, got `int`: 42"),
        (str, None, "expected `str`, got `null`: None"),
        (datetime, "tomorrow", "invalid RFC3339 encoded datetime, got: 'tomorrow'"),
        (date, INSTANT, "invalid RFC3339 encoded date, got: '2026-03-29T01:59:59.999999Z'"),
        (uuid.UUID, "no-uuid", "invalid UUID, got: 'no-uuid'"),
        (Colour, "green", "invalid enum value 'green', got: 'green'"),
        (Literal["a"], "b", "invalid enum value 'b', got: 'b'"),
        (tuple[int, int], [1], "expected `array` of length 2, got 1: [1]"),
        (Point, {"y": 1.0}, "object missing required field `x`, got: {'y': 1.0}"),
        (list[int], ["a"], "expected `int`, got `str` - at `$[0]` of ['a']"),
        (Annotated[int, msgspec.Meta(ge=1)], 0, "expected `int` >= 1, got: 0"),
    ],
)
def test_what_does_not_fit_the_annotation_is_refused_at_the_caller(kind: Any, value: object, why: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        carried(kind, value)

    assert str(caught.value) == f"argument 'value': {why}"


def test_an_annotation_that_json_can_not_satisfy_is_named() -> None:
    with pytest.raises(InvalidPayload, match=r"^argument 'value': its annotation can't be used to convert JSON \("):
        carried(datetime | str, "text")
