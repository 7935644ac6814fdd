"""Where the nodes of a graph are drawn."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mainspring.web.graph import HEIGHT, WIDTH, Drawing, lay_out, layers_of

graphs = st.integers(0, 25).flatmap(
    lambda size: st.tuples(*(st.lists(st.integers(0, n - 1), unique=True) if n else st.just([]) for n in range(size)))
)


def crossings(drawing: Drawing) -> int:
    """Return how many curves between the same two layers cross."""
    lines = [(drawing.corners[one.source], drawing.corners[one.target]) for one in drawing.curves]
    pairs = [(one, other) for n, one in enumerate(lines) for other in lines[n + 1 :]]
    return sum(
        one[0][0] == other[0][0]
        and one[1][0] == other[1][0]
        and (one[0][1] - other[0][1]) * (one[1][1] - other[1][1]) < 0
        for one, other in pairs
    )


def test_nothing_takes_no_place() -> None:
    assert lay_out([]).corners == []


def test_a_node_is_in_the_layer_after_the_last_of_its_parents() -> None:
    assert layers_of([[], [0], [1], [0, 2], []]) == [0, 1, 2, 3, 0]


def test_what_is_in_a_line_is_drawn_in_a_line() -> None:
    drawing = lay_out([[], [0], [1]])

    assert len({y for _, y in drawing.corners}) == 1
    assert [x for x, _ in drawing.corners] == sorted(x for x, _ in drawing.corners)


def test_a_layer_is_ordered_so_that_curves_do_not_cross() -> None:
    assert crossings(lay_out([[], [], [], [2], [1], [0]])) == 0
    assert crossings(lay_out([[], [0], [0], [2], [1]])) == 0


def test_a_curve_past_a_layer_runs_beside_its_nodes() -> None:
    drawing = lay_out([[], [0], [0, 1]])
    _, top = drawing.corners[1]
    past = next(one for one in drawing.curves if (one.source, one.target) == (0, 2))
    heights = [int(y) for y in re.findall(r" (\d+) H", past.path)]

    assert len(heights) == 1
    assert not top <= heights[0] <= top + HEIGHT


def test_curves_from_one_node_past_a_layer_share_their_way() -> None:
    alone = lay_out([[], [0], [0, 1]])
    together = lay_out([[], [0], [0, 1], [0, 1], [0, 1]])

    assert {path.split(" H")[0] for _, _, path in together.curves if " H" in path} == {
        next(path for _, _, path in together.curves if " H" in path).split(" H")[0]
    }
    assert alone.width == together.width


@given(graphs)
def test_no_node_lies_on_another_and_all_are_inside(parents: tuple[list[int], ...]) -> None:
    drawing = lay_out(parents)

    for x, y in drawing.corners:
        assert 0 <= x <= drawing.width - WIDTH
        assert 0 <= y <= drawing.height - HEIGHT
    for x in {x for x, _ in drawing.corners}:
        column = sorted(y for left, y in drawing.corners if left == x)
        assert all(second - first >= HEIGHT for first, second in pairwise(column))
    assert len(drawing.curves) == sum(map(len, parents))
    for curve in drawing.curves:
        assert drawing.corners[curve.source][0] < drawing.corners[curve.target][0]
