"""Payloads: what JSON and both databases carry comes back as it was, and the rest is refused by name."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidPayload
from mainspring.model.payload import MAX_BYTES, MAX_DEPTH, convert, decode_call, encode_call, encode_result

ENVELOPE = len('{"args":[""],"kwargs":{}}')


@dataclass
class Box:
    inside: object


class Crate(msgspec.Struct):
    inside: object


class Odd(enum.Enum):
    NAN = math.nan
    NUL = "\0"


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr for you")


def nested(levels: int, wrap: Callable[[Any], Any], core: Any) -> Any:
    """Return *core*, itself one level, wrapped so that there are *levels* in all."""
    for _ in range(levels - 1):
        core = wrap(core)
    return core


def circular_list() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def circular_dict() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["self"] = ring
    return ring


def circular_struct() -> Crate:
    ring = Crate(None)
    ring.inside = [ring]
    return ring


FINITE = "expected a finite number"
NO_NUL = "expected text without NUL characters"
UNICODE = "expected valid Unicode text, got a lone surrogate"
WHOLE = r"expected whole numbers from -2\^63 to 2\^64-1"
SHALLOW = "expected at most 64 levels of nesting, got more"
CARRIED = "expected a value that JSON can carry"

REFUSED = [
    pytest.param(math.nan, FINITE, id="nan"),
    pytest.param(math.inf, FINITE, id="inf"),
    pytest.param(-math.inf, FINITE, id="minus-inf"),
    pytest.param(Odd.NAN, FINITE, id="enum-of-nan"),
    pytest.param("a\0b", NO_NUL, id="nul"),
    pytest.param({"a\0b": 1}, NO_NUL, id="nul-in-key"),
    pytest.param(Odd.NUL, NO_NUL, id="enum-of-nul"),
    pytest.param({Odd.NUL: 1}, NO_NUL, id="enum-of-nul-as-key"),
    pytest.param("a\ud800b", UNICODE, id="lone-high-surrogate"),
    pytest.param("\udfff", UNICODE, id="lone-low-surrogate"),
    pytest.param({"\ud800": 1}, UNICODE, id="lone-surrogate-in-key"),
    pytest.param(2**64, WHOLE, id="int-above-64-bits"),
    pytest.param(-(2**63) - 1, WHOLE, id="int-below-64-bits"),
    pytest.param(10**30, WHOLE, id="int-of-100-bits"),
    pytest.param(10**10_000, WHOLE, id="int-longer-than-python-prints"),
    pytest.param(object(), CARRIED, id="object"),
    pytest.param(1j, CARRIED, id="complex"),
    pytest.param(len, CARRIED, id="function"),
    pytest.param(int, CARRIED, id="class"),
    pytest.param(iter([1]), CARRIED, id="iterator"),
    pytest.param({(1, 2): 3}, CARRIED, id="tuple-as-key"),
    pytest.param({None: 1}, CARRIED, id="none-as-key"),
    pytest.param({10**10_000: 1}, CARRIED, id="int-longer-than-python-prints-as-key"),
    pytest.param(Unprintable(), CARRIED, id="object-without-repr"),
    pytest.param([10**10_000, object()], CARRIED, id="object-beside-what-python-does-not-print"),
    pytest.param(msgspec.Raw(b'"\0"'), CARRIED, id="raw-nul-byte"),
    pytest.param(msgspec.Raw(b'"\xff"'), CARRIED, id="raw-bytes-that-are-no-text"),
    pytest.param(circular_list(), SHALLOW, id="circular-list"),
    pytest.param(circular_dict(), SHALLOW, id="circular-dict"),
    pytest.param(circular_struct(), SHALLOW, id="circular-struct"),
]

PLACES = [
    pytest.param(lambda value: value, id="bare"),
    pytest.param(lambda value: [1, value, 2], id="in-list"),
    pytest.param(lambda value: ("a", value), id="in-tuple"),
    pytest.param(lambda value: {"key": value}, id="in-dict"),
    pytest.param(lambda value: Box(value), id="in-dataclass"),
    pytest.param(lambda value: Crate(value), id="in-struct"),
    pytest.param(lambda value: {"a": [Box({"b": (Crate([value]),)})]}, id="deep"),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("value", "why"), REFUSED)
def test_a_value_that_can_not_be_carried_is_refused_wherever_it_hides(
    value: object, why: str, place: Callable[[object], object]
) -> None:
    with pytest.raises(InvalidPayload, match=f"^argument 1: {why}"):
        encode_call([place(value)], {})


@pytest.mark.parametrize(("value", "why"), REFUSED)
def test_a_refusal_names_the_position_of_the_argument(value: object, why: str) -> None:
    with pytest.raises(InvalidPayload, match=f"^argument 3: {why}"):
        encode_call([None, "\\u0000", value], {"fine": [1]})


@pytest.mark.parametrize(("value", "why"), REFUSED)
def test_a_refusal_names_the_keyword_of_the_argument(value: object, why: str) -> None:
    with pytest.raises(InvalidPayload, match=f"^argument 'user': {why}"):
        encode_call([None, 2**64 - 1], {"fine": [1], "user": value})


@pytest.mark.parametrize(("value", "why"), REFUSED)
def test_a_result_that_can_not_be_carried_is_refused(value: object, why: str) -> None:
    with pytest.raises(InvalidPayload, match=f"^the result: {why}"):
        encode_result(value)


@pytest.mark.parametrize(
    ("name", "why"),
    [("a\0b", NO_NUL), ("\ud800", UNICODE), ("x" * MAX_BYTES, "is too large")],
    ids=["nul", "lone", "long"],
)
def test_the_name_of_a_keyword_argument_is_held_to_the_same_rules(name: str, why: str) -> None:
    with pytest.raises(InvalidPayload, match=f"^the name of argument '.*{why}") as caught:
        encode_call([], {name: 1})

    assert len(str(caught.value)) < 400


def test_a_refusal_says_what_came() -> None:
    with pytest.raises(InvalidPayload) as caught:
        encode_call([], {"ratio": [1.0, -math.inf]})

    assert str(caught.value) == "argument 'ratio': expected a finite number, got -inf, which JSON can't carry"


def test_a_refusal_shows_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(InvalidPayload) as caught:
        encode_call(["x" * 1_000 + "\0"], {})

    assert "got: 'xxx" in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value",
    [
        *[None, [None], {"a": None}, "null", ["null"], {"null": "null"}],
        *["\\u0000", {"\\u0000": None}, "\\ud800", "\\0", "\u0001", "\x7f", "\uffff", "😀", "\ufeff"],
        *[-0.0, 5e-324, 1.7976931348623157e308, 2**64 - 1, -(2**63), 10**18, 1e19, 10**25 / 1.0],
        *["1" * 40, [":18446744073709551616"], ",-99999999999999999999", "[" * 100, "{" * 100],
        *["", [], {}, {"": ""}, True, False, "NaN", "Infinity"],
    ],
)
def test_what_only_looks_wrong_is_carried_exactly(value: object) -> None:
    call = decode_call(encode_call([value], {"named": value}))

    assert repr(call.args) == repr([value])
    assert repr(call.kwargs) == repr({"named": value})


def test_a_hundred_lists_side_by_side_are_not_deep() -> None:
    siblings: list[list[int]] = [[] for _ in range(100)]

    call = decode_call(encode_call(siblings, {"all": siblings}))

    assert call.args == call.kwargs["all"] == siblings


LEVELS = [
    pytest.param(lambda inner: [inner], [], id="lists"),
    pytest.param(lambda inner: (inner,), (), id="tuples"),
    pytest.param(lambda inner: {"a": inner}, {}, id="dicts"),
    pytest.param(lambda inner: Box(inner), Box(1), id="dataclasses"),
    pytest.param(lambda inner: Crate(inner), Crate("null"), id="structs"),
]


@pytest.mark.parametrize(("wrap", "core"), LEVELS)
def test_a_value_of_64_levels_is_accepted_and_the_calls_own_lists_do_not_count(
    wrap: Callable[[Any], Any], core: Any
) -> None:
    deep = nested(MAX_DEPTH, wrap, core)

    assert encode_call([deep], {"a": deep}).startswith('{"args":[')
    assert encode_result(deep)


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, MAX_DEPTH + 2, 100_000])
@pytest.mark.parametrize(("wrap", "core"), LEVELS)
def test_a_value_of_more_levels_is_refused(levels: int, wrap: Callable[[Any], Any], core: Any) -> None:
    deep = nested(levels, wrap, core)

    with pytest.raises(InvalidPayload, match=f"^argument 2: {SHALLOW}$"):
        encode_call([1, deep], {})
    with pytest.raises(InvalidPayload, match=f"^argument 'tree': {SHALLOW}$"):
        encode_call([], {"tree": deep})
    with pytest.raises(InvalidPayload, match=f"^the result: {SHALLOW}$"):
        encode_result(deep)


def filling(letter: str, size: int) -> str:
    """Return text of as many *letter* as make its payload *size* bytes long."""
    count, rest = divmod(size - ENVELOPE, len(json.dumps(letter, ensure_ascii=False).encode()) - 2)
    return letter * count + "x" * rest


@pytest.mark.parametrize("size", [MAX_BYTES - 1, MAX_BYTES])
@pytest.mark.parametrize("letter", ["x", "é", "😀", '"', "\n"])
def test_arguments_may_fill_the_limit_of_bytes_to_the_last(letter: str, size: int) -> None:
    text = filling(letter, size)

    payload = encode_call([text], {})

    assert len(payload.encode()) == size
    assert decode_call(payload).args == [text]


@pytest.mark.parametrize("letter", ["x", "é", "😀", '"', "\n"])
def test_one_byte_more_than_the_limit_is_refused(letter: str) -> None:
    with pytest.raises(InvalidPayload, match=r"^argument 1 is too large: .* at most 262,144 bytes .* got 262,145 "):
        encode_call([filling(letter, MAX_BYTES + 1)], {})


def test_a_result_may_fill_the_limit_of_bytes_to_the_last() -> None:
    assert len(encode_result("x" * (MAX_BYTES - 2))) == MAX_BYTES


def test_a_result_one_byte_over_the_limit_is_refused() -> None:
    with pytest.raises(InvalidPayload, match=r"^the result is too large: .* got 262,145 "):
        encode_result("x" * (MAX_BYTES - 1))


def test_too_many_bytes_are_blamed_on_the_largest_argument() -> None:
    half = "x" * (MAX_BYTES // 2)

    with pytest.raises(InvalidPayload, match=r"^argument 'body' is too large: .*\(131,077 of them here\)"):
        encode_call([half], {"head": 1, "body": half + "xyz"})


def test_a_payload_is_compact_json_with_arguments_by_position_and_name() -> None:
    assert encode_call([1, "é"], {"b": None}) == '{"args":[1,"é"],"kwargs":{"b":null}}'


@pytest.mark.parametrize(
    "payload", ["", "nonsense", "[]", "{}", '{"args":1,"kwargs":{}}', '{"args":[NaN],"kwargs":{}}']
)
def test_a_payload_that_is_no_call_is_refused_when_it_is_read(payload: str) -> None:
    with pytest.raises(InvalidPayload, match=r"^the arguments can't be read: ") as caught:
        decode_call(payload)

    assert str(caught.value).endswith(f" {payload!r}")
    assert str(caught.value).count("got") == 1


WORDS = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    WORDS,
    st.sampled_from(["null", "\\u0000", "NaN", "\\ud800"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@given(args=st.lists(JSON, max_size=4), kwargs=st.dictionaries(WORDS, JSON, max_size=4))
def test_any_json_within_the_limits_comes_back_exactly(args: list[Any], kwargs: dict[str, Any]) -> None:
    payload = encode_call(args, kwargs)

    call = decode_call(payload)

    assert repr((call.args, call.kwargs)) == repr((args, kwargs))
    assert json.loads(payload) == {"args": args, "kwargs": kwargs}


@given(value=JSON)
def test_any_json_within_the_limits_is_a_result(value: Any) -> None:
    assert repr(json.loads(encode_result(value))) == repr(value)


WILD = st.text(alphabet=st.sampled_from(["\0", "\ud800", "\udfff", "\\", "u", "0", '"', "é", "😀", "\x1f"]), max_size=8)


def storable(text: str) -> bool:
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def passes(args: list[object], kwargs: dict[str, object]) -> bool:
    try:
        payload = encode_call(args, kwargs)
    except InvalidPayload:
        return False
    call = decode_call(payload)
    return storable(payload) and repr((call.args, call.kwargs)) == repr((args, kwargs))


@given(text=WILD)
def test_text_passes_exactly_when_both_databases_can_store_it(text: str) -> None:
    expected = storable(text)

    assert passes([text], {}) is expected
    assert passes([{text: 1}], {}) is expected
    assert passes([], {"named": [text]}) is expected
    assert passes([], {text: 1}) is expected


@given(number=st.integers(min_value=-(2**70), max_value=2**70) | st.integers(2**63 - 3, 2**64 + 3))
def test_whole_numbers_pass_exactly_when_64_bits_hold_them(number: int) -> None:
    try:
        decoded = decode_call(encode_call([number], {})).args
    except InvalidPayload:
        decoded = None

    assert decoded == ([number] if -(2**63) <= number < 2**64 else None)


@pytest.mark.parametrize(
    ("value", "kind", "why"),
    [
        ("x", int, "expected `int`, got `str`: 'x'"),
        (True, int, "expected `int`, got `bool`: True"),
        ({"a": "x"}, dict[str, int], r"expected `int`, got `str` - at `\$\[...\]` of {'a': 'x'}"),
        (1, Unprintable, "expected `Unprintable`, got `int`: 1"),
    ],
)
def test_a_value_that_does_not_fit_its_kind_is_refused(value: object, kind: type[object], why: str) -> None:
    with pytest.raises(InvalidPayload, match=f"^argument 'n': {why}$"):
        convert(value, kind, "argument 'n'")


def test_a_kind_that_json_can_not_be_converted_to_is_named() -> None:
    ambiguous: Any = dict[str, int] | dict[str, str]

    with pytest.raises(InvalidPayload, match=r"^argument 'n': its annotation can't be used to convert JSON \("):
        convert({}, ambiguous, "argument 'n'")
