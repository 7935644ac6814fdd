"""The journal's words: numbers that JSON can carry, text that a database can."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.journal import LogLine, Progress, Reached

JOB = UUID(int=1)


def test_a_line_is_made_storable() -> None:
    line = LogLine(JOB, 1, 1, "INFO", "a\0b\udcff")

    assert line.message == "a\\x00b\\udcff"


@pytest.mark.parametrize("number", [0, 1, 2.5, -1, 10**300])
def test_any_finite_number_is_a_progress(number: float) -> None:
    assert Progress(JOB, 1, number, number, "x\0").reached == Reached(number, number, "x\\x00")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, "1", True, None])
def test_other_numbers_are_refused(number: Any) -> None:
    with pytest.raises(InvalidValue, match="expected done to be a finite number, got"):
        Progress(JOB, 1, number)


def test_a_total_is_a_number_too() -> None:
    with pytest.raises(InvalidValue, match="expected total to be a finite number, got: 'ten'"):
        Progress(JOB, 1, 1, "ten")  # type: ignore[arg-type]
