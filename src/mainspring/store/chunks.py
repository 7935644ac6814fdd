"""Lists that are too long for one statement, in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

MOST = 5_000
MOST_CHARACTERS = 4_000_000
"""Items, and characters, in one statement: enough to make a round trip cheap, few enough to stay far from its deadline
and from what a database takes in one piece."""


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield *items* in pieces of at most *size*."""
    for first in range(0, len(items), size):
        yield items[first : first + size]


def chunks(items: Sequence[T], characters: Callable[[T], int]) -> list[Sequence[T]]:
    """Return *items* in pieces for one statement each; *characters* says how large an item is."""
    if len(items) <= MOST and sum(map(characters, items)) <= MOST_CHARACTERS:
        return [items]
    pieces: list[Sequence[T]] = []
    piece: list[T] = []
    room = MOST_CHARACTERS
    for item in items:
        if piece and (len(piece) == MOST or characters(item) > room):
            pieces.append(piece)
            piece, room = [], MOST_CHARACTERS
        piece.append(item)
        room -= characters(item)
    return [*pieces, piece]
