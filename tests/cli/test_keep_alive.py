"""When a worker that died is started again."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.cli import supervisor as module
from mainspring.cli.supervisor import HEALTHY, keep_alive
from tests.cli.stopping import Stopping


def pauses_after(lives: list[float], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long the keeper waits after workers that lived so many seconds each."""
    now = 0.0
    left = list(lives)

    class Clock:
        def steady(self) -> float:
            return now

    def one_life(_: Any) -> str:
        nonlocal now
        now += left.pop(0)
        return "it died"

    class Fake:
        stopping = Stopping(len(lives))

    monkeypatch.setattr(module, "SystemClock", Clock)
    monkeypatch.setattr(module, "_one_life", one_life)
    fake: Any = Fake()
    keep_alive(fake)
    return Fake.stopping.pauses


def test_the_pause_before_a_new_start_doubles_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses_after([1.0] * 9, monkeypatch) == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_a_worker_that_lived_long_is_started_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses_after([1.0, 1.0, HEALTHY, 1.0], monkeypatch) == [0.5, 1, 0.5, 1]


def test_a_program_that_could_not_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        stopping = Stopping(2)

        def spawn(self) -> None:
            raise OSError(11, "Resource temporarily unavailable")

    fake: Any = Fake()
    keep_alive(fake)

    assert Fake.stopping.pauses == [0.5, 1]
