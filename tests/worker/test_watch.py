"""Watch: attempts whose time is up are told so, again and again, and the watch itself waits for none of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import LeaseLost, TimeExpired
from mainspring.model.task import Task
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from mainspring.worker.held import Held
from mainspring.worker.session import WorkerSession
from mainspring.worker.watch import GRACE, Watch
from tests.support.factories import claimed_job, new_id

TASK = Task(name="greet", handler=print, timeout=timedelta(seconds=1))


class Rig:
    """A watch on the test's clock, over one attempt that takes note of what it is told."""

    def __init__(self, store: SqlStore, clock: SettableClock) -> None:
        self.clock = clock
        self.session = WorkerSession(store, clock, new_id, timedelta(seconds=60))
        self.session.open()
        self.abandoned: list[Held] = []
        self.watch = Watch(clock, self.session, self.abandoned.append)
        self.told: list[BaseException | None] = []
        self.held = Held(claimed_job(store), TASK)
        self.held.interrupt = self.told.append
        self.watch.begin(self.held)

    def look_after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.watch._look()


@pytest.fixture
def url(sqlite_url: str) -> str:
    """A SQLite file: nothing of this is about the database."""
    return sqlite_url


@pytest.fixture
def rig(store: SqlStore, clock: SettableClock) -> Rig:
    return Rig(store, clock)


def test_an_attempt_is_told_when_its_time_is_up_and_not_before(rig: Rig) -> None:
    rig.look_after(0.9)
    assert rig.told == []

    rig.look_after(0.1)
    assert [str(stop) for stop in rig.told] == ["the attempt took longer than its timeout of 1 s"]
    assert isinstance(rig.held.stop, TimeExpired)


def test_an_attempt_that_can_not_be_interrupted_now_is_told_again_in_a_turn_of_its_own(rig: Rig) -> None:
    """In the same turn, all other attempts would wait for it, and so would the end of the lease."""
    rig.look_after(1)
    assert len(rig.told) == 1

    rig.look_after(0.001)
    assert len(rig.told) == 1
    for _ in range(3):
        rig.look_after(0.01)

    assert len(rig.told) == 4
    assert len(set(rig.told)) == 1
    assert rig.abandoned == []


def test_an_attempt_that_goes_on_is_abandoned_once_when_the_grace_is_over(rig: Rig) -> None:
    rig.look_after(1)
    rig.look_after(GRACE - 0.1)
    assert rig.abandoned == []

    for _ in range(3):
        rig.look_after(GRACE)

    assert rig.abandoned == [rig.held]


def test_an_attempt_that_ends_when_it_is_told_is_watched_no_longer(rig: Rig) -> None:
    rig.held.interrupt = lambda stop: rig.watch.end(rig.held)

    for _ in range(3):
        rig.look_after(GRACE)

    assert rig.abandoned == []


def test_an_attempt_that_ends_while_another_is_abandoned_is_not(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Held(rig.held.job, TASK)
    rig.watch.begin(other)

    def abandon(held: Held) -> None:
        rig.abandoned.append(held)
        rig.watch.end(other)

    monkeypatch.setattr(rig.watch, "_abandon", abandon)

    for _ in range(3):
        rig.look_after(GRACE)

    assert rig.abandoned == [rig.held]


def test_all_that_is_held_is_told_when_the_lease_ends(rig: Rig) -> None:
    """Without a word from the heartbeat, which may be stuck in a call."""
    rig.session.holding.add([rig.held])
    rig.watch.end(rig.held)

    rig.look_after(60)

    assert isinstance(rig.held.stop, LeaseLost)
    assert not rig.session.alive


def test_a_session_that_was_begun_while_the_watch_saw_the_old_one_end_is_kept(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose = rig.session.lose

    def lose_late(*args: Any) -> None:
        rig.session.open()  # as the heartbeat does on its own thread
        lose(*args)

    monkeypatch.setattr(rig.session, "lose", lose_late)
    rig.watch.end(rig.held)
    rig.look_after(60)

    assert rig.session.alive
