"""Ageing: where a queue has it on, no job starves, however many more urgent ones come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.model.failure import Failure
from mainspring.model.job import NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Returned
from mainspring.model.retry import Retry
from mainspring.store import open_store, queues
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session

MINUTE = timedelta(minutes=1)
AGEING = 10 * MINUTE
SOON = timedelta(microseconds=1)


def order(store: SqlStore, queue: str = "default") -> list[UUID]:
    """Return all that is ready, in the order in which it would be claimed, and leave it so."""
    session = opened_session(store)
    claimed = [job.id for job in store.claim(session, queue, 10_000)]
    jobs = store.get(claimed)
    store.settle([settle(jobs[job_id], Returned()) for job_id in claimed])
    return claimed


def enqueued(store: SqlStore, clock: SettableClock, *moments: tuple[timedelta, int]) -> list[NewJob]:
    """Enqueue a job of each priority at its moment from now on."""
    jobs, begun = [], clock.now()
    for moment, priority in moments:
        clock.advance(begun + moment - clock.now())
        jobs.append(new_job(priority=priority))
        store.enqueue(jobs[-1:])
    return jobs


def test_a_point_of_priority_is_worth_so_much_waiting_time(store: SqlStore, clock: SettableClock) -> None:
    store.set_ageing("default", AGEING)
    old, sooner, later = enqueued(store, clock, (0 * MINUTE, 5), (2 * AGEING - SOON, 7), (2 * AGEING + SOON, 7))

    assert order(store) == [sooner.id, old.id, later.id]


def test_without_ageing_the_more_urgent_goes_first_however_long_others_wait(
    store: SqlStore, clock: SettableClock
) -> None:
    old, urgent = enqueued(store, clock, (0 * MINUTE, 5), (10_000 * MINUTE, 6))

    assert order(store) == [urgent.id, old.id]


def test_a_flood_of_urgent_jobs_delays_another_no_longer_than_its_ageing_says(
    store: SqlStore, clock: SettableClock
) -> None:
    """One more is enqueued than is taken, minute by minute: without ageing the low one would wait for ever."""
    store.set_ageing("default", MINUTE)
    low = new_job(priority=1)
    store.enqueue([low])
    session = opened_session(store, lease=timedelta(days=1))
    waited = 0
    while True:
        store.enqueue(new_jobs(3, priority=11))
        if low.id in [job.id for job in store.claim(session, "default", 2)]:
            break
        clock.advance(MINUTE)
        waited += 1
    # Those of the first ten minutes go before it, three a minute, two of which are taken each minute.
    assert waited <= 15


@settings(max_examples=20)
@given(given_jobs=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 20)), min_size=2, max_size=30))
def test_no_job_waits_for_one_that_came_more_than_its_advantage_later(
    given_jobs: list[tuple[int, int]], sqlite_agers: SqlStore, ager_clock: SettableClock
) -> None:
    queue = f"q{ager_clock.now().timestamp():.0f}"
    sqlite_agers.set_ageing(queue, MINUTE)
    facts: dict[UUID, tuple[timedelta, int]] = {}
    begun = ager_clock.now()
    for pause, priority in given_jobs:
        ager_clock.advance(timedelta(seconds=pause + 1))
        job = new_job(priority=priority, queue=queue)
        sqlite_agers.enqueue([job])
        facts[job.id] = (ager_clock.now() - begun, priority)
    claimed = order(sqlite_agers, queue)
    ager_clock.advance("1h")

    for place, after in enumerate(claimed):
        for before in claimed[:place]:
            (came, q), (waiting, p) = facts[before], facts[after]
            assert came - waiting <= (q - p) * MINUTE


@pytest.fixture(scope="module")
def ager_clock() -> SettableClock:
    return SettableClock()


@pytest.fixture(scope="module")
def sqlite_agers(tmp_path_factory: pytest.TempPathFactory, ager_clock: SettableClock) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('ageing') / 'm.db'}?synchronous=normal", clock=ager_clock)
    yield store
    store.close()


def test_switching_it_ranks_what_waits_anew_and_back(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "RERANK_BATCH", 3)
    together = new_jobs(7)
    store.enqueue(together)
    clock.advance(AGEING + MINUTE)  # a place in a batch counts as a microsecond
    urgent = new_job(priority=6)
    other = [new_job(queue="other"), new_job(queue="other", priority=9)]
    store.enqueue([urgent, *other])
    strict = [urgent.id, *(job.id for job in together)]
    aged = [*(job.id for job in together), urgent.id]

    assert order(store) == strict
    store.set_ageing("default", AGEING)
    assert order(store) == aged  # those that were enqueued together keep their order
    store.set_ageing("default", 2 * AGEING)
    assert order(store) == strict
    store.set_ageing("default", AGEING)
    assert order(store) == aged
    store.set_ageing("default", None)
    assert order(store) == strict
    assert order(store, "other") == [other[1].id, other[0].id]


def test_a_job_that_waits_for_its_time_is_ranked_anew_too(store: SqlStore, clock: SettableClock) -> None:
    later = new_job(delay=MINUTE)
    store.enqueue([later])
    store.set_ageing("default", AGEING)
    clock.advance(MINUTE)
    store.promote()
    clock.advance(AGEING)
    store.enqueue([urgent := new_job(priority=6)])
    clock.advance(AGEING)
    store.enqueue([new_job(priority=6)])

    assert order(store)[:2] == [later.id, urgent.id]


def test_retries_and_replays_are_ranked_by_it(store: SqlStore, clock: SettableClock) -> None:
    store.set_ageing("default", AGEING)
    retried = claimed_job(store)
    store.settle([settle(retried, Failed(Failure(type="E", message="e")), Retry(base="1s"))])
    store.enqueue([cancelled := new_job()])
    store.cancel([cancelled.id])
    store.replay([cancelled.id])
    clock.advance(AGEING + MINUTE)
    store.promote()
    store.enqueue([urgent := new_job(priority=6)])

    assert order(store) == [cancelled.id, retried.id, urgent.id]


def test_what_was_ranked_by_somebody_who_had_not_seen_the_change_is_found(
    store: SqlStore, clock: SettableClock
) -> None:
    store.enqueue([late := new_job(queue="late")])
    clock.advance(AGEING + SOON)
    store.enqueue([new_job(queue="late", priority=6)])
    # As if both had been enqueued by transactions that began before the change and ended after it.
    store._db.run("set_ageing", name="late", ageing=AGEING)
    store._db.run("ranked", name="late", changes=1)

    assert store.rerank() == 1
    assert order(store, "late")[0] == late.id
    assert store.rerank() == 0


def test_a_change_that_was_not_carried_out_is_by_the_sweep(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([old := new_job()])
    clock.advance(AGEING + SOON)
    store.enqueue([new_job(priority=6)])
    store._db.run("set_ageing", name="default", ageing=AGEING)  # and then died

    assert (store.rerank(), store.rerank()) == (1, 0)
    assert order(store)[0] == old.id


def test_to_say_the_same_again_changes_nothing_and_queues_tell_it(store: SqlStore) -> None:
    store.set_ageing("mail", AGEING)
    store._db.run("set_ageing", name="mail", ageing=AGEING)

    assert store.rerank() == 0
    assert [(queue.name, queue.ageing) for queue in store.queues()] == [("mail", AGEING)]
    store.set_ageing("mail", None)
    assert store.queues() == []
