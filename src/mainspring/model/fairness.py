"""Fairness: jobs that have a fair key take turns, so that nobody's flood keeps the others waiting.

The jobs of a task, in one queue and of one priority, stand in lines, one for each fair key. A job's *turn* is a number
that is told once, when it becomes ready, and takes the place of its due time in its rank. So a claim, which goes by
rank, knows nothing of all this. (This is start-time fair queueing, as routers do it.)

A turn is one more than that of the job before it in its line, or its part of one if that weighs more; but no line
begins further back than where the turns have got to. Whoever was away has no claim to what he did not need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

T = TypeVar("T")

TURN = 1_000
"""The step from one turn to the next, which a weight divides. With a single line and 10,000 jobs a second, the numbers
that are there for turns last for 14 years."""

FIRST = 2**52
"""Turns begin here, beyond any due time before the year 2112: jobs without a fair key go first, by their due time."""

_CLASS_BITS = 53
_HEAVIEST = 100


class Line(NamedTuple):
    """Whose jobs stand in one line."""

    queue: str
    priority: int
    task: str
    fair: str


def step(weight: int) -> int:
    """Return how far one job of this weight moves its line on."""
    return TURN // weight


def costs(standing: Iterable[tuple[Line, int]]) -> dict[Line, int]:
    """Return by how much each line moves on for the jobs that join it, given with their weights."""
    total: dict[Line, int] = {}
    for line, weight in standing:
        total[line] = total.get(line, 0) + step(weight)
    return total


def turns(standing: Iterable[tuple[T, Line, int]], begins: Mapping[Line, int]) -> dict[T, int]:
    """Return the turn of each job, given in order with its line and weight; *begins* is that of the first in each."""
    following = dict(begins)
    given: dict[T, int] = {}
    for job, line, weight in standing:
        given[job] = following[line]
        following[line] += step(weight)
    return given


def turn_of(rank: int) -> int | None:
    """Return the turn that *rank* holds; None where it goes by due time, or by ageing."""
    within = rank & (2**_CLASS_BITS - 1)
    return within if rank >= 2**_CLASS_BITS and within >= FIRST else None


def check_weight(weight: int) -> None:
    """Refuse a weight that divides no turn."""
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= _HEAVIEST:
        raise InvalidValue(f"expected weight to be a whole number from 1 to {_HEAVIEST}, got: {shortened(weight)}")
