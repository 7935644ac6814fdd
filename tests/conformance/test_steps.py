"""Steps: what a job has done is kept once, by who holds it, and outlives its attempts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import pytest
from msgspec.structs import replace

from mainspring.clock import microseconds
from mainspring.errors import LeaseLost
from mainspring.model.failure import Failure
from mainspring.model.ids import uuid7
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Returned, Succeeded, Suspended
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import claimed_job, new_id, opened_session, stored
from tests.support.waiting import until

BOOM = Failure(type="ValueError", message="boom")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOTHING = timedelta(0)


def record(store: SqlStore, job: Job, name: str, result: str = "1") -> None:
    store.record_step(job.id, job.fence, name, result)


def sleep(store: SqlStore, job: Job, delay: timedelta = HOUR, name: str = "@sleep 1h") -> timedelta:
    return store.begin_sleep(job.id, job.fence, name, delay)


def claimed_again(store: SqlStore, job: Job) -> Job:
    """Give the running *job* back and claim it under a new fence."""
    store.settle([settle(job, Returned())])
    (again,) = store.claim(opened_session(store), job.queue, 1)
    assert again.id == job.id
    return again


def results(store: SqlStore, job: Job) -> dict[str, str | None]:
    return {step.name: step.result for step in store.steps(job.id)}


# --- results -------------------------------------------------------------------------------------------------


def test_steps_are_told_in_the_order_of_time(store: SqlStore, clock: SettableClock) -> None:
    job, other = claimed_job(store), claimed_job(store)
    for name in ("second's twin", "a second"):
        record(store, job, name, '"x"')
    clock.advance("1s")
    record(store, job, "a first by name")
    record(store, other, "another job's")

    assert [step.name for step in store.steps(job.id)] == ["a second", "second's twin", "a first by name"]
    last = store.steps(job.id)[-1]
    assert (last.result, last.until, last.at, last.pending) == ("1", None, clock.now(), False)


def test_the_first_result_of_a_step_stands(store: SqlStore) -> None:
    job = claimed_job(store)
    record(store, job, "charge", "1")
    record(store, job, "charge", "2")

    assert results(store, job) == {"charge": "1"}


def test_steps_are_there_for_the_next_attempt(store: SqlStore) -> None:
    first = claimed_job(store)
    record(store, first, "charge", "1")
    second = claimed_again(store, first)
    record(store, second, "ship", "2")

    assert results(store, second) == {"charge": "1", "ship": "2"}


WRITES: list[Callable[[SqlStore, Job], object]] = [
    lambda store, job: record(store, job, "late"),
    lambda store, job: sleep(store, job),
    lambda store, job: store.take_signal(job.id, job.fence, "@signal go", "go", HOUR),
]


@pytest.mark.parametrize("write", WRITES, ids=["step", "sleep", "signal"])
def test_a_lost_attempt_adds_nothing(store: SqlStore, write: Callable[[SqlStore, Job], object]) -> None:
    stale = claimed_job(store)
    store.signal(stale.id, "go", "1", new_id())
    present = claimed_again(store, stale)

    with pytest.raises(LeaseLost, match=f"job {stale.id} is no longer held under fence 1"):
        write(store, stale)

    assert store.steps(stale.id) == []
    assert store.take_signal(present.id, present.fence, "@signal go", "go", HOUR) == "1"


@pytest.mark.parametrize("write", WRITES, ids=["step", "sleep", "signal"])
@pytest.mark.parametrize("settled", [True, False], ids=["finished", "given back"])
def test_a_job_that_no_longer_runs_takes_no_step(
    store: SqlStore, write: Callable[[SqlStore, Job], object], settled: bool
) -> None:
    """The fence alone would let this through: it grows only with the next claim."""
    job = claimed_job(store)
    store.signal(job.id, "go", "1", new_id())
    store.settle([settle(job, Succeeded("1") if settled else Returned())])

    with pytest.raises(LeaseLost):
        write(store, job)

    assert store.steps(job.id) == []


def test_steps_outlive_the_job_and_its_replay(store: SqlStore) -> None:
    job = claimed_job(store)
    record(store, job, "charge", '"paid"')
    store.settle([settle(job, Failed(BOOM))])
    assert results(store, job) == {"charge": '"paid"'}

    store.replay([job.id])
    (again,) = store.claim(opened_session(store), "default", 1)

    assert results(store, again) == {"charge": '"paid"'}


def test_who_has_lost_his_job_spoils_nothing_for_those_who_write_at_the_same_time(sqlite_url: str) -> None:
    """On SQLite a thread may do the work of others along with its own."""
    store = open_store(sqlite_url)
    stale, held = claimed_job(store), [claimed_job(store) for _ in range(8)]
    claimed_again(store, stale)
    last = claimed_job(store)
    with ThreadPoolExecutor(16) as threads:
        with store.transaction(lambda: settle(last, Succeeded("1"))):
            written = [threads.submit(record, store, job, "in time") for job in held]
            lost = [threads.submit(record, store, stale, f"late {number}") for number in range(8)]
            until(lambda: len(store._db._writer._waiting) == 16)  # type: ignore[attr-defined]
        assert [type(one.exception()) for one in lost] == 8 * [LeaseLost]
        assert [one.exception() for one in written] == 8 * [None]
    assert [results(store, job) for job in held] == 8 * [{"in time": "1"}]
    store.close()


# --- sleeps --------------------------------------------------------------------------------------------------


def test_a_sleep_ends_when_it_was_to_end_whatever_becomes_of_the_attempt(store: SqlStore, clock: SettableClock) -> None:
    first = claimed_job(store)
    assert sleep(store, first) == HOUR
    clock.advance("20m")

    second = claimed_again(store, first)
    assert sleep(store, second, 2 * HOUR) == timedelta(minutes=40)
    (step,) = store.steps(first.id)
    assert (step.pending, step.passed, step.at) == (True, False, clock.now() - timedelta(minutes=20))

    clock.advance("41m")
    third = claimed_again(store, second)
    assert sleep(store, third) == -timedelta(minutes=1)
    (step,) = store.steps(first.id)
    assert (step.pending, step.passed) == (False, True)


def test_a_sleeping_job_is_ready_at_its_time_and_has_paid_no_attempt(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, expires=timedelta(minutes=1))
    left = sleep(store, job)
    store.settle([settle(job, Suspended(left))])

    asleep = stored(store, job.id)
    assert (asleep.state, asleep.attempt, asleep.run_at, asleep.expires_at) == (
        JobState.SCHEDULED,
        0,
        clock.now() + HOUR,
        None,
    )
    clock.advance("59m")
    assert store.promote().count == store.expire().count == 0
    clock.advance("1m")
    assert store.promote().count == 1
    (again,) = store.claim(opened_session(store), "default", 1)
    assert (again.attempt, again.fence) == (1, 2)
    assert sleep(store, again) == NOTHING


def test_a_job_that_got_as_far_as_a_sleep_is_not_blamed_for_what_its_workers_died_of_before(
    url: str, store: SqlStore
) -> None:
    """It may live for years, and see more workers die than a job may that kills them."""
    job = claimed_job(store)
    execute(url, f"UPDATE {table(url, 'jobs')} SET losses = 2")

    store.settle([settle(replace(job, losses=1), Suspended(HOUR))])

    assert stored(store, job.id).losses == 0


# --- transactions --------------------------------------------------------------------------------------------


@pytest.fixture
def letters(url: str, store: SqlStore) -> Callable[[], int]:
    """A table of the application's own, and how many rows it has."""
    execute(url, "CREATE TABLE letters (text TEXT)")
    return lambda: len(execute(url, "SELECT * FROM letters"))


def write_letter(store: SqlStore, job: Job) -> None:
    with store.step_transaction(job.id, job.fence, ("write", '"done"')) as connection:
        connection.execute("INSERT INTO letters VALUES ('dear')")


def test_a_step_is_recorded_with_what_its_block_wrote(store: SqlStore, letters: Callable[[], int]) -> None:
    job = claimed_job(store)

    write_letter(store, job)

    assert letters() == 1
    assert results(store, job) == {"write": '"done"'}
    assert stored(store, job.id).state is JobState.RUNNING


def test_of_a_lost_attempt_neither_the_step_nor_what_it_wrote_is_kept(
    store: SqlStore, letters: Callable[[], int]
) -> None:
    stale = claimed_job(store)
    claimed_again(store, stale)

    with pytest.raises(LeaseLost):
        write_letter(store, stale)

    assert letters() == 0
    assert store.steps(stale.id) == []


def test_a_block_that_fails_records_no_step(store: SqlStore, letters: Callable[[], int]) -> None:
    job = claimed_job(store)

    with suppress(ZeroDivisionError), store.step_transaction(job.id, job.fence, ("write", "1")) as connection:
        connection.execute("INSERT INTO letters VALUES ('dear')")
        _ = 1 / 0

    assert letters() == 0
    assert store.steps(job.id) == []


# --- prune ---------------------------------------------------------------------------------------------------


def id_at(clock: SettableClock, number: int = 0) -> UUID:
    """Return an id that was made by the clock of the test."""
    return uuid7(microseconds(clock.now()) // 1000, number)


def rows_left(url: str) -> tuple[int, int]:
    ((steps,),) = execute(url, f"SELECT count(*) FROM {table(url, 'steps')}")
    ((signals,),) = execute(url, f"SELECT count(*) FROM {table(url, 'signals')}")
    return steps, signals


def test_what_belongs_to_no_job_any_more_is_pruned_and_nothing_else(
    url: str, store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.store.sweep.PRUNE_BATCH", 2)
    session = opened_session(store, lease=timedelta(days=900))
    jobs = [claimed_job(store, session, id=id_at(clock, number)) for number in range(9)]
    for job in jobs:
        record(store, job, "charge")
        record(store, job, "ship")
        store.signal(job.id, "go", "1", new_id())
    # Those that stay come first and last, so that nothing can get stuck at them.
    running, *done, kept = jobs
    store.settle([settle(job, Succeeded("1")) for job in done])
    clock.advance("10d")
    store.settle([settle(kept, Succeeded("1"))])
    clock.advance("5d")

    assert store.prune(10 * DAY) == len(done)

    assert rows_left(url) == (4, 2)
    assert {job.id for job in jobs if store.steps(job.id)} == {running.id, kept.id}


def test_steps_of_young_jobs_are_not_looked_at(url: str, store: SqlStore, clock: SettableClock) -> None:
    """There may be very many of them, and nearly all have a job."""
    job = claimed_job(store, id=id_at(clock))
    record(store, job, "charge")
    execute(url, f"DELETE FROM {table(url, 'jobs')}")

    store.prune(36_000 * DAY)
    clock.advance("23h")
    store.prune(DAY)
    assert rows_left(url) == (1, 0)

    clock.advance("2d")
    store.prune(DAY)
    assert rows_left(url) == (0, 0)
