"""Previews: the coming ticks, with what the clocks do to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mainspring.errors import InvalidValue
from mainspring.model import preview as preview_module
from mainspring.model.cron import Expression
from mainspring.model.preview import Preview, dst_remarks, preview
from mainspring.model.trigger import Trigger, after, at, cron, every

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
SPRING = datetime(2026, 3, 29, 0, 45, tzinfo=BERLIN)
AUTUMN = datetime(2026, 10, 25, 0, 45, tzinfo=BERLIN)
FORWARD = "the clocks go forward here: 02:00 to 03:00 does not exist"


def shown(previews: list[Preview]) -> list[tuple[str, str | None]]:
    assert all(one.at.tzinfo is UTC and one.local.astimezone(UTC) == one.at for one in previews)
    return [(one.local.strftime("%m-%d %H:%M:%S"), one.remark) for one in previews]


@pytest.mark.parametrize(
    ("trigger", "count"),
    [(at(NEW_YEAR + YEAR), 1), (every("1h"), 3), (after("1h"), 1), (cron("@hourly"), 3)],
)
def test_what_knows_no_clocks_has_no_remarks(trigger: Trigger, count: int) -> None:
    found = preview(trigger, NEW_YEAR, 3)

    assert len(found) == count
    assert found[0] == Preview(trigger.next(NEW_YEAR) or NEW_YEAR, trigger.next(NEW_YEAR) or NEW_YEAR, None)
    assert dst_remarks(trigger, NEW_YEAR, NEW_YEAR + YEAR) == []


def test_ticks_are_shown_in_their_zone() -> None:
    (found,) = preview(cron("0 9 * * *", "Europe/Berlin"), NEW_YEAR, 1)

    assert found.at.isoformat() == "2026-01-01T08:00:00+00:00"
    assert found.local.isoformat() == "2026-01-01T09:00:00+01:00"
    assert found.local.tzinfo is BERLIN


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        (
            "30 2 * * *",
            SPRING,
            [
                ("03-29 03:00:00", "02:30 does not exist that day; runs right after the gap"),
                ("03-30 02:30:00", None),
            ],
        ),
        (
            "30 2 * * *",
            AUTUMN,
            [
                ("10-25 02:30:00", "02:30 happens twice that day; runs once, the first time"),
                ("10-26 02:30:00", None),
            ],
        ),
        ("0 3 * * *", SPRING, [("03-29 03:00:00", None), ("03-30 03:00:00", None)]),
        (
            "15 30 2 * * *",
            AUTUMN,
            [("10-25 02:30:15", "02:30:15 happens twice that day; runs once, the first time")],
        ),
        (
            "*/30 * * * *",
            SPRING,
            [
                ("03-29 01:00:00", None),
                ("03-29 01:30:00", None),
                ("03-29 03:00:00", FORWARD),
                ("03-29 03:30:00", None),
            ],
        ),
        (
            "30 * * * *",
            AUTUMN,
            [
                ("10-25 01:30:00", None),
                ("10-25 02:30:00", "the clocks go back here: 02:30 happens twice, and runs both times"),
                ("10-25 02:30:00", "the clocks go back here: 02:30 happens twice, and runs both times"),
                ("10-25 03:30:00", None),
            ],
        ),
        ("*/30 2 * * sun", SPRING, [("04-05 02:00:00", FORWARD), ("04-05 02:30:00", None)]),
    ],
)
def test_odd_times_are_remarked_on(text: str, moment: datetime, expected: list[tuple[str, str | None]]) -> None:
    assert shown(preview(cron(text, "Europe/Berlin"), moment, len(expected))) == expected


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("30 2 * * *", ["03-29 03:00:00", "10-25 02:30:00"]),
        ("0,30 2 * * *", ["03-29 03:00:00", "10-25 02:00:00", "10-25 02:30:00"]),
        ("0 3 * * *", []),
        ("0 9 * * mon-fri", []),
        ("30 2 * * mon-fri", []),
        ("*/30 2 29 3 *", ["03-29 02:00:00"]),
        ("30 * * * *", ["03-29 03:30:00", "10-25 02:30:00", "10-25 02:30:00"]),
    ],
)
def test_the_touched_ticks_of_a_year_are_found(text: str, ticks: list[str]) -> None:
    found = dst_remarks(cron(text, "Europe/Berlin"), NEW_YEAR, NEW_YEAR + YEAR)

    assert [tick for tick, remark in shown(found) if remark] == ticks
    assert len(found) == len(ticks)


def test_a_change_counts_only_within_the_period() -> None:
    trigger, change = cron("30 2 * * *", "Europe/Berlin"), datetime(2026, 3, 29, 1, tzinfo=UTC)
    half = timedelta(milliseconds=500)

    assert len(dst_remarks(trigger, change - half, change)) == 1
    assert dst_remarks(trigger, change, change + YEAR / 4) == []
    assert dst_remarks(trigger, change - YEAR / 4, change - half) == []


def test_every_second_of_a_year_costs_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[datetime] = []
    real = Expression.first

    def first(self: Expression, local: datetime) -> datetime | None:
        looks.append(local)
        return real(self, local)

    monkeypatch.setattr(Expression, "first", first)
    found = dst_remarks(cron("* * * * * *", "Europe/Berlin"), NEW_YEAR, NEW_YEAR + YEAR)

    assert len(found) == 1 + preview_module._MOST
    assert len(looks) < 100


def test_the_half_hour_of_lord_howe_is_known() -> None:
    found = dst_remarks(cron("15 2 * * *", "Australia/Lord_Howe"), NEW_YEAR, NEW_YEAR + YEAR)
    twice = dst_remarks(cron("45 1 * * *", "Australia/Lord_Howe"), NEW_YEAR, NEW_YEAR + YEAR)

    assert shown(found) == [("10-04 02:30:00", "02:15 does not exist that day; runs right after the gap")]
    assert shown(twice) == [("04-05 01:45:00", "01:45 happens twice that day; runs once, the first time")]


def test_moments_must_have_a_zone() -> None:
    trigger, naive = cron("@hourly", "Europe/Berlin"), NEW_YEAR.replace(tzinfo=None)

    with pytest.raises(InvalidValue, match="time zone"):
        preview(trigger, naive, 1)
    with pytest.raises(InvalidValue, match="time zone"):
        dst_remarks(trigger, naive, NEW_YEAR + YEAR)
