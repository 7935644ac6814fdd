"""Values over time as bars and a line, as wide as fits: places along time are in percent, and heights in pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import floor, log10
from typing import NamedTuple

from mainspring.model.span import span

TALL = 120
"""How high the largest value is that has room."""

_GAP = 0.2
"""How much of its place a bar leaves free."""

_LEAST = 2.0
"""How high anything but nothing is at least, so that one failure among thousands is seen."""

_STEPS = (1, 2, 4, 6, 8, 10)
_LENGTHS = (
    *(timedelta(milliseconds=size) for size in (2, 4, 10, 20, 40, 100, 200, 400)),
    *(timedelta(seconds=size) for size in (1, 2, 4, 10, 20, 60)),
    *(timedelta(minutes=size) for size in (2, 4, 10, 20, 60)),
    *(timedelta(hours=size) for size in (2, 4, 12, 24)),
)


class Axis(NamedTuple):
    """What the top stands for, and what is written there, half way down, and at the bottom."""

    top: float
    labels: tuple[str, str, str]


class Bar(NamedTuple):
    """Where it is, how large, and what of."""

    left: float
    width: float
    top: float
    height: float
    looks: str


def count_axis(most: float) -> Axis:
    """Return an axis of numbers with room for *most*, of which the half is a whole number too."""
    size = 10 ** max(0, floor(log10(most))) if most > 0 else 1
    top = next(step * size for step in _STEPS if max(most, 2) <= step * size)
    return Axis(top, (_brief(top), _brief(top // 2), "0"))


def time_axis(most: float) -> Axis:
    """Return an axis of lengths of time with room for *most* seconds."""
    top = next((length for length in _LENGTHS if most <= length.total_seconds()), None)
    if top is None:
        day = timedelta(days=1)
        top = day * count_axis(most / day.total_seconds()).top
    return Axis(top.total_seconds(), (span(top), span(top / 2), "0"))


def stacked(series: Mapping[str, Sequence[float]], top: float) -> list[Bar]:
    """Return the bars of *series*, which are as long as each other, by how they look: the first is at the bottom."""
    made: list[Bar] = []
    for place, values in enumerate(zip(*series.values(), strict=True)):
        left, width = slot(place, len(next(iter(series.values()))))
        bottom = float(TALL)
        for looks, value in zip(series, values, strict=True):
            if value > 0:
                height = min(max(value / top * TALL, _LEAST), bottom)
                bottom -= height
                free = width * _GAP
                made.append(
                    Bar(round(left + free / 2, 3), round(width - free, 3), round(bottom, 1), round(height, 1), looks)
                )
    return made


def slot(place: int, places: int) -> tuple[float, float]:
    """Return where that begins which stands at *place*, and how wide it is."""
    return round(place * 100 / places, 3), round(100 / places, 3)


def line(values: Sequence[float | None], top: float) -> str:
    """Return the path through *values*, one unit apart, that leaves out those that are not known.

    One between two of these is a line of no length, which is drawn as a dot.
    """
    path, drawing = "", False
    for place, value in enumerate(values):
        if value is None:
            drawing = False
            continue
        at = f"{place + 0.5:g} {TALL - min(value / top, 1) * TALL:.1f}"
        path += f"L{at}" if drawing else f"M{at}h0"
        drawing = True
    return path


def _brief(number: float) -> str:
    """Return a number of an axis in as few characters as will do."""
    for size, name in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:g}{name}"
    return f"{number:g}"
