"""Bars along an axis of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.web.gantt import Bar, Times, chart

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_it_waits_and_then_runs() -> None:
    (row,) = chart([Times(at(0), at(25), at(100))], at(500)).rows

    assert row.waited == Bar(0, 25)
    assert row.ran == Bar(25, 75)


def test_what_has_no_end_goes_on_until_now() -> None:
    drawn = chart([Times(at(0), at(10), at(20)), Times(at(20), at(20), None), Times(at(30), None, None)], at(40))

    assert drawn.rows[0].ran == Bar(25, 25)
    assert drawn.rows[1] == (None, Bar(50, 50))
    assert drawn.rows[2] == (Bar(75, 25), None)


def test_what_has_not_begun_has_no_bar() -> None:
    assert chart([Times(None, None, None)], at(0)) == ([(None, None)], [], None)
    assert chart([Times(None, None, None), Times(at(0), at(1), at(2))], at(9)).rows[0] == (None, None)


def test_what_took_no_time_is_seen() -> None:
    drawn = chart([Times(at(0), at(0), at(0)), Times(at(0), at(0), at(1000)), Times(None, at(1000), at(1000))], at(0))

    for row in drawn.rows:
        assert row.ran is not None
        assert row.ran.width > 0
        assert row.ran.left + row.ran.width <= 100


@pytest.mark.parametrize("seconds", [0, 0.003, 0.7, 1, 9, 61, 3_599, 86_400, 9 * 86_400, 4_000 * 86_400])
def test_the_axis_has_a_few_labels(seconds: float) -> None:
    labels = chart([Times(None, at(0), at(seconds))], at(0)).labels

    assert 1 <= len(labels) <= 7
    assert labels[0] == (0, timedelta(0))
    assert all(0 <= label.left <= 100 for label in labels)
