"""Identifiers that sort by the time they were made (UUID version 7, RFC 9562)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from uuid import UUID

import msgspec

_RANDOM_BITS = 74
_LOW_BITS = 62
_LOW = (1 << _LOW_BITS) - 1
_STEP_BITS = 48
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def uuid7(milliseconds: int, randomness: int) -> UUID:
    """Return the UUIDv7 of *milliseconds* since 1970 and 74 bits of *randomness*."""
    return UUID(_text(milliseconds << _RANDOM_BITS | randomness))


def first_id(moment: datetime) -> UUID:
    """Return an id that is smaller than that of any job made at *moment* or later."""
    return uuid7(max(0, (moment - _EPOCH) // timedelta(milliseconds=1)), 0)


def made_at(made: UUID) -> datetime:
    """Return when an id was made, by the clock of whoever made it."""
    return _EPOCH + (made.int >> 80) * timedelta(milliseconds=1)


def _text(number: int) -> str:
    """Return the UUIDv7 whose 122 bits beside version and variant are *number*, as 32 digits."""
    high = number >> _LOW_BITS
    return f"{(high >> 12 & 0xFFFF_FFFF_FFFF) << 16 | 0x7000 | high & 0xFFF:016x}{1 << 63 | number & _LOW:016x}"


def _number(made: UUID) -> int:
    """Return the 122 bits of which *made* consists beside version and variant."""
    high, low = made.int >> 64, made.int & _LOW
    return ((high >> 16) << 12 | high & 0xFFF) << _LOW_BITS | low


class IdSource:
    """Makes ids that grow from call to call, even when the clock stands still or goes back.

    A batch of jobs made in one millisecond keeps its order in every listing. The steps within a millisecond are
    random, so that two copies of a source, as a fork makes them, part at once. Not locked: two threads that share
    a source must take turns, or each have their own.
    """

    def __init__(self, milliseconds: Callable[[], int], random_bits: Callable[[int], int]) -> None:
        self._milliseconds = milliseconds
        self._random_bits = random_bits
        self._last = random_bits(_RANDOM_BITS - 1)  # milliseconds and randomness, as one number

    def next(self) -> UUID:
        """Return a new id, larger than all before it."""
        (made,) = self.many(1)
        return made

    def many(self, count: int, after: UUID | None = None) -> list[UUID]:
        """Return *count* new ids, each larger than all before it, from one look at the clock; and larger than *after*.

        That may come from a machine whose clock is ahead of ours; the ids after these are not.
        """
        now = self._milliseconds()
        if now > self._last >> _RANDOM_BITS:
            # The top bit starts clear, which leaves room for more steps than a millisecond has time for.
            self._last = now << _RANDOM_BITS | self._random_bits(_RANDOM_BITS - 1)
        steps = memoryview(self._random_bits(64 * count).to_bytes(8 * count)).cast("Q")
        first = self._last if after is None else max(self._last, _number(after))
        numbers = list(accumulate((1 + (step >> 64 - _STEP_BITS) for step in steps), initial=first))
        if first == self._last:
            self._last = numbers[-1]
        # All at once, because one by one Python would make each of them.
        return msgspec.convert([_text(number) for number in numbers[1:]], list[UUID])
