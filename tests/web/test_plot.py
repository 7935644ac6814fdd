"""Bars, lines and axes of values over time."""

from __future__ import annotations

import pytest

from mainspring.web.plot import TALL, Bar, count_axis, line, stacked, time_axis


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0, ("2", "1", "0")),
        (0.3, ("2", "1", "0")),
        (2, ("2", "1", "0")),
        (2.1, ("4", "2", "0")),
        (9, ("10", "5", "0")),
        (10, ("10", "5", "0")),
        (10.5, ("20", "10", "0")),
        (99, ("100", "50", "0")),
        (1_700, ("2k", "1k", "0")),
        (4_300, ("6k", "3k", "0")),
        (1_000_000, ("1M", "500k", "0")),
        (7_000_000_000, ("8G", "4G", "0")),
    ],
)
def test_numbers_have_room_below_a_round_one(most: float, labels: tuple[str, str, str]) -> None:
    axis = count_axis(most)

    assert axis.labels == labels
    assert most <= axis.top


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0, ("2ms", "1ms", "0")),
        (0.003, ("4ms", "2ms", "0")),
        (0.7, ("1s", "500ms", "0")),
        (45, ("60s", "30s", "0")),
        (3_000, ("60m", "30m", "0")),
        (80_000, ("24h", "12h", "0")),
        (90_000, ("2d", "24h", "0")),
        (35 * 86_400, ("40d", "20d", "0")),
    ],
)
def test_lengths_of_time_have_room_below_a_round_one(most: float, labels: tuple[str, str, str]) -> None:
    axis = time_axis(most)

    assert axis.labels == labels
    assert most <= axis.top


def test_bars_stand_upon_each_other_and_leave_room_between() -> None:
    assert stacked({"done": [50, 0], "failed": [25, 100]}, 100) == [
        Bar(5, 40, TALL / 2, TALL / 2, "done"),
        Bar(5, 40, TALL / 4, TALL / 4, "failed"),
        Bar(55, 40, 0, TALL, "failed"),
    ]


def test_of_nothing_there_is_no_bar() -> None:
    assert stacked({"done": [], "failed": []}, 2) == []
    assert stacked({"done": [0, 0], "failed": [0, 0]}, 2) == []


def test_the_only_one_takes_the_whole_width() -> None:
    (bar,) = stacked({"done": [1]}, 2)

    assert (bar.left, bar.width) == (10, 80)


def test_one_among_very_many_is_seen_and_nothing_sticks_out() -> None:
    bars = stacked({"done": [1_000_000], "failed": [1]}, 1_000_000)

    assert bars[0].height == TALL
    assert stacked({"done": [999], "failed": [1]}, 100_000)[1].height == 2
    assert all(bar.top >= 0 and bar.top + bar.height <= TALL for bar in bars)


def test_a_line_leaves_out_what_is_not_known() -> None:
    assert line([0, 5, None, 10, None, None, 20], 10) == "M0.5 120.0h0L1.5 60.0M3.5 0.0h0M6.5 0.0h0"
    assert line([None, None], 10) == line([], 10) == ""
