"""The arithmetic of turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.fairness import FIRST, TURN, Line, check_weight, costs, step, turn_of, turns

A, B = Line("mail", 5, "send", "a"), Line("mail", 5, "send", "b")
CLASS = 2**53


def test_jobs_of_a_line_follow_each_other_by_their_weight() -> None:
    standing = [("a1", A, 1), ("b1", B, 2), ("a2", A, 1), ("b2", B, 2), ("b3", B, 1)]

    given = turns(standing, {A: FIRST, B: FIRST + 10})

    assert given == {
        "a1": FIRST,
        "a2": FIRST + TURN,
        "b1": FIRST + 10,
        "b2": FIRST + 10 + TURN // 2,
        "b3": FIRST + 10 + TURN,
    }


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 100))))
def test_a_line_moves_on_by_what_its_jobs_cost(standing: list[tuple[Line, int]]) -> None:
    begins = {A: FIRST, B: FIRST}

    given = turns([(number, line, weight) for number, (line, weight) in enumerate(standing)], begins)

    for line, cost in costs(standing).items():
        last = max(number for number, (its, _) in enumerate(standing) if its == line)
        assert given[last] + step(standing[last][1]) == begins[line] + cost


def test_a_rank_says_whether_it_holds_a_turn() -> None:
    assert turn_of(96 * CLASS + FIRST) == FIRST
    assert turn_of(96 * CLASS + FIRST + 7 * TURN) == FIRST + 7 * TURN
    assert turn_of(96 * CLASS + FIRST - 1) is None  # a due time
    assert turn_of(FIRST + 1) is None  # of a queue that ages its jobs
    assert turn_of(-5) is None


@pytest.mark.parametrize("weight", [0, -3, 101, True, 1.0, "1", None])
def test_a_weight_is_a_whole_number_up_to_a_hundred(weight: object) -> None:
    with pytest.raises(InvalidValue, match="expected weight to be a whole number from 1 to 100, got"):
        check_weight(weight)  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [1, 7, 100])
def test_every_weight_moves_a_line_on(weight: int) -> None:
    check_weight(weight)
    assert step(weight) > 0
