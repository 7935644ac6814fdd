"""The clock: instants as whole microseconds, chance, and time under a test's control."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.clock import EPOCH, Clock, SystemClock, microseconds, moment, random_bits
from mainspring.errors import InvalidValue
from mainspring.testing import SettableClock

INSTANTS = st.datetimes(timezones=st.just(UTC))
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@given(instant=INSTANTS)
def test_an_instant_survives_the_way_to_microseconds_and_back(instant: datetime) -> None:
    assert moment(microseconds(instant)) == instant


@given(count=st.integers(min_value=microseconds(FIRST), max_value=microseconds(LAST)))
def test_microseconds_survive_the_way_to_an_instant_and_back(count: int) -> None:
    assert microseconds(moment(count)) == count


@pytest.mark.parametrize(
    ("instant", "count"),
    [
        (EPOCH, 0),
        (EPOCH + timedelta(microseconds=1), 1),
        (EPOCH - timedelta(microseconds=1), -1),
        (datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000_000),
        (LAST, 253_402_300_799_999_999),
        (FIRST, -62_135_596_800_000_000),
    ],
)
def test_microseconds_count_from_1970(instant: datetime, count: int) -> None:
    assert microseconds(instant) == count
    assert moment(count) == instant


@given(instant=INSTANTS, minutes=st.integers(min_value=-23 * 60, max_value=23 * 60))
def test_the_zone_of_an_instant_does_not_change_its_microseconds(instant: datetime, minutes: int) -> None:
    offset = timedelta(minutes=minutes)

    elsewhere = instant.replace(tzinfo=timezone(offset))

    assert microseconds(elsewhere) == microseconds(instant) - offset // timedelta(microseconds=1)


def test_an_instant_made_from_microseconds_is_in_utc() -> None:
    assert moment(0).tzinfo is UTC


def test_a_naive_datetime_has_no_microseconds() -> None:
    with pytest.raises(TypeError, match="naive"):
        microseconds(datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("count", [1, 7, 8, 9, 62, 73, 74])
def test_random_bits_use_the_whole_range_and_no_more(count: int) -> None:
    drawn = [random_bits(count) for _ in range(200)]

    assert all(0 <= bits < 2**count for bits in drawn)
    assert max(drawn) >= 2 ** (count - 1) > min(drawn)


def test_random_bits_differ_from_draw_to_draw() -> None:
    assert len({random_bits(74) for _ in range(10_000)}) == 10_000


def test_the_system_clock_tells_the_time_in_utc() -> None:
    before = datetime.now(UTC)

    now = SystemClock().now()

    assert now.tzinfo is UTC
    assert before <= now <= datetime.now(UTC)


def test_the_system_clock_sleeps_at_least_as_long_as_asked() -> None:
    clock = SystemClock()
    start = clock.steady()

    clock.sleep(0.01)

    assert clock.steady() - start >= 0.01


def test_a_settable_clock_stands_still() -> None:
    clock: Clock = SettableClock()

    assert clock.now() == clock.now() == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert clock.steady() == clock.steady()


def test_advancing_moves_both_clocks_alike() -> None:
    clock = SettableClock(EPOCH)
    start = clock.steady()

    clock.advance("1h30m")

    assert clock.now() == EPOCH + timedelta(minutes=90)
    assert clock.steady() - start == 5400


def test_sleeping_on_a_settable_clock_takes_no_real_time() -> None:
    clock = SettableClock(EPOCH)

    clock.sleep(1_000_000)

    assert clock.now() == EPOCH + timedelta(seconds=1_000_000)


@pytest.mark.parametrize("target", [EPOCH, LAST])
def test_a_jump_moves_the_wall_clock_alone(target: datetime) -> None:
    clock = SettableClock()
    steady = clock.steady()

    clock.jump(target)

    assert clock.now() == target
    assert clock.steady() == steady


def test_time_never_passes_backwards() -> None:
    with pytest.raises(InvalidValue, match="length"):
        SettableClock().advance(-1)
