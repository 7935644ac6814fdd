"""A place for every node of a graph: layers from left to right by what comes after what, and curves between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT = 180, 46
"""Of a node."""

_ACROSS, _DOWN = 44, 18
"""Between layers, and between the nodes of one."""

_LANE = 2
"""How high a place is that a curve takes on its way past a layer."""

_MARGIN = 8
_SWEEPS = 4


class Curve(NamedTuple):
    """From the right of one node to the left of another, as the path of an SVG."""

    source: int
    target: int
    path: str


class Drawing(NamedTuple):
    """Where the left upper corner of each node is, the curves, and how large all of it is."""

    corners: list[tuple[int, int]]
    curves: list[Curve]
    width: int
    height: int


_Spot = tuple[int, int]
"""A node, and a layer: its own, or one that curves from it pass."""


def lay_out(parents: Sequence[Sequence[int]]) -> Drawing:
    """Return where to draw nodes that come after these *parents* of theirs, which must stand before them."""
    layers = layers_of(parents)
    ranks = _ordered(parents, layers)
    heights = [sum(_high(spot, layers) for spot in rank) + _DOWN * (len(rank) - 1) for rank in ranks]
    tallest = max(heights, default=0)
    middles: dict[_Spot, float] = {}
    for rank, height in zip(ranks, heights, strict=True):
        top = _MARGIN + (tallest - height) / 2
        for spot in rank:
            middles[spot] = top + _high(spot, layers) / 2
            top += _high(spot, layers) + _DOWN
    corners = [(_left(layer), round(middles[node, layer] - HEIGHT / 2)) for node, layer in enumerate(layers)]
    curves = [
        Curve(parent, node, _path(parent, node, layers, middles)) for node, own in enumerate(parents) for parent in own
    ]
    width = _left(max(layers, default=0)) + WIDTH + _MARGIN
    return Drawing(corners, curves, width, round(tallest) + 2 * _MARGIN)


def layers_of(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return the layer of each node: one more than that of the last of its *parents*."""
    layers: list[int] = []
    for own in parents:
        layers.append(1 + max((layers[parent] for parent in own), default=-1))
    return layers


def _ordered(parents: Sequence[Sequence[int]], layers: Sequence[int]) -> list[list[_Spot]]:
    """Return what is in each layer from top to bottom: each near the middle of what it is joined to, so few cross."""
    ranks: list[list[_Spot]] = [[] for _ in range(max(layers, default=-1) + 1)]
    before: dict[_Spot, list[_Spot]] = {}
    after: dict[_Spot, list[_Spot]] = {}
    for spot, source in _joints(parents, layers):
        ranks[spot[1]].append(spot)
        before[spot] = source
        for one in source:
            after.setdefault(one, []).append(spot)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        order = ranks if forward else ranks[::-1]
        for fixed, rank in pairwise(order):
            _arrange(rank, fixed, before if forward else after)
    return ranks


def _joints(parents: Sequence[Sequence[int]], layers: Sequence[int]) -> list[tuple[_Spot, list[_Spot]]]:
    """Return all spots, and which of the layer before each is joined to.

    Curves from one node past a layer share a spot there: so a node that many wait for does not push all others away.
    """
    last: dict[int, int] = {}
    for node, own in enumerate(parents):
        for parent in own:
            last[parent] = max(last.get(parent, 0), layers[node] - 1)
    found: list[tuple[_Spot, list[_Spot]]] = []
    for node, own in enumerate(parents):
        found.append(((node, layers[node]), [(parent, layers[node] - 1) for parent in own]))
        passed = range(layers[node] + 1, last.get(node, 0) + 1)
        found += [((node, layer), [(node, layer - 1)]) for layer in passed]
    return found


def _arrange(rank: list[_Spot], fixed: Sequence[_Spot], joined: Mapping[_Spot, Sequence[_Spot]]) -> None:
    """Sort *rank* by where, on average, those of the *fixed* layer are that each spot is joined to."""
    places = {spot: (place + 0.5) / len(fixed) for place, spot in enumerate(fixed)}
    wanted = {spot: (place + 0.5) / len(rank) for place, spot in enumerate(rank)}
    for spot in rank:
        if others := joined.get(spot):
            wanted[spot] = sum(places[one] for one in others) / len(others)
    rank.sort(key=wanted.__getitem__)


def _path(parent: int, node: int, layers: Sequence[int], middles: Mapping[_Spot, float]) -> str:
    x, y = _left(layers[parent]) + WIDTH, middles[parent, layers[parent]]
    path = f"M{x} {y:.0f}"
    for layer in range(layers[parent] + 1, layers[node] + 1):
        own = layer == layers[node]
        left, middle = _left(layer), middles[node if own else parent, layer]
        bend = left - _ACROSS // 2
        path += f" C{bend} {y:.0f} {bend} {middle:.0f} {left} {middle:.0f}"
        if not own:
            path += f" H{left + WIDTH}"
        y = middle
    return path


def _high(spot: _Spot, layers: Sequence[int]) -> int:
    return HEIGHT if layers[spot[0]] == spot[1] else _LANE


def _left(layer: int) -> int:
    return _MARGIN + layer * (WIDTH + _ACROSS)
