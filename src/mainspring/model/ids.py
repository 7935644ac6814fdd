"""Identifiers that sort by the time they were made (UUID version 7, RFC 9562)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

_RANDOM_BITS = 74
_STEP_BYTES = 6
_MILLISECOND_MASK = (1 << 48) - 1


def uuid7(milliseconds: int, randomness: int) -> UUID:
    """Return the UUIDv7 of *milliseconds* since 1970 and 74 bits of *randomness*."""
    high, low = randomness >> 62, randomness & ((1 << 62) - 1)
    return UUID(int=(milliseconds & _MILLISECOND_MASK) << 80 | 7 << 76 | (high & 0xFFF) << 64 | 0b10 << 62 | low)


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

    def many(self, count: int) -> list[UUID]:
        """Return *count* new ids, each larger than all before it, from one look at the clock."""
        now = self._milliseconds()
        if now > self._last >> _RANDOM_BITS:
            # The top bit starts clear, which leaves room for more steps than a millisecond has time for.
            self._last = now << _RANDOM_BITS | self._random_bits(_RANDOM_BITS - 1)
        chance = self._random_bits(8 * _STEP_BYTES * count).to_bytes(_STEP_BYTES * count)
        made: list[UUID] = []
        for start in range(0, len(chance), _STEP_BYTES):
            self._last += 1 + int.from_bytes(chance[start : start + _STEP_BYTES])
            made.append(uuid7(*divmod(self._last, 1 << _RANDOM_BITS)))
        return made
