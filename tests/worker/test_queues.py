"""Queues: busy ones share a worker by weight, and no news is forgotten."""

from __future__ import annotations

from collections import Counter

import pytest

from mainspring.errors import InvalidValue
from mainspring.worker.queues import Queues


def served(queues: Queues, room: int, rounds: int) -> Counter[str]:
    """Return how many jobs each queue gets when all have more than enough."""
    got: Counter[str] = Counter()
    for _ in range(rounds):
        turn = queues.turn(room)
        assert turn is not None
        name, asked = turn
        queues.got(name, asked, asked)
        got[name] += asked
    return got


@pytest.mark.parametrize("room", [1, 3, 100])
def test_busy_queues_are_served_by_weight(room: int) -> None:
    got = served(Queues({"mail": 3, "default": 1}), room, 400)

    assert got["mail"] / got["default"] == pytest.approx(3, rel=0.1)


def test_a_queue_alone_gets_all_the_room() -> None:
    assert Queues({"default": 1}).turn(100) == ("default", 100)


def test_an_empty_queue_is_left_alone_until_there_is_news() -> None:
    queues = Queues({"default": 1})
    queues.turn(10)
    queues.got("default", 10, 3)

    assert queues.turn(10) is None
    queues.heard({"default", "unknown"})
    assert queues.turn(10) == ("default", 10)


def test_news_that_come_during_a_claim_are_not_forgotten() -> None:
    queues = Queues({"default": 1})
    queues.turn(10)
    queues.heard({"default"})
    queues.got("default", 10, 0)

    assert queues.turn(10) == ("default", 10)


def test_a_queue_that_was_empty_has_no_claim_to_what_it_did_not_need() -> None:
    queues = Queues({"mail": 1, "default": 1})
    for _ in range(1_000):
        turn = queues.turn(10)
        assert turn is not None
        name, asked = turn
        queues.got(name, asked, asked if name == "mail" else 0)
    queues.heard({"default"})

    got = served(queues, 10, 100)

    assert got["mail"] / got["default"] == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("weight", [0, -1, 1.5, True, "3"])
def test_a_weight_that_makes_no_sense_is_refused(weight: int) -> None:
    with pytest.raises(InvalidValue, match="the weight of queue 'mail' to be a whole number from 1 on"):
        Queues({"mail": weight})
