"""Heartbeat: what a session learns from its beats, and does about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.errors import CancelRequested, LeaseLost, PauseRequested, StoreGone, StoreUnavailable
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Returned
from mainspring.model.task import Task
from mainspring.store.sql import SqlStore
from mainspring.tally import Tally
from mainspring.testing import SettableClock
from mainspring.worker.heartbeat import Heartbeat
from mainspring.worker.held import Held
from mainspring.worker.session import WorkerSession
from mainspring.worker.watch import Watch
from tests.support.factories import new_id, new_job, stored

LEASE = timedelta(seconds=15)
TASK = Task(name="greet", handler=print)


class Rig:
    """A session on the test's clock, with a heartbeat that beats when it is told to."""

    def __init__(self, store: SqlStore, clock: SettableClock) -> None:
        self.store, self.clock = store, clock
        self.session = WorkerSession(store, clock, new_id, LEASE)
        self.gone: list[StoreGone] = []
        self.heartbeat = Heartbeat(
            store, self.session, clock, renewed=lambda: None, gone=self.gone.append, tally=Tally()
        )
        self.watch = Watch(clock, self.session, abandon=lambda held: None)
        self.session.open()

    def beat(self) -> None:
        self.heartbeat._beat_patiently()

    def look(self) -> float:
        return self.watch._look()

    def hold(self) -> Held:
        self.store.enqueue([new_job()])
        (job,) = self.store.claim(self.session.id, "default", 1)
        held = Held(job, TASK)
        self.session.holding.add([held])
        return held


@pytest.fixture
def rig(store: SqlStore, clock: SettableClock) -> Rig:
    return Rig(store, clock)


def test_beats_keep_the_lease(rig: Rig) -> None:
    for _ in range(10):
        rig.clock.advance("5s")
        rig.beat()

    assert rig.session.alive
    assert rig.store.reap() == 0


def test_the_session_gives_up_before_its_lease_ends_in_the_database(rig: Rig) -> None:
    rig.clock.advance(13.6)

    assert not rig.session.alive
    assert rig.store.sessions()[0].alive


def test_a_beat_that_was_long_under_way_counts_from_when_it_was_sent(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    beat = rig.store.beat

    def slowly(session: UUID, holding: Mapping[UUID, int]) -> Any:
        found = beat(session, holding)
        rig.clock.advance("10s")
        return found

    monkeypatch.setattr(rig.store, "beat", slowly)
    rig.beat()
    rig.clock.advance("3.6s")

    assert not rig.session.alive


def test_a_wish_reaches_the_attempt(rig: Rig) -> None:
    cancelled, paused = rig.hold(), rig.hold()
    rig.store.cancel([cancelled.job.id])
    rig.store.pause([paused.job.id])

    rig.beat()

    assert isinstance(cancelled.stop, CancelRequested)
    assert isinstance(paused.stop, PauseRequested)


def test_a_pause_that_is_taken_back_in_time_changes_nothing(rig: Rig) -> None:
    held = rig.hold()
    rig.store.pause([held.job.id])
    rig.beat()
    rig.store.resume([held.job.id])

    rig.beat()

    assert held.stop is None


def test_a_job_that_is_no_longer_ours_is_told_so(rig: Rig) -> None:
    held = rig.hold()
    rig.store.settle([settle(held.job, Returned())])

    rig.beat()

    assert isinstance(held.stop, LeaseLost)


def test_a_job_that_was_claimed_without_our_hearing_of_it_goes_back_after_a_while(rig: Rig) -> None:
    rig.store.enqueue([new_job()])
    (job,) = rig.store.claim(rig.session.id, "default", 1)

    for _ in range(3):
        rig.beat()  # somebody cancels many jobs, and each wakes the heartbeat
    assert stored(rig.store, job.id).state is JobState.RUNNING
    for _ in range(4):
        rig.clock.advance("5s")
        rig.beat()

    assert stored(rig.store, job.id).state is JobState.READY


def test_a_job_that_was_only_on_its_way_is_left_alone(rig: Rig) -> None:
    rig.store.enqueue([new_job()])
    (job,) = rig.store.claim(rig.session.id, "default", 1)
    rig.beat()
    rig.session.holding.add([Held(job, TASK)])

    for _ in range(5):
        rig.clock.advance("5s")
        rig.beat()

    assert stored(rig.store, job.id).state is JobState.RUNNING


def test_a_session_that_was_given_up_for_dead_ends_its_attempts_and_begins_anew(rig: Rig) -> None:
    held, before = rig.hold(), rig.session.id
    rig.session._until = float("inf")  # it does not know yet
    rig.clock.advance("1m")
    rig.store.reap()

    rig.beat()

    assert isinstance(held.stop, LeaseLost)
    assert "the database had ended the lease" in str(held.stop)
    assert rig.session.alive
    assert rig.session.id != before


def cut_off(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no beat and no new session through from now on."""

    def fail(*_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(rig.store, "beat", fail)
    monkeypatch.setattr(rig.store, "open_session", fail)


def losses(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if message.startswith("lost the lease")]


def test_the_watch_ends_all_attempts_when_no_beat_gets_through(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    held = rig.hold()
    cut_off(rig, monkeypatch)
    assert rig.look() > 0
    assert held.stop is None
    for _ in range(3):
        rig.clock.advance("5s")
        rig.beat()

    rig.look()

    assert isinstance(held.stop, LeaseLost)
    assert not rig.session.alive


@pytest.mark.parametrize("first", [Rig.look, Rig.beat])
def test_a_lease_that_no_beat_could_renew_is_lost_once_for_want_of_an_answer(
    rig: Rig, first: Callable[[Rig], object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = rig.hold()
    cut_off(rig, monkeypatch)
    for _ in range(2):
        rig.clock.advance("5s")
        rig.beat()
    rig.clock.advance("5s")

    first(rig)
    for _ in range(3):  # the handler has not ended, and there is no new session
        rig.beat()
        rig.look()

    assert losses(caplog) == ["lost the lease with 1 job in hand: the database did not answer in time"]
    assert str(held.stop).endswith("another worker's by now: the database did not answer in time")


@pytest.mark.parametrize("first", [Rig.look, Rig.beat])
def test_a_lease_that_nobody_tried_to_renew_is_lost_once_because_the_process_stood_still(
    rig: Rig, first: Callable[[Rig], object], caplog: pytest.LogCaptureFixture
) -> None:
    held = [rig.hold(), rig.hold()]
    rig.beat()
    rig.clock.advance("1m")

    first(rig)
    rig.beat()
    rig.look()

    assert losses(caplog) == ["lost the lease with 2 jobs in hand: this process had stood still"]
    assert all(isinstance(one.stop, LeaseLost) for one in held)
    assert rig.session.alive


def test_a_lease_that_ends_while_a_beat_is_under_way_is_lost_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig.hold()
    beat = rig.store.beat

    def late(*args: Any) -> Any:
        rig.clock.advance("1m")
        rig.look()
        return beat(*args)

    monkeypatch.setattr(rig.store, "beat", late)
    rig.beat()

    assert losses(caplog) == ["lost the lease with 1 job in hand: the database did not answer in time"]
    assert rig.session.alive
