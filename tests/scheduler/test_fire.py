"""The fire sweep: it sleeps until the next is due, hears of changes, and says what it can't fire."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.errors import StoreUnavailable
from mainspring.scheduler import Scheduler, sweep
from mainspring.scheduler.fire import Firer
from mainspring.store.database import DUE, FIRE
from mainspring.store.protocol import Fired
from mainspring.store.sql import SqlStore
from tests.support.waiting import until


class Watched:
    """A store whose fire answers as the test says."""

    def __init__(self, answer: Fired | Exception) -> None:
        self.answer = answer
        self.fired = 0

    def fire(self, node: str, new_ids: Callable[[int], list[UUID]]) -> Fired:
        self.fired += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def fired(**facts: Any) -> Fired:
    nothing: dict[str, Any] = {"schedules": 0, "jobs": 0, "next_due": None, "failed": {}}
    return Fired(**nothing | facts)


@pytest.mark.parametrize(
    ("answer", "pause"),
    [
        (fired(), sweep.POLL),
        (fired(next_due=timedelta(hours=1)), sweep.POLL),
        (fired(next_due=timedelta(seconds=0.25)), 0.25),
        (fired(schedules=1_000, next_due=timedelta(0)), 0.0),
    ],
)
def test_it_sleeps_until_the_next_is_due(answer: Fired, pause: float) -> None:
    store: Any = Watched(answer)

    assert Firer(store)() == pause


def test_a_database_that_is_away_is_tried_again_soon(caplog: pytest.LogCaptureFixture) -> None:
    store: Any = Watched(StoreUnavailable("gone fishing"))

    assert 0 < Firer(store)() < sweep.POLL
    assert "can't fire, trying on: gone fishing" in caplog.text


def test_what_can_not_be_fired_is_named(caplog: pytest.LogCaptureFixture) -> None:
    store: Any = Watched(fired(failed={"odd": "no such zone"}))

    Firer(store)()

    assert "can't fire schedule odd, trying again in a minute: no such zone" in caplog.text


def test_it_looks_at_once_when_it_hears_of_a_change(real_store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "POLL", 3600.0)
    looked = threading.Semaphore(0)
    look = real_store.fire

    def counted(*arguments: Any) -> Fired:
        answer = look(*arguments)
        looked.release()
        return answer

    monkeypatch.setattr(real_store, "fire", counted)
    scheduler = Scheduler(real_store)
    scheduler.start()
    until(lambda: looked.acquire(blocking=False))

    scheduler.heard({DUE})
    assert not looked.acquire(timeout=0.2)
    scheduler.heard({FIRE})
    assert looked.acquire(timeout=60)
    scheduler.close(10)
