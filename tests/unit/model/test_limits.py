"""Limits as values, and who may start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.limits import Gate, Limit, Standing, admit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def slots(concurrency: int, held: int = 0) -> Gate:
    return Gate(Standing("k", concurrency, None, None, None, held, False), NOW)


def bucket(burst: int, full_at: datetime | None = None) -> Gate:
    return Gate(Standing("k", None, SECOND, burst, full_at, 0, False), NOW)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"key": ""}, "expected a limit to have a key"),
        ({"key": 7}, "expected a limit to have a key"),
        ({"concurrency": None}, "got neither"),
        ({"rate": "1/s"}, "got both; write two limits"),
        ({"concurrency": 0}, "expected concurrency to be a whole number from 1"),
        ({"concurrency": True}, "expected concurrency to be a whole number from 1"),
        ({"concurrency": 1.5}, "expected concurrency to be a whole number from 1"),
        ({"burst": 3}, "expected burst only with a rate"),
        ({"concurrency": None, "rate": "1/s", "burst": 0}, "expected burst to be a whole number from 1"),
        ({"concurrency": None, "rate": "-5/s"}, "expected the rate of a limit to be a whole number per unit"),
        ({"concurrency": None, "rate": "0/s"}, "expected the count of a rate to be a whole number from 1"),
        ({"concurrency": None, "rate": "5/year"}, "such as '20/s'"),
        ({"concurrency": None, "rate": 5}, "such as '20/s'"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"key": "k", "concurrency": 1} | given
    key = arguments.pop("key")

    with pytest.raises(InvalidValue, match=says):
        Limit(key, **arguments)


def test_a_job_wants_the_limit_that_its_arguments_name() -> None:
    want = Limit("tenant:{tenant}", rate="100/m").want({"tenant": "acme", "other": 1})

    assert (want.key, want.concurrency, want.interval, want.burst) == ("tenant:acme", None, SECOND * 0.6, 100)


def test_long_keys_are_told_apart_in_little_room() -> None:
    keys = [Limit("{name}", concurrency=1).want({"name": "x" * 10_000 + last}).key for last in "ab"]

    assert len(set(keys)) == 2
    assert max(map(len, keys)) < 300


def test_who_asks_first_starts_first_and_no_more_than_there_is_room() -> None:
    gates = {"k": slots(3, held=1)}
    wants = [Limit("k", concurrency=3).want({})]

    assert admit([(name, wants) for name in "abc"], gates) == [("a", None), ("b", None), ("c", "k")]


def test_one_that_has_to_wait_takes_nothing() -> None:
    gates = {"open": slots(1), "closed": slots(1, held=1)}
    both = [Limit("open", concurrency=1).want({}), Limit("closed", concurrency=1).want({})]

    assert admit([("a", both), ("b", both[:1])], gates) == [("a", "closed"), ("b", None)]


def test_a_full_bucket_lets_its_burst_through() -> None:
    gate = bucket(3)
    for _ in range(3):
        gate.take()

    assert (gate.room, gate.full_at) == (0, NOW + 3 * SECOND)
    assert gate.release_at == NOW + SECOND
    assert bucket(3, NOW + 2 * SECOND).room == 1
    assert bucket(3, NOW - SECOND).room == 3


@given(st.integers(1, 20), st.lists(st.integers(0, 3_000), min_size=1, max_size=200))
def test_no_stretch_of_time_sees_more_than_the_bucket_holds_and_gets(burst: int, pauses: list[int]) -> None:
    now, full_at, started = NOW, None, []
    for pause in pauses:
        now += timedelta(milliseconds=pause)
        gate = Gate(Standing("k", None, SECOND, burst, full_at, 0, False), now)
        if gate.room:
            gate.take()
            full_at = gate.full_at
            started.append(now)

    for first, start in enumerate(started):
        for last in range(first, len(started)):
            assert last - first + 1 <= burst + (started[last] - start) / SECOND
