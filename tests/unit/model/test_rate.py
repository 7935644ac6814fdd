"""Rates as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.rate import Rate, rate


@pytest.mark.parametrize(
    ("text", "count", "seconds"),
    [
        ("20/s", 20, 1),
        ("100/m", 100, 60),
        ("5/h", 5, 3600),
        ("1/d", 1, 86_400),
        (" 10 / 30s ", 10, 30),
        ("3/500ms", 3, 0.5),
        ("1000000/s", 1_000_000, 1),
    ],
)
def test_a_rate_is_so_many_per_stretch_of_time(text: str, count: int, seconds: float) -> None:
    assert rate(text) == Rate(count, timedelta(seconds=seconds))
    assert rate(text).per_second == count / seconds


def test_a_rate_is_taken_as_it_is() -> None:
    assert rate(Rate(3, timedelta(minutes=1))) == rate("3/m")


@pytest.mark.parametrize(
    "value", ["", "20", "/s", "20/", "-1/s", "1.5/s", "20/year", "20 s", "20/s/s", 20, None, b"1/s"]
)
def test_what_is_no_rate_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="expected --rate to be a whole number per unit of time, such as '20/s'"):
        rate(value, "--rate")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0/s", "whole number from 1 on, got: 0"),
        ("5/0s", "stretch of time of up to 366 days"),
        ("1/400d", "up to 366 days"),
        ("1000001/s", "at most 1,000,000 a second, got: 1,000,001"),
        ("2000/1ms", "at most 1,000,000 a second"),
        ("1/999999999999w", "between 0 and 100 years"),
    ],
)
def test_a_rate_that_makes_no_sense_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=f"^limit '{text}' makes no sense: .*{words}"):
        rate(text, "limit")


@pytest.mark.parametrize(("count", "per"), [(True, timedelta(1)), (1.5, timedelta(1)), (1, 60), (-1, timedelta(1))])
def test_a_rate_can_not_be_made_of_anything(count: object, per: object) -> None:
    with pytest.raises(InvalidValue):
        Rate(count, per)  # type: ignore[arg-type]
