"""The switchboard: one thread for what comes in on sockets, and for what other threads want done."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator

import pytest

from mainspring.worker.executors import switchboard
from mainspring.worker.executors.switchboard import Switchboard


@pytest.fixture
def made() -> Iterator[Callable[[Callable[[], float]], Switchboard]]:
    """Start switchboards that end with the test."""
    boards: list[Switchboard] = []

    def make(turn: Callable[[], float]) -> Switchboard:
        boards.append(Switchboard("test", turn))
        boards[-1].start()
        return boards[-1]

    yield make
    for board in boards:
        board.tell(board.end)
        board.join(60)


def test_an_order_after_one_that_failed_is_carried_out(
    made: Callable[[Callable[[], float]], Switchboard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard, "_PAUSE_AFTER_ERROR", 0.0)
    turning, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def turn() -> float:
        turning.set()
        go_on.wait()
        return math.inf

    def fail() -> None:
        raise ValueError("of a test")

    board = made(turn)
    turning.wait()
    board.tell(fail)  # so that the bell has rung for both when the first fails
    board.tell(done.set)
    go_on.set()

    done.wait()
