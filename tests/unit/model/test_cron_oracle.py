"""Cron beside an oracle that knows nothing of it: it walks through real time and looks at the clock on the wall."""

from __future__ import annotations

import random
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.model.trigger import cron

MINUTE = timedelta(minutes=1)
ZONES = sorted(available_timezones() - {"Factory", "localtime"})
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

HOUR_FIELDS = ["*", "*/2", "*/3", "0", "1", "2", "3", "23", "0-23", "1-3", "0,2", "22-23", "0-4/2", "2,3", "9", "1,13"]
MINUTE_FIELDS = ["*", "*/15", "*/30", "*/7", "0", "30", "45", "59", "0,30", "15-45", "0-59", "5/20", "1"]
DAY_FIELDS = ["*", "*", "*", "*", "*/2", "1-15", "16-31", "30", "31", "L", "1", "29,30,L"]
MONTH_FIELDS = ["*", "*", "*", "jan-jun", "7-12", "*/2", "3,10,dec"]
WEEKDAY_FIELDS = ["*", "*", "*", "*", "sun", "mon-fri", "6,7", "0", "sat#2", "sun#1", "5L", "*/2"]


def numbers(field: str, low: int, high: int, read: Callable[[str], int] = int) -> set[int]:
    """Return the numbers that a field without L and # means."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start = low if first == "*" else read(first)
        end = high if first == "*" or (step and not last) else read(last or first)
        found |= set(range(start, end + 1, int(step or 1)))
    return found


def month_number(word: str) -> int:
    return int(word) if word.isdigit() else datetime.strptime(word, "%b").month  # noqa: DTZ007


def weekday_number(word: str) -> int:
    return int(word) if word.isdigit() else WEEKDAYS.index(word) + 1


def matches_date(local: datetime, day: str, month: str, weekday: str) -> bool:
    if local.month not in numbers(month, 1, 12, month_number):
        return False
    last = monthrange(local.year, local.month)[1]
    by_day = local.day in numbers(day.replace("L", str(last)), 1, 31)
    if weekday.endswith("L"):
        by_weekday = local.isoweekday() == int(weekday[:-1]) and local.day > last - 7
    elif "#" in weekday:
        name, nth = weekday.split("#")
        by_weekday = local.isoweekday() == weekday_number(name) and (local.day - 1) // 7 + 1 == int(nth)
    else:
        by_weekday = bool({local.isoweekday(), local.isoweekday() % 7} & numbers(weekday, 0, 7, weekday_number))
    if day.startswith("*") or weekday.startswith("*"):
        return by_day and by_weekday
    return by_day or by_weekday


def matcher(expression: str) -> Callable[[datetime], bool]:
    minute, hour, day, month, weekday = expression.split()
    minutes, hours = numbers(minute, 0, 59), numbers(hour, 0, 23)
    dates: dict[object, bool] = {}

    def matches(local: datetime) -> bool:
        if local.second or local.minute not in minutes or local.hour not in hours:
            return False
        if local.date() not in dates:
            dates[local.date()] = matches_date(local, day, month, weekday)
        return dates[local.date()]

    return matches


@cache
def walk(zone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Return what the clock shows, minute by minute (or by half, where it once was set to the second)."""
    info = ZoneInfo(zone)
    step = MINUTE if all(info.utcoffset(when).seconds % 60 == 0 for when in (start, end)) else MINUTE / 2  # type: ignore[union-attr]
    return [
        (start + number * step, (start + number * step).astimezone(info).replace(tzinfo=None, fold=0))
        for number in range((end - start) // step + 1)
    ]


def oracle(expression: str, zone: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the ticks in [start, end], minute by minute, by the rule in words.

    Times of day are due when the clock comes to them or has passed them, for the first time.
    """
    matches = matcher(expression)
    real_time = any(field.startswith("*") for field in expression.split()[:2])
    latest = None
    for instant, local in walk(zone, start, end):
        if real_time:
            if matches(local):
                yield instant
            continue
        if latest is None:
            latest = local - MINUTE / 2
        due, shown = False, latest.replace(second=0) + MINUTE
        while shown <= local:
            due = due or matches(shown)
            shown += MINUTE
        latest = max(latest, local)
        if due:
            yield instant


def offset(info: ZoneInfo, start: datetime, halves: int) -> timedelta:
    found = (start + halves * MINUTE / 2).astimezone(info).utcoffset()
    assert found is not None
    return found


def differs(info: ZoneInfo, start: datetime, halves: int) -> bool:
    return offset(info, start, halves) != offset(info, start, 0)


@cache
def changes(zone: str) -> list[datetime]:
    """Return when the clocks of *zone* change between 1970 and 2040."""
    info, found = ZoneInfo(zone), []
    start = datetime(1970, 1, 3, tzinfo=UTC)
    before = start.astimezone(info).utcoffset()
    while start.year < 2040:
        end = start + timedelta(days=24)
        if (now := end.astimezone(info).utcoffset()) != before:
            halves = range(1, (end - start) // (MINUTE / 2) + 1)
            first = bisect_left(halves, True, key=partial(differs, info, start))
            found.append(start + halves[first] * MINUTE / 2)
        start, before = end, now
    return found


def check(expression: str, zone: str, change: datetime) -> None:
    """Compare, from many moments around *change* on."""
    trigger = cron(expression, zone)
    info = ZoneInfo(zone)
    shift = offset(info, change, 0) - offset(info, change, -1)
    start, end = change - timedelta(hours=10) - abs(shift), change + timedelta(hours=10) + abs(shift)
    expected = list(oracle(expression, zone, start, end))
    told, tick = [], trigger.next(start - timedelta(microseconds=1))
    while tick is not None and tick <= end:
        told.append(tick)
        tick = trigger.next(tick)
    assert told == expected, f"{expression} in {zone} around {change}"
    moments = [change + number * timedelta(minutes=7, seconds=30) for number in range(-20, 20)]
    for after in [*moments, change - timedelta(seconds=1), change - timedelta(microseconds=1)]:
        first = next((tick for tick in expected if tick > after), None)
        found = trigger.next(after)
        assert found == first if first else found is None or found > end, f"{expression} in {zone} after {after}"


def day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


ODD = {
    "Africa/Casablanca": [day(2018, 6, 17), day(2024, 3, 10), day(2024, 4, 14)],
    "Africa/Monrovia": [day(1972, 1, 7)],
    "America/Caracas": [day(2007, 12, 9), day(2016, 5, 1)],
    "America/Santiago": [day(2026, 4, 5), day(2026, 9, 6)],
    "Antarctica/Troll": [day(2026, 3, 29), day(2026, 10, 25)],
    "Antarctica/Vostok": [day(1994, 1, 31), day(1994, 11, 1)],
    "Asia/Pyongyang": [day(2015, 8, 14), day(2018, 5, 4)],
    "Australia/Lord_Howe": [day(2026, 4, 4), day(2026, 10, 3)],
    "Europe/Berlin": [day(2026, 3, 29), day(2026, 10, 25)],
    "Europe/Dublin": [day(2026, 3, 29), day(2026, 10, 25)],
    "Europe/Volgograd": [day(2018, 10, 27), day(2020, 12, 26)],
    "Pacific/Apia": [day(2011, 12, 30)],
    "Pacific/Chatham": [day(2026, 4, 4), day(2026, 9, 26)],
    "Pacific/Kwajalein": [day(1993, 8, 21)],
}
ODD_EXPRESSIONS = [
    *["0 * * * *", "*/15 * * * *", "30 */2 * * *", "*/30 1-3 * * *", "* 2 * * *"],
    *["0 0 * * *", "30 2 * * *", "15 2 * * *", "0 0-23 * * *", "0,30 0-3 * * *", "0-59 0-23 * * *", "45 2 * * sun"],
    *["0 9 30 12 *", "30 0 * * 6,7", "0 12 L * *"],
]


@pytest.mark.parametrize("zone", ODD)
def test_odd_changes_of_the_clocks(zone: str) -> None:
    for about in ODD[zone]:
        near = [when for when in changes(zone) if abs(when - about) < timedelta(days=2)]
        assert len(near) == 1, f"{zone} does not change its clocks around {about}"
        for expression in ODD_EXPRESSIONS:
            check(expression, zone, near[0])


def some_expression(choose: Callable[[list[str]], str]) -> str:
    fields = (MINUTE_FIELDS, HOUR_FIELDS, DAY_FIELDS, MONTH_FIELDS, WEEKDAY_FIELDS)
    return " ".join(choose(field) for field in fields)


def test_every_zone_around_one_of_its_changes() -> None:
    chance = random.Random(1)
    for zone in ZONES:
        found = changes(zone) or [datetime(2026, 3, 29, 1, tzinfo=UTC)]
        check(some_expression(chance.choice), zone, chance.choice(found))


@settings(max_examples=200, derandomize=True)
@given(data=st.data())
def test_any_expression_in_any_zone(data: st.DataObject) -> None:
    zone = data.draw(st.sampled_from(ZONES))
    change = data.draw(st.sampled_from(changes(zone) or [datetime(2026, 3, 29, 1, tzinfo=UTC)]))
    check(some_expression(lambda field: data.draw(st.sampled_from(field))), zone, change)
