"""Many threads and processes on one store: nothing is held twice, nothing is lost."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID

import psycopg
import pytest

from mainspring.errors import StoreUnavailable
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Returned, Succeeded
from mainspring.store import open_store, rows, sweep
from mainspring.store.database import Row, Runner
from mainspring.store.postgres.database import _CONNECTIONS, PostgresDatabase
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_job, new_jobs, opened_session
from tests.support.waiting import until, waiting_for_a_lock

THREADS = 8
T = TypeVar("T")


def at_once(*works: Callable[[], T]) -> list[T]:
    """Run all *works* in threads that start together, and return what they returned."""
    gate = threading.Barrier(len(works))

    def wait_and_run(work: Callable[[], T]) -> T:
        gate.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(wait_and_run, works))


def each_at_once(stores: Sequence[SqlStore], work: Callable[[SqlStore], T]) -> list[T]:
    return at_once(*(partial(work, store) for store in stores))


@pytest.fixture
def stores(url: str) -> Iterator[list[SqlStore]]:
    """As many stores on one database as there are threads, as if each were a process."""
    opened = [open_store(url) for _ in range(THREADS)]
    yield opened
    for store in opened:
        store.close()


def claim_all(store: SqlStore, batch: int) -> list[Job]:
    session = opened_session(store)
    claimed: list[Job] = []
    while jobs := store.claim(session, "default", batch):
        claimed += jobs
    return claimed


def test_threads_never_claim_the_same_job(stores: list[SqlStore]) -> None:
    stores[0].enqueue(new_jobs(2_000))

    found = each_at_once(stores, lambda store: claim_all(store, 7))

    # A claim may come back empty while others hold the locks, so what is left is claimed now.
    counted = Counter(job.id for jobs in [*found, claim_all(stores[0], 500)] for job in jobs)
    assert len(counted) == 2_000
    assert set(counted.values()) == {1}


def test_a_claim_does_not_wait_for_another_that_is_under_way(postgres_url: str) -> None:
    """Without SKIP LOCKED the second claimer would wait for the first one's transaction, which here never ends."""
    store = open_store(postgres_url)
    store.enqueue(new_jobs(4))
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT id FROM mainspring.jobs WHERE state = 'ready' ORDER BY rank LIMIT 2 FOR UPDATE")

        claimed = store.claim(opened_session(store), "default", 4)

        assert len(claimed) == 2
    store.close()


def test_a_promotion_does_not_wait_for_a_job_that_somebody_changes(postgres_url: str, clock: SettableClock) -> None:
    """Without SKIP LOCKED it would wait for a transaction that here never ends."""
    store = open_store(postgres_url, clock=clock)
    jobs = new_jobs(3, delay=timedelta(seconds=1))
    store.enqueue(jobs)
    clock.advance("1s")
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT id FROM mainspring.jobs WHERE id = %s FOR UPDATE", [jobs[0].id])

        promoted = store.promote()

        assert promoted.count == 2
    assert store.promote().count == 1
    store.close()


def claim_within(tx: Runner, session: UUID) -> list[Row]:
    """Claim one job in a transaction that goes on."""
    moment = timedelta(0)
    return tx.run("claim", session=session, queue="default", limit=1, tasks=None, ahead=moment, beyond=moment)


def test_a_session_is_not_reaped_while_it_claims(postgres_url: str, clock: SettableClock) -> None:
    """The claim looked at the lease before it ended, and commits after a reaper came by."""
    worker, reaper = (open_store(postgres_url, clock=clock) for _ in range(2))
    session = opened_session(worker)
    worker.enqueue(new_jobs(1))

    def claim_slowly(tx: Runner) -> None:
        assert len(claim_within(tx, session)) == 1
        clock.advance("1m")
        assert reaper.reap() == 0

    worker._db.transact(claim_slowly)

    assert reaper.reap() == 1
    assert reaper.counts() == {"default": {JobState.READY: 1}}
    worker.close()
    reaper.close()


def test_one_of_many_settles_holds(stores: list[SqlStore]) -> None:
    for n in range(20):
        job = claimed_job(stores[0], queue=f"q{n}")
        decided = [settle(job, Succeeded('"1"') if store % 2 else Returned()) for store in range(THREADS)]

        held = at_once(
            *(partial(store.settle, [settlement]) for store, settlement in zip(stores, decided, strict=True))
        )

        assert sum(len(ids) for ids in held) == 1


def test_one_of_many_enqueues_gets_the_key(stores: list[SqlStore]) -> None:
    for n in range(20):
        requests = [new_job(key=f"k{n}") for _ in stores]

        ids = at_once(*(partial(store.enqueue, [job]) for store, job in zip(stores, requests, strict=True)))

        assert len({job_id for (job_id,) in ids}) == 1
    assert stores[0].counts() == {"default": {JobState.READY: 20}}


def test_a_key_that_keeps_changing_hands_always_has_one_holder(stores: list[SqlStore]) -> None:
    """Enqueue with a key while the job that holds it finishes: the answer is a job, old or new, never an error."""
    enqueuer, worker, *_ = stores
    session = opened_session(worker, lease=timedelta(minutes=5))
    done = threading.Event()

    def finish_all() -> set[UUID]:
        while not done.is_set():
            for job in worker.claim(session, "default", 1):
                worker.settle([settle(job, Succeeded("1"))])
        return set()

    def enqueue_many() -> set[UUID]:
        try:
            return {enqueuer.enqueue([new_job(key="busy")])[0] for _ in range(300)}
        finally:
            done.set()

    _, ids = at_once(finish_all, enqueue_many)

    assert set(enqueuer.get(ids)) == ids


def test_many_reapers_take_a_lost_job_back_once(stores: list[SqlStore]) -> None:
    session = opened_session(stores[0], lease=timedelta(milliseconds=100))
    stores[0].enqueue(new_jobs(200))
    lost = stores[0].claim(session, "default", 200)
    until(lambda: not stores[0].sessions()[0].alive)

    reaped = each_at_once(stores, lambda store: store.reap())

    assert sum(reaped) == 200
    assert {job.losses for job in stores[0].get([job.id for job in lost]).values()} == {1}


def test_many_promoters_promote_each_job_once(stores: list[SqlStore]) -> None:
    def promote_all(store: SqlStore) -> int:
        return sum(iter(lambda: store.promote(limit=50).count, 0))

    stores[0].enqueue(new_jobs(1_000, delay=timedelta(milliseconds=1)))
    until(lambda: stores[0].promote(limit=1).count)

    promoted = each_at_once(stores, promote_all)

    assert 1 + sum(promoted) + promote_all(stores[0]) == 1_000


def test_cancel_and_claim_agree_about_who_was_first(stores: list[SqlStore]) -> None:
    worker, operator, *_ = stores
    session = opened_session(worker, lease=timedelta(minutes=5))

    def claim() -> None:
        claimed = worker.claim(session, "default", 1)
        worker.settle([settle(job, Returned()) for job in claimed])

    for _ in range(50):
        job = new_job()
        worker.enqueue([job])
        at_once(claim, partial(operator.cancel, [job.id]))

        # Claimed first: the worker was asked, and giving the job back granted the wish. Cancelled first: no claim.
        assert operator.get([job.id])[job.id].state is JobState.CANCELLED


def test_a_reaped_session_never_ends_up_with_a_job(stores: list[SqlStore]) -> None:
    worker, reaper, *_ = stores
    worker.enqueue(new_jobs(400))

    def claim_until_dead(session: UUID) -> None:
        while worker.claim(session, "default", 1):
            pass

    def reap_until_gone(session: UUID) -> None:
        until(lambda: reaper.reap() or session not in {found.id for found in reaper.sessions()})

    for _ in range(20):
        session = opened_session(worker, lease=timedelta(milliseconds=100))
        at_once(partial(claim_until_dead, session), partial(reap_until_gone, session))
        until(lambda: not reaper.reap() and not reaper.sessions())

    assert sum(states.get(JobState.RUNNING, 0) for states in reaper.counts().values()) == 0


@pytest.mark.slow
def test_processes_share_the_work_without_sharing_a_job(url: str, real_store: SqlStore) -> None:
    real_store.enqueue(new_jobs(1_000))

    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = pool.map(claim_and_settle_all, [url] * 4)

    counted = Counter(job_id for ids in found for job_id in ids)
    assert len(counted) == 1_000
    assert set(counted.values()) == {1}


def claim_and_settle_all(url: str) -> list[UUID]:
    """What each process does: work until no job is left, its own or anybody's."""
    store = open_store(url)
    session = opened_session(store)
    settled: list[UUID] = []
    while store.counts():
        jobs = store.claim(session, "default", 10)
        settled += store.settle([settle(job, Succeeded("1")) for job in jobs])
    store.close_session(session)
    store.close()
    return settled


def test_a_session_is_not_closed_under_a_claim_of_its_own(postgres_url: str) -> None:
    """Closing began before the claim was committed, and must see what it took."""
    worker, closer = open_store(postgres_url), open_store(postgres_url)
    session = opened_session(worker)
    worker.enqueue(new_jobs(1))
    closing = ThreadPoolExecutor(1)

    def claim_slowly(tx: Runner) -> Future[bool]:
        assert len(claim_within(tx, session)) == 1
        closed = closing.submit(closer.close_session, session)
        until(lambda: waiting_for_a_lock(postgres_url))
        return closed

    closed = worker._db.transact(claim_slowly)

    assert not closed.result()
    assert [found.id for found in worker.sessions()] == [session]
    closing.shutdown()
    worker.close()
    closer.close()


def test_many_pruners_prune_each_day_once(url: str, clock: SettableClock) -> None:
    opened = [open_store(url, clock=clock) for _ in range(4)]
    for _ in range(5):
        job = claimed_job(opened[0])
        opened[0].settle([settle(job, Succeeded("1"))])
        clock.advance("1d")

    pruned = each_at_once(opened, lambda store: store.prune(timedelta(0)))

    assert sum(pruned) == 5
    for store in opened:
        store.close()


def test_a_prune_does_not_hold_up_settles_behind_a_slow_reader(postgres_url: str, clock: SettableClock) -> None:
    """To drop a day takes a lock that waits for every reader, and every settle would wait in line behind it."""
    store = open_store(postgres_url, clock=clock)
    pruner = SqlStore(PostgresDatabase(postgres_url, clock=clock, patience=300, deadline=300))
    store.settle([settle(claimed_job(store), Succeeded("1"))])
    clock.advance("1d")
    job = claimed_job(store)
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(postgres_url) as reader:
            reader.execute("SELECT FROM mainspring.jobs_done")
            pruned = pool.submit(pruner.prune, timedelta(0))
            until(lambda: waiting_for_a_lock(postgres_url))

            assert store.settle([settle(job, Succeeded("2"))]) == {job.id}

        assert pruned.result() == 1
    store.close()
    pruner.close()


def test_two_may_prepare_the_same_days_at_once(postgres_url: str, clock: SettableClock) -> None:
    """The second looks before the first has committed, and would then make a table that exists."""
    store = open_store(postgres_url, clock=clock)
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(postgres_url) as first:
            first.execute("SELECT mainspring.open_days(%s, 8)", [clock.now().date()])
            first.execute("LOCK TABLE mainspring.jobs_done IN ACCESS EXCLUSIVE MODE")
            second = pool.submit(store._db.run, "open_days")
            until(lambda: waiting_for_a_lock(postgres_url))

        second.result()
    store.close()


def test_the_loser_of_a_deadlock_tries_again(postgres_url: str) -> None:
    store = open_store(postgres_url)
    one, two = new_jobs(2)
    store.enqueue([one, two])
    lock = "SELECT id FROM mainspring.jobs WHERE id = %s FOR UPDATE"
    tries: list[Future[None]] = []

    with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_url) as other:
        other.execute("SET deadlock_timeout = '1h'")  # who looks for a deadlock first is the one to lose it
        other.execute(lock, [two.id])

        def go_on() -> None:
            other.execute(lock, [one.id])
            other.rollback()

        def lock_both(tx: Runner) -> None:
            tx.run("lock_live", ids=rows.ids([one.id]))
            if not tries:
                tries.append(pool.submit(go_on))
                until(lambda: waiting_for_a_lock(postgres_url))
            tx.run("lock_live", ids=rows.ids([two.id]))

        store._db.transact(lock_both)

        tries[0].result()
    store.close()


def test_a_write_that_could_not_be_serialized_is_tried_again(postgres_url: str) -> None:
    """On a server whose default is stricter than what we need, a statement fails when its row has just changed."""
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        strict = f"ALTER DATABASE \"{owner.info.dbname}\" SET default_transaction_isolation = 'repeatable read'"
        owner.execute(strict.encode())
    store = open_store(postgres_url)
    job = claimed_job(store)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_url) as other:
        other.execute("UPDATE mainspring.jobs SET reason = 'seen'")
        settled = pool.submit(store.settle, [settle(job, Succeeded("1"))])
        until(lambda: waiting_for_a_lock(postgres_url))
        other.commit()

        assert settled.result() == {job.id}
    store.close()


def test_a_process_opens_no_more_connections_than_its_limit(postgres_url: str) -> None:
    db = PostgresDatabase(postgres_url, patience=0.5)
    holding, done = threading.Barrier(_CONNECTIONS + 1), threading.Event()

    def hold(_: Runner) -> None:
        holding.wait()
        done.wait()

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        held = [pool.submit(db.attempt, hold) for _ in range(_CONNECTIONS)]
        holding.wait()
        try:
            with pytest.raises(StoreUnavailable, match="all connections of this process stayed busy"):
                db.run("next_due")
        finally:
            done.set()
        assert [call.result() for call in held] == [None] * _CONNECTIONS

    assert db.run("next_due") == []
    db.close()


def test_a_reaper_takes_all_though_a_late_worker_settles_one(
    postgres_url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reaper has picked a full batch, and waits for the lock on a job that is being settled."""
    monkeypatch.setattr(sweep, "REAP_BATCH", 2)
    store, reaper = (open_store(postgres_url, clock=clock) for _ in range(2))
    session = opened_session(store)
    store.enqueue(new_jobs(4))
    jobs = store.claim(session, "default", 4)
    clock.advance("1m")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_url) as late:
        late.execute("DELETE FROM mainspring.jobs WHERE id = %s", [jobs[0].id])
        reaped = pool.submit(reaper.reap)
        until(lambda: waiting_for_a_lock(postgres_url))
        late.commit()

        assert reaped.result() == 3

    assert store.counts() == {"default": {JobState.READY: 3}}
    assert store.sessions() == []
    store.close()
    reaper.close()
