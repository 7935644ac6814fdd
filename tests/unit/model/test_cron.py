"""Cron expressions: what they mean, and which are refused. `test_cron_oracle.py` has the changes of the clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model import cron as cron_module
from mainspring.model.cron import Expression, expression
from mainspring.model.trigger import cron, ticks

FOREVER = datetime.max.replace(tzinfo=UTC)


def instant(text: str, tz: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz))


def local_ticks(text: str, after: str, count: int, tz: str = "UTC") -> list[str]:
    """Return the next ticks as the clocks of *tz* show them."""
    found = islice(ticks(cron(text, tz), instant(after, tz), FOREVER), count)
    return [tick.astimezone(ZoneInfo(tz)).strftime("%Y-%m-%d %H:%M:%S %z") for tick in found]


@pytest.mark.parametrize(
    ("text", "after", "ticks"),
    [
        ("* * * * *", "2026-05-01 12:00:59.999999", ["2026-05-01 12:01:00", "2026-05-01 12:02:00"]),
        ("*/15 * * * *", "2026-05-01 23:45", ["2026-05-02 00:00:00", "2026-05-02 00:15:00"]),
        ("5/20 3 * * *", "2026-05-01 03:25", ["2026-05-01 03:45:00", "2026-05-02 03:05:00"]),
        ("0 9-17/4 * * *", "2026-05-01 09:00", ["2026-05-01 13:00:00", "2026-05-01 17:00:00"]),
        ("1,2,30-31 6 * * *", "2026-05-01 06:02", ["2026-05-01 06:30:00", "2026-05-01 06:31:00"]),
        ("0 9 * * mon-fri", "2026-05-01 09:00", ["2026-05-04 09:00:00", "2026-05-05 09:00:00"]),
        ("0 9 * * MON,Wed", "2026-05-01 09:00", ["2026-05-04 09:00:00", "2026-05-06 09:00:00"]),
        ("0 0 * * 0", "2026-05-01", ["2026-05-03 00:00:00", "2026-05-10 00:00:00"]),
        ("0 0 * * 7", "2026-05-01", ["2026-05-03 00:00:00", "2026-05-10 00:00:00"]),
        ("0 0 1 jan,Jul *", "2026-05-01", ["2026-07-01 00:00:00", "2027-01-01 00:00:00"]),
        ("0 0 L * *", "2026-01-31", ["2026-02-28 00:00:00", "2026-03-31 00:00:00"]),
        ("0 0 LW * *", "2026-05-01", ["2026-05-29 00:00:00", "2026-06-30 00:00:00"]),
        ("0 0 * * 5L", "2026-05-01", ["2026-05-29 00:00:00", "2026-06-26 00:00:00"]),
        ("0 0 * * fri#2", "2026-05-01", ["2026-05-08 00:00:00", "2026-06-12 00:00:00"]),
        ("0 0 13 * fri", "2026-05-08", ["2026-05-13 00:00:00", "2026-05-15 00:00:00"]),
        ("0 0 */13 * fri", "2026-01-01", ["2026-02-27 00:00:00", "2026-03-27 00:00:00"]),
        ("0 0 29 2 *", "2097-01-01", ["2104-02-29 00:00:00", "2108-02-29 00:00:00"]),
        ("0 0 29 2 */7", "2088-03-01", ["2128-02-29 00:00:00", "2156-02-29 00:00:00"]),
        ("59 59 23 31 12 *", "2026-12-31 23:59:58", ["2026-12-31 23:59:59", "2027-12-31 23:59:59"]),
        ("*/20 * * * * *", "2026-05-01 12:00:40", ["2026-05-01 12:01:00", "2026-05-01 12:01:20"]),
        ("10,50 0 0 * * *", "2026-05-01 00:00:10", ["2026-05-01 00:00:50", "2026-05-02 00:00:10"]),
        ("  0   9 * * *  ", "2026-05-01", ["2026-05-01 09:00:00", "2026-05-02 09:00:00"]),
        ("@hourly", "2026-05-01", ["2026-05-01 01:00:00", "2026-05-01 02:00:00"]),
        ("@daily", "2026-05-01", ["2026-05-02 00:00:00", "2026-05-03 00:00:00"]),
        ("@Midnight", "2026-05-01", ["2026-05-02 00:00:00", "2026-05-03 00:00:00"]),
        ("@weekly", "2026-05-01", ["2026-05-03 00:00:00", "2026-05-10 00:00:00"]),
        ("@monthly", "2026-05-01", ["2026-06-01 00:00:00", "2026-07-01 00:00:00"]),
        ("@yearly", "2026-05-01", ["2027-01-01 00:00:00", "2028-01-01 00:00:00"]),
        ("@annually", "2026-05-01", ["2027-01-01 00:00:00", "2028-01-01 00:00:00"]),
    ],
)
def test_expressions_mean_what_they_say(text: str, after: str, ticks: list[str]) -> None:
    assert local_ticks(text, after, 2) == [f"{tick} +0000" for tick in ticks]


SPRING, AUTUMN = "2026-03-29 00:45", "2026-10-25 00:45"


@pytest.mark.parametrize(
    ("text", "after", "ticks"),
    [
        ("30 2 * * *", SPRING, ["29 03:00:00 +0200", "30 02:30:00 +0200"]),
        ("0 30 2 * * *", SPRING, ["29 03:00:00 +0200", "30 02:30:00 +0200"]),
        ("15-17 30 2 * * *", SPRING, ["29 03:00:00 +0200", "30 02:30:15 +0200"]),
        ("0,30 2 * * *", SPRING, ["29 03:00:00 +0200", "30 02:00:00 +0200"]),
        ("0 2,3 * * *", SPRING, ["29 03:00:00 +0200", "30 02:00:00 +0200"]),
        ("0 1-3 * * *", SPRING, ["29 01:00:00 +0100", "29 03:00:00 +0200"]),
        ("*/30 1-3 * * *", SPRING, ["29 01:00:00 +0100", "29 01:30:00 +0100", "29 03:00:00 +0200"]),
        ("*/20 30 2 * * *", SPRING, ["30 02:30:00 +0200"]),
        ("30 */2 * * *", SPRING, ["29 04:30:00 +0200"]),
        ("0 * * * *", SPRING, ["29 01:00:00 +0100", "29 03:00:00 +0200", "29 04:00:00 +0200"]),
        ("30 2 * * *", AUTUMN, ["25 02:30:00 +0200", "26 02:30:00 +0100"]),
        ("0 30 2 * * *", AUTUMN, ["25 02:30:00 +0200", "26 02:30:00 +0100"]),
        ("0 0-23 * * *", AUTUMN, ["25 01:00:00 +0200", "25 02:00:00 +0200", "25 03:00:00 +0100"]),
        ("0 * * * *", AUTUMN, ["25 01:00:00 +0200", "25 02:00:00 +0200", "25 02:00:00 +0100", "25 03:00:00 +0100"]),
        ("30 */2 * * *", AUTUMN, ["25 02:30:00 +0200", "25 02:30:00 +0100", "25 04:30:00 +0100"]),
        ("*/60 2 * * sun", AUTUMN, ["25 02:00:00 +0200", "25 02:00:00 +0100"]),
        ("*/40 30 2 * * *", AUTUMN, ["25 02:30:00 +0200", "25 02:30:40 +0200", "25 02:30:00 +0100"]),
    ],
)
def test_the_clocks_change_in_berlin(text: str, after: str, ticks: list[str]) -> None:
    found = local_ticks(text, after, len(ticks), "Europe/Berlin")

    assert [tick.split("-", 2)[2] for tick in found] == ticks


def test_a_time_of_day_that_had_its_turn_does_not_come_again_in_the_repeated_hour() -> None:
    second_time = instant("2026-10-25 02:15", "Europe/Berlin").replace(fold=1)

    assert cron("30 2 * * *", "Europe/Berlin").next(second_time) == instant("2026-10-26 02:30", "Europe/Berlin")


@pytest.mark.parametrize("before", [timedelta(seconds=1), timedelta(microseconds=1)])
def test_a_skipped_time_is_found_from_just_before_the_gap(before: timedelta) -> None:
    change = instant("2026-03-29 03:00", "Europe/Berlin").astimezone(UTC)

    assert cron("30 2 * * *", "Europe/Berlin").next(change - before) == change
    assert cron("30 2 * * *", "Europe/Berlin").next(change) == instant("2026-03-30 02:30", "Europe/Berlin")


def test_a_rare_tick_of_real_time_is_found_beyond_many_changes() -> None:
    tick = cron("* * 29 2 */7", "Europe/Berlin").next(instant("2026-10-24 12:00"))

    assert tick == instant("2032-02-29 00:00", "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "0 0 30 2 *",
            'expected a cron expression that can fire, got "0 0 30 2 *": no February has a day 30 (column 5)',
        ),
        ("0 0 31 4,jun *", 'got "0 0 31 4,jun *": no April or June has a day 31 (column 5)'),
        ("0 0  0 31 apr *", "no April has a day 31 (column 8)"),
        ("0 0 */31 2 mon#5", "no such day of the month is such a day of the week (column 5)"),
        ("*/0 * * * *", '"*/0" has a step of 0 (column 1)'),
        ("* 1-5/00,7 * * *", '"1-5/00,7" has a step of 0 (column 3)'),
        ("60 * * * *", '"60" is no minute, which is 0 to 59, '),
        ("* 24 * * *", '"24" is no hour, which is 0 to 23, '),
        ("60 * * * * *", '"60" is no second, which is 0 to 59, '),
        ("* * 0 * *", '"0" is no day of month, which is 1 to 31, '),
        ("* * 32 * *", "(column 5)"),
        ("* * * 13 *", '"13" is no month, which is 1 to 12 or jan to dec, '),
        ("* * * * 8", '"8" is no day of week, which is 0 to 7 or sun to sat, '),
        ("* * * foo *", '"foo" is no month'),
        ("*  *  *  *  mo", '"mo" is no day of week'),
        ("* * * * sun#6", "(column 9)"),
        ("5-1 * * * *", "upward ranges"),
        ("", "got 0: "),
        ("* * * *", "expected a cron expression of 5 fields (minute, hour, day of month, month, day of week), or of 6"),
        ("* * * * * * *", "got 7: "),
        ("0 9 * * *\n", "of plain ASCII characters, got: '0 9 * * *\\n' (column 10)"),
        ("0\t9 * * *", "(column 2)"),
        ("0 9 * * fr\u0131", "(column 11)"),
        ("0 9 * * *\0", "(column 10)"),
        ("1," * 100 + "1 * * * *", "at most 200 characters, got 209"),
        ("@dayly", "no cron expression is named \"@dayly\", did you mean '@daily'?"),
        ("@reboot", "known are @hourly, @daily, "),
        (None, "expected a cron expression such as '0 9 * * mon-fri', got: None"),
        (b"@daily", "got: b'@daily'"),
        (["@daily"], "got: ['@daily']"),
    ],
)
def test_what_can_not_be_is_refused_with_its_place(text: Any, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        cron(text)
    assert why in str(caught.value)


FIELD = st.one_of(
    st.text("0123456789*/-,#LWlw", min_size=1, max_size=6),
    st.sampled_from(["*", "*", "*/2", "29", "31", "L", "LW", "2", "mon#5", "7L", "*/31", "jan", "*/7"]),
)


@given(fields=st.lists(FIELD, min_size=5, max_size=6), year=st.integers(1970, 2150))
@example(fields=["0", "0", "*", "2", "mon#5"], year=2096)
@example(fields=["*", "*", "*/7", "2", "mon#5"], year=2096)
def test_an_expression_is_refused_or_fires(fields: list[str], year: int) -> None:
    try:
        trigger = cron(" ".join(fields), "America/New_York")
    except InvalidValue:
        return
    start = datetime(year, 3, 1, tzinfo=UTC)
    tick = trigger.next(start)

    assert tick is not None
    assert start < tick < start + timedelta(days=366 * 41)


def test_a_rare_day_is_found_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    rare = Expression("0 0 */7 2 mon#5")
    real = rare._days.match_day

    def counted(day: date) -> bool:
        looks.append(day)
        return real(day)

    monkeypatch.setattr(rare._days, "match_day", counted)

    assert rare.first(datetime(2096, 3, 1)) == datetime(2112, 2, 29)  # noqa: DTZ001
    assert len(looks) < 29 * 17


def test_an_expression_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = cron("17 4 * * *")
    monkeypatch.setattr(cron_module, "CronSim", None)

    assert trigger.next(instant("2026-05-01")) == instant("2026-05-01 04:17")
    assert expression("17 4 * * *") is expression("17 4 * * *")


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Nothing is remembered of zones from before, nor afterwards."""
    cron_module.zone.cache_clear()
    cron_module.zones.cache_clear()
    yield
    cron_module.zone.cache_clear()
    cron_module.zones.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_utc_needs_no_zones_and_others_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> ZoneInfo:
        raise LookupError(name)

    monkeypatch.setattr(cron_module, "ZoneInfo", missing)
    monkeypatch.setattr(cron_module, "available_timezones", set)

    assert cron("@daily").next(instant("2026-05-01")) is not None
    with pytest.raises(InvalidValue, match="none are installed here: pip install tzdata"):
        cron("@daily", "Europe/Berlin")
