"""Many who admit, settle and reap jobs at once: no limit is exceeded, no slot is lost, nobody waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
from msgspec.structs import replace

from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit
from mainspring.model.outcome import Snoozed, Succeeded
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute
from tests.support.factories import claimed_job, new_jobs, opened_session, stored
from tests.support.waiting import until, waiting_for_a_lock

WORKERS = 6
JOBS = 300
A, B = Limit("a", concurrency=3).want({}), Limit("b", concurrency=2).want({})


def admitted(store: SqlStore, jobs: list[Job]) -> list[Job]:
    asking = [(replace(job, holds=("a", "b")), [A, B]) for job in jobs]
    may_start = store.admit(asking)
    return [job for job, _ in asking if job.id in may_start]


def test_no_limit_is_exceeded_and_nobody_waits_for_ever(url: str) -> None:
    stores = [open_store(url) for _ in range(WORKERS)]
    stores[0].enqueue(new_jobs(JOBS))
    running, most, done, lock = 0, 0, 0, threading.Lock()

    def work(store: SqlStore) -> None:
        nonlocal running, most, done
        session = opened_session(store, lease=timedelta(minutes=10))
        while done < JOBS:
            started = admitted(store, store.claim(session, "default", 4))
            with lock:
                running += len(started)
                most = max(most, running)
            with lock:
                running -= len(started)
            settled = store.settle([settle(job, Succeeded("null")) for job in started])
            with lock:
                done += len(settled)
            store.release()

    with ThreadPoolExecutor(WORKERS) as pool:
        for end in [pool.submit(work, store) for store in stores]:
            end.result()

    assert most <= 2
    assert (stores[0].counts(), stores[0].slot_holders("a"), stores[0].slot_holders("b")) == ({}, [], [])
    for store in stores:
        store.close()


def test_a_slot_that_is_taken_while_its_job_is_being_reaped_is_freed(postgres_url: str, clock: SettableClock) -> None:
    """Whoever reaps began to look before the admission was committed, and must free what it took."""
    worker, reaper = (open_store(postgres_url, clock=clock) for _ in range(2))
    for before in admitted(worker, [claimed_job(worker)]):  # the limits are known now
        worker.settle([settle(before, Succeeded("null"))])
    job = claimed_job(worker, opened_session(worker, lease=timedelta(seconds=15)))
    clock.advance("16s")
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.limits FOR UPDATE")
        admission = pool.submit(admitted, worker, [job])
        until(lambda: waiting_for_a_lock(postgres_url))
        reaping = pool.submit(reaper.reap)
        until(lambda: _waiting(postgres_url) == 2)
        holder.commit()
        assert ([one.id for one in admission.result()], reaping.result()) == ([job.id], 1)

    assert stored(worker, job.id).state is JobState.READY
    assert worker.slot_holders("a") == worker.slot_holders("b") == []
    worker.close()
    reaper.close()


def test_to_admit_and_to_settle_jobs_of_one_schedule_do_not_wait_for_each_other(postgres_url: str) -> None:
    """Who settles locks the schedule, the job, the limit. Who admits has locked a job and the limit."""
    one, other = open_store(postgres_url), open_store(postgres_url)
    columns, values = "id, definition, origin, depends, created_at, changed_at", "'s', '{}', 'code', true, now(), now()"
    execute(postgres_url, f"INSERT INTO mainspring.schedules ({columns}) VALUES ({values})")
    session = opened_session(one, lease=timedelta(minutes=10))
    one.enqueue(new_jobs(2, schedule="s"))
    first, second = (replace(job, holds=("b",)) for job in one.claim(session, "default", 2))
    single = replace(B, concurrency=1)
    assert one.admit([(first, [single])])
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.limits FOR UPDATE")
        admission = pool.submit(other.admit, [(second, [single])])
        until(lambda: _waiting(postgres_url) == 1)
        settling = pool.submit(one.settle, [settle(first, Succeeded("null"))])
        until(lambda: _waiting(postgres_url) == 2)
        holder.rollback()
        assert (admission.result(), settling.result()) == (set(), {first.id})

    assert deadlocks(postgres_url) == 0
    one.close()
    other.close()


def test_wishes_that_are_granted_lock_limits_in_the_order_of_all(postgres_url: str) -> None:
    one, other = open_store(postgres_url), open_store(postgres_url)
    session = opened_session(one, lease=timedelta(minutes=10))
    one.enqueue(new_jobs(4))
    jobs = [replace(job, holds=(key,)) for job, key in zip(one.claim(session, "default", 4), "abab", strict=True)]
    for job, want in zip(jobs, [A, B, A, B], strict=True):
        assert one.admit([(job, [want])])
    one.cancel([jobs[1].id])
    later = Snoozed(timedelta(hours=1))
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.limits WHERE key = 'b' FOR UPDATE")
        first = pool.submit(one.settle, [settle(job, later) for job in jobs[:2]])
        until(lambda: _waiting(postgres_url) == 1)
        second = pool.submit(other.settle, [settle(job, Succeeded("null")) for job in jobs[2:]])
        until(lambda: _waiting(postgres_url) == 2)
        holder.rollback()
        assert len(first.result() | second.result()) == 4

    assert deadlocks(postgres_url) == 0
    assert (stored(one, jobs[1].id).state, one.slot_holders("b")) == (JobState.CANCELLED, [])
    one.close()
    other.close()


def deadlocks(url: str) -> int:
    """Return how many the server has met in this database, once it has counted them."""
    execute(url, "SELECT pg_stat_force_next_flush()")
    return int(execute(url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0])


def _waiting(url: str) -> int:
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        (found,) = connection.execute(query).fetchone() or (0,)
        return int(found)
