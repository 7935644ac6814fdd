"""Settler: groups that form by themselves, written until the database has them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import cast
from uuid import UUID, uuid4

import pytest

from mainspring.clock import SystemClock
from mainspring.errors import StoreError, StoreFull, StoreUnavailable
from mainspring.model.job import JobState
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import Settlement, settle
from mainspring.model.outcome import Succeeded
from mainspring.model.task import Task
from mainspring.store import Store
from mainspring.store.sql import SqlStore
from mainspring.tally import Tally
from mainspring.worker.held import Held, Holding
from mainspring.worker.settle import BATCH, Settler
from tests.support.factories import new_jobs, opened_session
from tests.support.waiting import until

TASK = Task(name="greet", handler=print)


class Gate:
    """A store whose settles wait until they are let through, or fail as they are told to."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.batches: list[int] = []
        self.open = threading.Event()
        self.errors: list[StoreError] = []

    def settle(self, settlements: Sequence[Settlement]) -> set[UUID]:
        self.batches.append(len(settlements))
        self.open.wait()
        if self.errors:
            raise self.errors.pop(0)
        return self._store.settle(settlements)

    def record(self, lines: Sequence[LogLine], progress: Sequence[Progress]) -> set[UUID]:
        raise StoreError("it has no room for words")


@pytest.fixture
def gate(real_store: SqlStore) -> Gate:
    return Gate(real_store)


@pytest.fixture
def holding() -> Holding:
    return Holding()


@pytest.fixture
def settler(gate: Gate, holding: Holding) -> Settler:
    made = Settler(cast("Store", gate), holding, SystemClock(), Tally())
    made.loop.start()
    return made


def claimed(store: SqlStore, holding: Holding, count: int) -> list[Held]:
    store.enqueue(new_jobs(count))
    taken = [Held(job, TASK) for job in store.claim(opened_session(store), "default", count)]
    holding.add(taken)
    return taken


def put(settler: Settler, held: Held, result: str = "1") -> None:
    settler.put(held, settle(held.job, Succeeded(result)))


def test_one_goes_out_at_once_and_what_ends_meanwhile_goes_together(
    real_store: SqlStore, gate: Gate, holding: Holding, settler: Settler
) -> None:
    first, *others = claimed(real_store, holding, BATCH + 101)
    put(settler, first)
    until(lambda: gate.batches == [1])
    for held in others:
        put(settler, held)
    gate.open.set()

    assert settler.finish(60)

    assert gate.batches == [1, BATCH, 100]
    assert real_store.counts() == {}
    assert len(holding.all()) == 0


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreFull("full")])
def test_what_can_not_be_written_now_is_written_later(
    real_store: SqlStore, gate: Gate, holding: Holding, settler: Settler, error: StoreError
) -> None:
    gate.errors = [error] * 3
    gate.open.set()
    (held,) = claimed(real_store, holding, 1)

    put(settler, held)

    assert settler.finish(60)
    assert gate.batches == [1, 1, 1, 1]
    assert real_store.counts() == {}


def test_one_that_can_not_be_stored_does_not_keep_the_others_from_it(
    real_store: SqlStore, gate: Gate, holding: Holding, settler: Settler
) -> None:
    first, bad, good = claimed(real_store, holding, 3)
    put(settler, first)
    until(lambda: gate.batches == [1])
    gate.errors = []
    for held in (bad, good):
        put(settler, held)
    until(lambda: len(gate.batches) == 1)

    def settle_all_but_bad(settlements: Sequence[Settlement]) -> set[UUID]:
        if any(settlement.job_id == bad.job.id and settlement.failure is None for settlement in settlements):
            raise StoreError("no such thing")
        return real_store.settle(settlements)

    gate.settle = settle_all_but_bad  # type: ignore[method-assign]
    gate.open.set()

    assert settler.finish(60)
    states = {job_id: job.state for job_id, job in real_store.get([bad.job.id, good.job.id]).items()}
    assert states == {bad.job.id: JobState.FAILED, good.job.id: JobState.SUCCEEDED}


def test_what_can_not_be_counted_is_settled_all_the_same(
    real_store: SqlStore,
    gate: Gate,
    holding: Holding,
    settler: Settler,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("mainspring.worker.count._endings", lambda batch: 1 / 0)
    gate.open.set()
    for held in claimed(real_store, holding, 2):
        put(settler, held)

    assert settler.finish(60)
    assert {record.message for record in caplog.records} <= {
        "1 settled job could not be counted",
        "2 settled jobs could not be counted",
    }
    assert real_store.counts() == {}


def test_words_that_can_not_be_stored_are_given_up_and_mentioned(
    settler: Settler, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        settler.record(LogLine(job_id=uuid4(), fence=1, number=number, level="info", message="hello"))
        settler.flush()

    assert caplog.messages == ["what 1 job logged can't be stored: it has no room for words"] * 2


def test_a_stale_settlement_is_dropped(real_store: SqlStore, gate: Gate, holding: Holding, settler: Settler) -> None:
    gate.open.set()
    (held,) = claimed(real_store, holding, 1)
    real_store.settle([settle(held.job, Succeeded("1"))])

    put(settler, held, "2")

    assert settler.finish(60)
    (job,) = real_store.page()
    assert job.result == "1"
    assert len(holding.all()) == 0


def test_a_worker_that_stops_while_the_database_is_away_does_not_wait_for_ever(
    real_store: SqlStore, gate: Gate, holding: Holding, settler: Settler
) -> None:
    gate.errors = [StoreUnavailable("away")] * 1_000
    gate.open.set()
    (held,) = claimed(real_store, holding, 1)
    put(settler, held)

    assert not settler.finish(0.2)
