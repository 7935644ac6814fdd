"""Lengths of time as people write them."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.duration import Duration, duration, spelled

CENTURY = timedelta(days=36_525)
LENGTHS = st.timedeltas(min_value=timedelta(0), max_value=CENTURY)


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (timedelta(minutes=3), timedelta(minutes=3)),
        (timedelta(0), timedelta(0)),
        (CENTURY, CENTURY),
        (0, timedelta(0)),
        (90, timedelta(seconds=90)),
        (1.5, timedelta(seconds=1, milliseconds=500)),
        (0.000001, timedelta(microseconds=1)),
        (-0.0, timedelta(0)),
        (36_525 * 86_400, CENTURY),
        ("250ms", timedelta(milliseconds=250)),
        ("5s", timedelta(seconds=5)),
        ("10m", timedelta(minutes=10)),
        ("2h", timedelta(hours=2)),
        ("3d", timedelta(days=3)),
        ("1w", timedelta(weeks=1)),
        ("0s", timedelta(0)),
        ("1.5h", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("1w2d3h4m5s6ms", timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5, milliseconds=6)),
        (" 1h 30 m ", timedelta(minutes=90)),
        ("36525d", CENTURY),
    ],
)
def test_every_form_is_read(value: Duration, length: timedelta) -> None:
    assert duration(value) == length


@pytest.mark.parametrize(
    "value",
    [
        *[True, False, None, math.nan, math.inf, -math.inf, b"10m", [10], {"seconds": 1}, 1j],
        *["", "   ", "10", "m", "10x", "10M", "1h30", "ten minutes", "-5m", "+5m", "1e3s", ".5s", "5.s", "1,5s"],
        *["10m!", "1h-30m", "5 5s", "nan", "inf", "infs", "0x10s", "10m\0"],
    ],
)
def test_what_is_no_length_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue, match="to be a duration such as '90s' or '1h30m', got: "):
        duration(value)


@pytest.mark.parametrize(
    "value",
    [
        *[-1, -0.5, -(10**30), timedelta(microseconds=-1), timedelta.min],
        *[10**30, 10**400, 1e300, 36_525 * 86_400 + 1, CENTURY + timedelta(microseconds=1), timedelta.max],
        *["36526d", "36525d1s", "9999999999999999999w"],
    ],
)
def test_a_length_out_of_range_is_refused(value: Duration) -> None:
    with pytest.raises(InvalidValue, match="between 0 and 100 years"):
        duration(value)


@pytest.mark.parametrize("value", ["soon", -1, math.nan, True, timedelta(seconds=-1)])
def test_the_error_names_the_parameter_and_the_value(value: Duration) -> None:
    with pytest.raises(InvalidValue) as caught:
        duration(value, "timeout")

    assert str(caught.value).startswith("expected timeout to be ")
    assert str(caught.value).endswith(f", got: {value!r}")


@given(length=LENGTHS)
def test_a_timedelta_stays_as_it_is(length: timedelta) -> None:
    assert duration(length) == length


@given(length=LENGTHS)
def test_a_number_of_seconds_is_exact_to_the_microsecond(length: timedelta) -> None:
    assert duration(length.total_seconds()) == length


@given(
    weeks=st.integers(0, 5_000),
    days=st.integers(0, 99),
    hours=st.integers(0, 99),
    minutes=st.integers(0, 99),
    seconds=st.integers(0, 99),
    ms=st.integers(0, 99_999),
)
def test_text_adds_up_its_parts_exactly(weeks: int, days: int, hours: int, minutes: int, seconds: int, ms: int) -> None:
    text = f"{weeks}w{days}d{hours}h{minutes}m{seconds}s{ms}ms"

    length = duration(text)

    assert length == timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)


@given(length=LENGTHS)
def test_a_fraction_of_a_second_in_text_is_exact_to_the_microsecond(length: timedelta) -> None:
    seconds, rest = divmod(length, timedelta(seconds=1))

    assert duration(f"{seconds}.{rest.microseconds:06}s") == length


@given(text=st.text(alphabet="0123456789. smhdwe-"))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        length = duration(text)
    except InvalidValue:
        return

    assert timedelta(0) <= length <= CENTURY


@given(number=st.one_of(st.integers(), st.floats()))
def test_any_number_is_read_or_refused_and_nothing_else(number: float) -> None:
    try:
        length = duration(number)
    except InvalidValue:
        return

    assert abs(length.total_seconds() - number) < 0.000_001


@pytest.mark.parametrize(
    ("length", "text"),
    [
        ("72h", "3d"),
        (5400, "1h30m"),
        (0, "0s"),
        ("250ms", "0.25s"),
        ("8d1s", "8d1s"),
        (600, "10m"),
        (1e-6, "0.000001s"),
    ],
)
def test_a_length_is_spelled_in_one_way(length: Duration, text: str) -> None:
    assert spelled(duration(length)) == text


@given(length=st.timedeltas(min_value=timedelta(0), max_value=CENTURY))
def test_what_is_spelled_is_read_as_the_same_length(length: timedelta) -> None:
    assert abs(duration(spelled(length)) - length) <= timedelta(microseconds=1)
