"""Ids: UUIDs of version 7 that grow from call to call."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.clock import random_bits
from mainspring.model.ids import IdSource, first_id, made_at, uuid7

MILLISECONDS = st.integers(min_value=0, max_value=2**48 - 1)
RANDOMNESS = st.integers(min_value=0, max_value=2**74 - 1)
NOW = 1_767_268_800_000


def source_at(*times: int) -> IdSource:
    """Return a source whose clock shows *times* one after the other, and then stands still."""
    left = list(times)
    return IdSource(lambda: left.pop(0) if len(left) > 1 else left[0], random_bits)


def drawn(source: IdSource, count: int) -> list[UUID]:
    return [source.next() for _ in range(count)]


def timestamp(made: UUID) -> int:
    return made.int >> 80


def strictly_growing(ids: Iterable[UUID]) -> bool:
    return all(one < other for one, other in pairwise(ids))


def test_the_example_of_rfc_9562_comes_out() -> None:
    randomness = 0xCC3 << 62 | 0x18C4DC0C0C07398F

    assert uuid7(0x017F22E279B0, randomness) == UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")


@given(milliseconds=MILLISECONDS, randomness=RANDOMNESS)
def test_an_id_is_of_version_7_and_of_the_rfc_variant(milliseconds: int, randomness: int) -> None:
    made = uuid7(milliseconds, randomness)

    assert (made.version, made.variant) == (7, uuid.RFC_4122)


@given(milliseconds=MILLISECONDS, randomness=RANDOMNESS)
def test_an_id_keeps_every_bit_it_was_made_of(milliseconds: int, randomness: int) -> None:
    made = uuid7(milliseconds, randomness).int

    assert made >> 80 == milliseconds
    assert (made >> 64 & 0xFFF) << 62 | made & (2**62 - 1) == randomness


def test_a_time_beyond_48_bits_begins_again() -> None:
    assert uuid7(2**48 + 5, 7) == uuid7(5, 7)


@given(one=st.tuples(MILLISECONDS, RANDOMNESS), other=st.tuples(MILLISECONDS, RANDOMNESS))
def test_ids_sort_by_time_and_then_by_randomness(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (uuid7(*one) < uuid7(*other)) == (one < other)


def test_the_text_of_ids_sorts_like_the_ids() -> None:
    made = [str(item) for item in drawn(source_at(NOW, NOW, NOW + 1, NOW + 300), 1_000)]

    assert made == sorted(made)


def test_an_id_carries_the_time_of_the_clock() -> None:
    assert timestamp(source_at(NOW).next()) == NOW


def test_ids_grow_within_a_millisecond() -> None:
    made = drawn(source_at(NOW), 10_000)

    assert strictly_growing(made)
    assert {timestamp(item) for item in made} == {NOW}


def test_ids_grow_within_a_millisecond_even_from_the_highest_draw() -> None:
    source = IdSource(lambda: NOW, lambda count: 2**count - 1)

    made = drawn(source, 10_000)

    assert strictly_growing(made)
    assert {timestamp(item) for item in made} == {NOW}


def test_ids_grow_when_the_clock_goes_back() -> None:
    made = drawn(source_at(NOW, NOW - 1, NOW - 3_600_000, 0, -1, NOW - 5), 1_000)

    assert strictly_growing(made)


def test_ids_follow_the_clock_again_once_it_has_caught_up() -> None:
    *_, last = drawn(source_at(NOW, NOW - 50, NOW + 1), 3)

    assert timestamp(last) == NOW + 1


@given(times=st.lists(st.integers(min_value=-(10**6), max_value=2**47), min_size=1, max_size=50))
def test_ids_grow_whatever_the_clock_does(times: list[int]) -> None:
    assert strictly_growing(drawn(source_at(*times), len(times) + 5))


def test_a_hundred_thousand_ids_are_unique() -> None:
    assert len(set(drawn(source_at(NOW), 100_000))) == 100_000


@pytest.mark.parametrize("now", [NOW, 0, -5_000])
def test_two_sources_on_the_same_clock_do_not_collide(now: int) -> None:
    one, other = drawn(source_at(now), 5_000), drawn(source_at(now), 5_000)

    assert set(one).isdisjoint(other)


def test_two_copies_of_a_source_as_a_fork_makes_them_do_not_collide() -> None:
    parent = source_at(NOW)
    parent.next()
    child = copy.copy(parent)

    assert set(drawn(parent, 5_000)).isdisjoint(drawn(child, 5_000))


def test_an_id_says_when_it_was_made() -> None:
    moment = datetime(2026, 11, 15, 9, 30, 0, 123_000, tzinfo=UTC)

    assert made_at(first_id(moment)) == moment
    assert made_at(uuid7(0, 2**74 - 1)) == datetime(1970, 1, 1, tzinfo=UTC)
    assert first_id(moment) <= uuid7((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1), 5)
