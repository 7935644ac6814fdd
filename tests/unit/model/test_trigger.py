"""Triggers: values with a next tick, and the ticks of a period."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.trigger import (
    Cron,
    Every,
    Trigger,
    after,
    at,
    count_ticks,
    cron,
    every,
    last_ticks,
    ticks,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
MICROSECOND = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
TRIGGERS: list[Trigger] = [
    at(NOON),
    cron("0 9 * * mon-fri", "Europe/Berlin"),
    cron("@daily"),
    every("15m"),
    every("1.000001s", start=NOON),
    after("90s"),
]
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
LENGTHS = st.timedeltas(timedelta(milliseconds=100), timedelta(days=400))


def encode(trigger: Trigger) -> str:
    return msgspec.json.encode(trigger).decode()


def decode(text: str) -> Trigger:
    decoded: Trigger = msgspec.json.decode(text, type=Trigger)
    return decoded


def counting(trigger: Any, monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """Return a list that grows by one with every call of the trigger's `next`."""
    calls: list[datetime] = []
    real = type(trigger).next

    def counted(self: Trigger, moment: datetime) -> datetime | None:
        calls.append(moment)
        found: datetime | None = real(self, moment)
        return found

    monkeypatch.setattr(type(trigger), "next", counted)
    return calls


def test_at_comes_once() -> None:
    assert at(NOON).next(NOON - MICROSECOND) == NOON
    assert at(NOON).next(NOON) is None


def test_at_is_kept_in_utc() -> None:
    there = at(datetime(2026, 5, 1, 14, tzinfo=BERLIN))

    assert there == at(NOON)
    assert encode(there) == encode(at(NOON))
    assert str(there) == "at 2026-05-01 12:00:00+00:00"


@pytest.mark.parametrize(
    ("length", "start", "moment", "tick"),
    [
        ("15m", None, NOON, NOON + timedelta(minutes=15)),
        ("15m", None, NOON - MICROSECOND, NOON),
        ("7m", None, datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 7, tzinfo=UTC)),
        ("1h", NOON + timedelta(minutes=5), NOON - timedelta(days=9), NOON + timedelta(minutes=5)),
        ("1h", NOON + timedelta(minutes=5), NOON + timedelta(minutes=5), NOON + timedelta(minutes=65)),
        ("1d", None, datetime(2026, 3, 29, 0, 30, tzinfo=BERLIN), datetime(2026, 3, 29, tzinfo=UTC)),
        (
            "0.1s",
            NOON,
            NOON + timedelta(days=3650, microseconds=99_999),
            NOON + timedelta(days=3650, microseconds=100_000),
        ),
    ],
)
def test_every_counts_from_its_start(length: str, start: datetime | None, moment: datetime, tick: datetime) -> None:
    assert every(length, start).next(moment) == tick


@given(length=LENGTHS, start=st.none() | MOMENTS, moment=MOMENTS)
def test_every_tick_is_whole_lengths_from_the_start(
    length: timedelta, start: datetime | None, moment: datetime
) -> None:
    tick = every(length, start).next(moment)
    origin = start or datetime(1970, 1, 1, tzinfo=UTC)

    if tick is None:
        assert max(moment + length, origin) >= datetime(2200, 1, 1, tzinfo=UTC)
    else:
        assert tick > moment
        assert (tick - origin) % length == timedelta(0)
        assert tick == origin or tick - length <= moment


def test_after_counts_from_the_end_of_the_job() -> None:
    assert after("15m").next(NOON) == NOON + timedelta(minutes=15)


@pytest.mark.parametrize("make", [every, after])
@pytest.mark.parametrize("length", [0, 0.05, "99ms", timedelta(0)])
def test_a_length_under_a_tenth_of_a_second_is_refused(make: Any, length: Any) -> None:
    with pytest.raises(InvalidValue, match=rf"expected {make.__name__} to be at least 0\.1 s, got: 0"):
        make(length)


@pytest.mark.parametrize("make", [every, after])
def test_what_is_no_length_is_refused(make: Any) -> None:
    with pytest.raises(InvalidValue, match=f"expected {make.__name__} to be a duration such as '90s'"):
        make("soon")


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_the_moment_must_have_a_zone(trigger: Trigger) -> None:
    with pytest.raises(InvalidValue, match="expected the moment to have a time zone, got the naive datetime"):
        trigger.next(NOON.replace(tzinfo=None))
    with pytest.raises(InvalidValue, match="expected the moment to be a datetime with a time zone, got: 5"):
        trigger.next(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("when", [NOON.replace(tzinfo=None), "2026-05-01", None, NOON.replace(year=1969)])
def test_an_instant_must_be_one_and_have_a_zone(when: Any) -> None:
    with pytest.raises(InvalidValue, match="expected when to"):
        at(when)
    if when is not None:
        with pytest.raises(InvalidValue, match="expected start to"):
            every("1h", start=when)


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_the_tick_is_in_utc_whatever_the_zone_of_the_moment(trigger: Trigger) -> None:
    moment = NOON - HOUR
    tick = trigger.next(moment)

    assert tick is not None
    assert tick.tzinfo is UTC
    assert tick == trigger.next(moment.astimezone(BERLIN)) == trigger.next(moment.astimezone(timezone(-9 * HOUR)))


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("zone", [UTC, timezone(12 * HOUR), timezone(-12 * HOUR)])
def test_the_ends_of_time_are_no_errors(trigger: Trigger, zone: timezone) -> None:
    earliest = trigger.next(datetime.min.replace(tzinfo=zone))

    assert earliest is not None
    assert earliest >= datetime(1970, 1, 1, tzinfo=UTC)
    assert trigger.next(datetime.max.replace(tzinfo=zone)) is None
    assert trigger.next(datetime(2199, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        (cron("0 9 * * mon-fri", BERLIN), "cron 0 9 * * mon-fri (Europe/Berlin)"),
        (cron("@daily"), "cron @daily (UTC)"),
        (every("15m"), "every 15m"),
        (every("1d1h30m", start=NOON), "every 1d1h30m from 2026-05-01 12:00:00+00:00"),
        (every("100ms"), "every 0.1s"),
        (every("10s"), "every 10s"),
        (at(NOON), "at 2026-05-01 12:00:00+00:00"),
        (after("15m"), "15m after the last job ended"),
    ],
)
def test_a_trigger_says_what_it_does(trigger: Trigger, text: str) -> None:
    assert str(trigger) == text


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_trigger_survives_being_stored(trigger: Trigger) -> None:
    again = decode(encode(trigger))

    assert again == trigger
    assert type(again) is type(trigger)
    assert hash(again) == hash(trigger)


@given(length=LENGTHS, start=st.none() | MOMENTS)
def test_a_stored_length_and_start_are_exact(length: timedelta, start: datetime | None) -> None:
    assert decode(encode(every(length, start))) == Every(length, start)


def test_a_stored_trigger_is_readable() -> None:
    assert encode(cron("0 9 * * *", BERLIN)) == '{"kind":"cron","expression":"0 9 * * *","tz":"Europe/Berlin"}'
    assert cron("0 9 * * *", BERLIN) == Cron("0 9 * * *", "Europe/Berlin")
    assert cron("0 9 * * *", BERLIN) != cron("0 9 * * *")


@pytest.mark.parametrize("tz", ["Europe/Berln", "europe/berlin"])
def test_an_unknown_zone_gets_a_hint(tz: str) -> None:
    with pytest.raises(InvalidValue, match=f"got: '{tz}', did you mean 'Europe/Berlin'"):
        cron("@daily", tz)


@pytest.mark.parametrize(
    "tz", ["", " ", "Europe", "../UTC", "/etc/localtime", "a\0b", "x" * 5000, None, 5, UTC, b"UTC", []]
)
def test_what_is_no_zone_is_refused(tz: Any) -> None:
    with pytest.raises(InvalidValue, match="expected tz to be the name of a time zone such as 'Europe/Berlin', got: "):
        cron("@daily", tz)


def test_a_zone_without_a_name_is_refused() -> None:
    smallest_file = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"
    nameless = ZoneInfo.from_file(BytesIO(smallest_file))
    with pytest.raises(InvalidValue, match="expected tz to be the name of a time zone"):
        cron("@daily", nameless)


def test_the_ticks_of_a_period_include_its_end_only() -> None:
    assert list(ticks(every("1h"), NOON, NOON + 2 * HOUR)) == [NOON + HOUR, NOON + 2 * HOUR]


def test_of_a_delay_one_tick_can_be_told() -> None:
    assert list(ticks(after("1h"), NOON, NOON + 5 * HOUR)) == [NOON + HOUR]
    assert last_ticks(after("1h"), NOON, NOON + 5 * HOUR, 3) == [NOON + HOUR]
    assert last_ticks(after("1h"), NOON, NOON + HOUR / 2, 3) == []
    assert count_ticks(after("1h"), NOON, NOON + 5 * HOUR, 3) == 1


@pytest.mark.parametrize(("most", "count"), [(0, None), (2, None), (3, 3), (4, 3)])
def test_ticks_are_counted_up_to_a_limit(most: int, count: int | None) -> None:
    assert count_ticks(cron("0 * * * *"), NOON, NOON + 3 * HOUR, most) == count


def test_a_fixed_rate_is_reckoned_however_many_ticks_it_has() -> None:
    trigger = every("1s", start=NOON)

    assert count_ticks(trigger, NOON - HOUR, NOON + timedelta(days=3650), 10) == 3650 * 86_400 + 1
    assert count_ticks(trigger, NOON, NOON, 10) == 0


def test_counting_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counting(cron("* * * * * *"), monkeypatch)

    assert count_ticks(cron("* * * * * *"), NOON, NOON + timedelta(days=3650), 10) is None
    assert len(calls) <= 12


@pytest.mark.parametrize("most", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("length", [timedelta(0), MICROSECOND, HOUR, timedelta(days=9, microseconds=5)])
@pytest.mark.parametrize(
    "trigger",
    [
        at(NOON - timedelta(minutes=5)),
        every("1h"),
        every("3h", start=NOON - timedelta(days=2)),
        cron("30 9 * * mon-fri", "Europe/Berlin"),
        cron("*/7 2-3 * * *"),
        cron("* 5 25 * *"),
    ],
)
def test_the_last_ticks_are_the_end_of_all(trigger: Trigger, length: timedelta, most: int) -> None:
    every_one = list(ticks(trigger, NOON - length, NOON))

    assert last_ticks(trigger, NOON - length, NOON, most) == every_one[len(every_one) - min(most, len(every_one)) :]


@pytest.mark.parametrize(
    ("trigger", "most", "dearest"),
    [
        (every("0.1s"), 1, 10),
        (every("1s"), 100, 300),
        (cron("* * * * * *"), 100, 300),
        (cron("0 9 * * mon-fri", "Europe/Berlin"), 10, 100),
        (cron("* * * 1 1 *"), 1, 400),
        (cron("0 0 29 2 *"), 2, 100),
        (every("1s", start=NOON + HOUR), 5, 100),
    ],
)
def test_the_last_ticks_of_ten_years_cost_few_looks(
    trigger: Trigger, most: int, dearest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counting(trigger, monkeypatch)
    found = last_ticks(trigger, NOON - timedelta(days=3653), NOON, most)

    assert len(calls) <= dearest
    assert len(found) == (0 if isinstance(trigger, Every) and trigger.start else most)
