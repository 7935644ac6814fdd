"""Many who settle at once: each end is told once, by whoever brought it about, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mainspring.model.channel import Email, Webhook
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import Settlement, settle
from mainspring.model.outcome import Outcome
from mainspring.store import open_store, rows
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute
from tests.support.factories import FAILURE, SUCCESS, claimed_job, claimed_jobs, new_job, stored
from tests.support.notices import events, notice_of, notifications, telling

CHANNELS = telling(Webhook("https://a.example"), Webhook("https://b.example"), Email("ops@example.org"))


def at_once(url: str, *works: tuple[Job, Outcome]) -> list[bool]:
    """Settle each of *works* by a store of its own, all at the same moment; return which held."""
    stores = [open_store(url) for _ in works]
    start = threading.Barrier(len(works))

    def settled(store: SqlStore, job: Job, outcome: Outcome) -> bool:
        start.wait()
        return bool(store.settle([settle(job, outcome)]))

    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(settled, store, *work) for store, work in zip(stores, works, strict=True)]
        held = [future.result() for future in futures]
    for store in stores:
        store.close()
    return held


def test_of_several_that_settle_a_job_one_tells_people(url: str, real_store: SqlStore) -> None:
    for _ in range(5):
        job = new_job(notify=telling())
        real_store.enqueue([job])
        (held,) = claimed_jobs(real_store).values()

        at_once(url, (held, FAILURE), (held, SUCCESS), (held, FAILURE), (held, SUCCESS))

        state = stored(real_store, job.id).state
        told = [notice_of(one) for one in notifications(real_store) if notice_of(one)["job_id"] == str(job.id)]
        assert [one["state"] for one in told] == [state]


def test_ends_of_one_schedule_that_come_at_once_leave_nobody_waiting(url: str, real_store: SqlStore) -> None:
    """Some begin a trouble that others end: who locks what is kept of it waits for others, but never in a circle."""
    for _ in range(5):
        real_store.enqueue([new_job(notify=CHANNELS, schedule=f"s{n % 3}") for n in range(6)])
        jobs = list(claimed_jobs(real_store).values())

        held = at_once(url, *((job, FAILURE if n % 2 else SUCCESS) for n, job in enumerate(jobs)))

        assert held == [True] * 6
    assert {stored(real_store, job.id).state for job in jobs} == {JobState.SUCCEEDED, JobState.FAILED}
    assert events(real_store).count("failure") == 5 * 3 * 3


def test_batches_of_crossed_successes_and_failures_do_not_wait_for_each_other(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ends the trouble that the other one notes: neither may hold what it has ended and want what it notes."""
    store = open_store(postgres_url)
    crossed: list[list[Settlement]] = []
    rounds: list[tuple[Outcome, Outcome]] = [(FAILURE, FAILURE), (SUCCESS, FAILURE), (FAILURE, SUCCESS)]
    for outcomes in rounds:
        made = [new_job(notify=CHANNELS, schedule=name) for name in "ab"]
        store.enqueue(made)
        jobs = claimed_jobs(store)
        crossed.append([settle(jobs[job.id], outcome) for job, outcome in zip(made, outcomes, strict=True)])
    store.settle(crossed.pop(0))
    stores = [open_store(postgres_url) for _ in crossed]
    document = rows.document

    def slowly(given: Iterable[object]) -> str:
        time.sleep(0.05)  # before each statement about troubles, among others
        return document(given)

    monkeypatch.setattr(rows, "document", slowly)
    with ThreadPoolExecutor(2) as pool:
        held = list(pool.map(lambda one, batch: len(one.settle(batch)), stores, crossed))
    for one in (store, *stores):
        one.close()
    time.sleep(0.3)  # until the servers of these connections have told what they counted

    assert held == [2, 2]
    assert execute(postgres_url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [(0,)]


def test_a_worker_and_the_reaper_of_its_session_do_not_both_tell(
    url: str, store: SqlStore, clock: SettableClock
) -> None:
    other = open_store(url, clock=clock)
    for number in range(5):
        job = claimed_job(store, notify=telling(), queue=f"q{number}")
        clock.advance("16s")

        with ThreadPoolExecutor(2) as pool:
            reaping = pool.submit(other.reap)
            settling = pool.submit(store.settle, [settle(job, SUCCESS)])
            reaping.result()
            held = settling.result()

        told = [notice_of(one) for one in notifications(store) if notice_of(one)["job_id"] == str(job.id)]
        assert [one["event"] for one in told] == (["success"] if held else ["retry"])
    other.close()
