"""Many who admit, settle and reap jobs under one breaker at once: none is counted twice, and nobody waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
from msgspec.structs import replace

from mainspring.model.breaker import Breaker, Phase
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit, want_of
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_jobs, opened_session, stored
from tests.support.waiting import until, waiting_for_a_lock

WORKERS = 4
JOBS = 200
KEY = "@breaker:b"
BREAKER = want_of(Breaker("b", open_at="50% of 4 in 1m", cooldown="20ms..50ms"), {})
LIMIT = Limit("a", concurrency=3).want({})
DOWN = Failed(Failure(type="ConnectionError", message="refused"))
RETRY = Retry(max_attempts=100, base="1ms", cap="1ms")


def admitted(store: SqlStore, jobs: list[Job]) -> list[Job]:
    asking = [(replace(job, breaker=BREAKER, holds=("a",)), [BREAKER, LIMIT]) for job in jobs]
    may_start = store.admit(asking)
    return [job for job, _ in asking if job.id in may_start]


def test_nobody_waits_for_ever_and_no_slot_is_lost(url: str) -> None:
    stores = [open_store(url) for _ in range(WORKERS)]
    stores[0].enqueue(new_jobs(JOBS))
    lock, done, calls = threading.Lock(), 0, 0

    def work(store: SqlStore) -> None:
        nonlocal done, calls
        session = opened_session(store, lease=timedelta(minutes=10))
        while done < JOBS:
            started = admitted(store, store.claim(session, "default", 3))
            with lock:
                calls += len(started)
                away = 20 < calls < 40  # for a while
            outcome = DOWN if away else Succeeded("null")
            settled = store.settle([settle(job, outcome, RETRY) for job in started])
            with lock:
                done += 0 if away else len(settled)
            store.release()
            store.promote()

    with ThreadPoolExecutor(WORKERS) as pool:
        for end in [pool.submit(work, store) for store in stores]:
            end.result()

    assert (stores[0].counts(), stores[0].slot_holders("a"), stores[0].slot_holders(KEY)) == ({}, [], [])
    for store in stores:
        store.close()


def test_of_two_that_would_open_it_one_does_and_the_other_is_spared(postgres_url: str, clock: SettableClock) -> None:
    stores = [open_store(postgres_url, clock=clock) for _ in range(2)]
    first = replace(claimed_job(stores[0]), breaker=BREAKER)
    stores[0].settle([settle(first, DOWN, Retry(base="1h", cap="1h"))])
    jobs = [replace(claimed_job(stores[0]), breaker=BREAKER) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.limits FOR UPDATE")
        both = [
            pool.submit(store.settle, [settle(job, DOWN, Retry(base="1h", cap="1h"))])
            for store, job in zip(stores, jobs, strict=True)
        ]
        until(lambda: _waiting(postgres_url) == 2)
        holder.commit()
        assert [one.result() for one in both] == [{job.id} for job in jobs]

    assert sorted(stored(stores[0], job.id).state for job in jobs) == [JobState.BLOCKED, JobState.RETRYING]
    assert sorted(stored(stores[0], job.id).attempt for job in jobs) == [0, 1]
    (told,) = stores[0].breakers("b")
    assert (told.phase, told.failures) == (Phase.OPEN, 2)
    for store in stores:
        store.close()


def test_one_that_asks_while_the_last_probe_ends_is_not_left_waiting(postgres_url: str, clock: SettableClock) -> None:
    """Whoever admits found no room before the probe had ended, and must be let through by the one that settles it."""
    worker, other = (open_store(postgres_url, clock=clock) for _ in range(2))
    for _ in range(2):
        worker.settle([settle(replace(claimed_job(worker), breaker=BREAKER), DOWN, Retry(base="1h", cap="1h"))])
    clock.advance("1s")
    (probe,) = admitted(worker, [claimed_job(worker)])
    late = claimed_job(other)
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.limits FOR UPDATE")
        asking = pool.submit(admitted, other, [late])
        until(lambda: waiting_for_a_lock(postgres_url))
        ending = pool.submit(worker.settle, [settle(probe, Succeeded("null"))])
        until(lambda: _waiting(postgres_url) == 2)
        holder.commit()
        assert (asking.result(), ending.result()) == ([], {probe.id})

    assert stored(worker, late.id).state is JobState.READY
    worker.close()
    other.close()


def _waiting(url: str) -> int:
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        (found,) = connection.execute(query).fetchone() or (0,)
        return int(found)
