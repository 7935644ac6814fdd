"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.cli.times import ago, local, since, span, until

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0ms"),
        (0, "0ms"),
        (0.0042, "4ms"),
        (0.9994, "999ms"),
        (0.9999, "1s"),
        (1.25, "1.2s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "120m"),
        (7200, "2h"),
        (172_799, "48h"),
        (172_800, "2d"),
        (31_536_000, "365d"),
    ],
)
def test_a_length_is_told_in_one_unit(seconds: float, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


def test_instants_are_told_from_now() -> None:
    assert ago(NOW - timedelta(seconds=5.9), NOW) == "6s ago"
    assert ago(NOW + timedelta(seconds=5), NOW) == "now"
    assert until(NOW + timedelta(minutes=5), NOW) == "in 5m"
    assert until(NOW - timedelta(minutes=5), NOW) == "now"
    assert since(NOW - timedelta(hours=3), NOW) == "for 3h"
    assert since(NOW + timedelta(hours=3), NOW) == "for 0s"


def test_an_instant_says_its_time_zone() -> None:
    assert datetime.fromisoformat(local(NOW)) == NOW
