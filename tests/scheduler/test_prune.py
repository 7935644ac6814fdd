"""The loop that prunes: what is old goes by itself, on any node, and not on all of them at once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import cast
from uuid import UUID

import pytest

from mainspring.errors import StoreUnavailable
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.scheduler import Scheduler
from mainspring.scheduler.prune import EVERY, FIRST, RETENTION, Pruner
from mainspring.store import Store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job
from tests.support.waiting import until


class FakeStore:
    """Only prunes, as it is told to."""

    def __init__(self, *answers: Callable[[], int]) -> None:
        self._answers = list(answers)
        self.ages: list[timedelta] = []

    def prune(self, age: timedelta) -> int:
        self.ages.append(age)
        return self._answers.pop(0)() if self._answers else 0


def pruner(store: FakeStore, age: timedelta = RETENTION) -> Pruner:
    return Pruner(cast("Store", store), age)


def away() -> int:
    raise StoreUnavailable("away")


def finished_job(store: SqlStore) -> UUID:
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1"))])
    return job.id


@pytest.mark.parametrize("settings", [{}, {"retention": timedelta(days=30)}, {"retention": timedelta(days=3)}])
def test_the_scheduler_removes_what_is_older_than_the_retention(
    settings: dict[str, timedelta], store: SqlStore, clock: SettableClock
) -> None:
    unfinished = new_job(delay=timedelta(days=900))
    store.enqueue([unfinished])
    old = finished_job(store)
    clock.advance("2d")
    young = finished_job(store)
    clock.advance(settings.get("retention", RETENTION) - timedelta(days=1))
    scheduler = Scheduler(store, **settings)

    def gone() -> bool:
        scheduler._prune.wake()  # rather than to wait for its moment
        return not store.get([old])

    scheduler.start()
    until(gone)
    scheduler.close(timeout=60)

    assert set(store.get([unfinished.id, old, young])) == {unfinished.id, young}


def test_what_was_removed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore(lambda: 0, lambda: 7, lambda: 1)
    prune = pruner(store, timedelta(days=3))

    with caplog.at_level(logging.INFO):
        for _ in range(4):
            prune()

    assert store.ages == [timedelta(days=3)] * 3
    assert caplog.messages == [f"pruned {jobs} that finished long enough ago" for jobs in ("7 jobs", "1 job")]


def test_nodes_that_start_together_prune_at_moments_of_their_own() -> None:
    stores = [FakeStore() for _ in range(50)]
    pruners = [pruner(store) for store in stores]

    first, second = [prune() for prune in pruners], [prune() for prune in pruners]

    assert len(set(first)) > 1
    assert len(set(second)) > 1
    assert 0 <= min(first) < max(first) <= FIRST
    assert EVERY / 2 <= min(second) < max(second) <= EVERY * 1.5
    assert [store.ages for store in stores] == [[RETENTION]] * 50


def test_a_database_that_is_away_is_asked_again_soon_but_not_at_once(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore(away, away)
    prune = pruner(store)
    prune()

    pauses = [prune(), prune()]

    assert all(1 < pause < EVERY / 2 for pause in pauses)
    assert caplog.messages == ["can't prune, trying on: away"] * 2
    assert prune() >= EVERY / 2
