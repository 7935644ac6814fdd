"""Journal: what an attempt says while it runs, kept once and only for who holds the job."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.journal import LogLine, Progress, Reached
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Returned, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import open_store, rows
from mainspring.store.database import Runner
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, opened_session, stored

BOOM = Failure(type="ValueError", message="boom")
LONG_LEASE = timedelta(days=900)


def line(job: Job, number: int, message: str = "hello") -> LogLine:
    return LogLine(job.id, job.fence, number, "INFO", message)


def lines(job: Job, *numbers: int) -> list[LogLine]:
    return [line(job, number) for number in numbers]


def claimed_again(store: SqlStore, job: Job) -> Job:
    """Give the running *job* back and claim it under a new fence."""
    store.settle([settle(job, Returned())])
    (again,) = store.claim(opened_session(store), job.queue, 1)
    assert again.id == job.id
    return again


def said(store: SqlStore, job: Job) -> list[tuple[int, int]]:
    return [(entry.fence, entry.number) for entry in store.logs(job.id)]


# --- lines ---------------------------------------------------------------------------------------------------


def test_lines_are_kept_with_the_time_at_which_they_came(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    clock.advance("3s")

    assert store.record([LogLine(job.id, job.fence, 1, "WARNING", "low on ink")], []) == {job.id}

    (entry,) = store.logs(job.id)
    assert (entry.fence, entry.number, entry.at) == (job.fence, 1, clock.now())
    assert (entry.level, entry.message) == ("WARNING", "low on ink")


def test_lines_of_many_jobs_travel_together(store: SqlStore) -> None:
    one, two, silent = claimed_job(store), claimed_job(store), claimed_job(store)

    assert store.record([*lines(one, 1, 2), *lines(two, 1)], []) == {one.id, two.id}

    assert [len(said(store, job)) for job in (one, two, silent)] == [2, 1, 0]


def test_lines_are_told_in_the_order_of_attempts_and_numbers(store: SqlStore) -> None:
    first = claimed_job(store)
    store.record(lines(first, 2, 10, 1), [])
    second = claimed_again(store, first)
    store.record(lines(second, 1), [])

    assert said(store, first) == [(1, 1), (1, 2), (1, 10), (2, 1)]


def test_lines_are_told_page_by_page(store: SqlStore) -> None:
    first = claimed_job(store)
    store.record(lines(first, 1, 2, 3), [])
    second = claimed_again(store, first)
    store.record(lines(second, 1, 2), [])

    pages, after = [], (0, 0)
    while page := store.logs(first.id, after, limit=2):
        pages.append([(entry.fence, entry.number) for entry in page])
        after = pages[-1][-1]

    assert pages == [[(1, 1), (1, 2)], [(1, 3), (2, 1)], [(2, 2)]]


def test_a_line_is_kept_once_however_often_it_is_recorded(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, opened_session(store, lease=LONG_LEASE))
    store.record([line(job, 1, "first"), line(job, 1, "twice in one call")], [])
    for days in ("1s", "1h", "3d"):
        clock.advance(days)
        assert store.record([line(job, 1, "again"), line(job, 2, "second")], []) == {job.id}

    assert [entry.message for entry in store.logs(job.id)] == ["first", "second"]


def test_a_lost_attempt_adds_nothing(store: SqlStore) -> None:
    stale = claimed_job(store)
    present = claimed_again(store, stale)

    assert store.record(lines(stale, 1), [Progress(stale.id, stale.fence, 1)]) == set()

    assert said(store, present) == []
    assert stored(store, present.id) == present


def test_the_past_attempt_does_not_spoil_what_the_present_one_says(store: SqlStore) -> None:
    stale = claimed_job(store)
    present, other = claimed_again(store, stale), claimed_job(store)

    held = store.record([*lines(stale, 1), *lines(present, 1), *lines(other, 1)], [])

    assert held == {present.id, other.id}
    assert said(store, present) == [(2, 1)]


@pytest.mark.parametrize("settled", [True, False], ids=["finished", "given back"])
def test_a_job_that_no_longer_runs_says_nothing_more(store: SqlStore, settled: bool) -> None:
    """The fence alone would let this through: it grows only with the next claim."""
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1") if settled else Returned())])

    assert store.record(lines(job, 1), [Progress(job.id, job.fence, 1)]) == set()

    assert said(store, job) == []
    assert stored(store, job.id).progress is None


def test_lines_outlive_their_attempt_and_their_job(store: SqlStore) -> None:
    job = claimed_job(store)
    store.record(lines(job, 1), [])
    store.settle([settle(job, Failed(BOOM))])
    store.replay([job.id])

    assert said(store, job) == [(1, 1)]


def test_a_line_may_say_anything(store: SqlStore) -> None:
    job = claimed_job(store)

    store.record([LogLine(job.id, job.fence, 1, "IN\0FO", "a\0b \udcff ' \" \\ 🙂\n123")], [])

    (entry,) = store.logs(job.id)
    assert (entry.level, entry.message) == ("IN\\x00FO", "a\\x00b \\udcff ' \" \\ 🙂\n123")


def test_a_thousand_lines_are_kept_in_one_call(store: SqlStore) -> None:
    job = claimed_job(store)

    store.record(lines(job, *range(1, 1_001)), [])

    assert [entry.number for entry in store.logs(job.id)] == list(range(1, 1_001))


def test_lines_are_kept_on_days_that_nobody_prepared(store: SqlStore, clock: SettableClock) -> None:
    for days in ("40d", "400d"):
        clock.advance(days)
        job = claimed_job(store)
        assert store.record(lines(job, 1), []) == {job.id}
        assert said(store, job) == [(1, 1)]


def test_nothing_and_nobody_are_fine(store: SqlStore) -> None:
    assert store.record([], []) == set()
    assert store.record([LogLine(new_id(), 1, 1, "INFO", "hello")], []) == set()
    assert store.logs(new_id()) == []


# --- progress ------------------------------------------------------------------------------------------------


def test_progress_shows_on_the_job(store: SqlStore) -> None:
    job = claimed_job(store)
    assert stored(store, job.id).reached is None

    assert store.record([], [Progress(job.id, job.fence, 3, 10, "pages \0")]) == {job.id}

    assert stored(store, job.id).reached == Reached(3, 10, "pages \\x00")


def test_the_last_of_several_reports_stands(store: SqlStore) -> None:
    job, other = claimed_job(store), claimed_job(store)

    store.record([], [Progress(job.id, job.fence, 1), Progress(other.id, other.fence, 7), Progress(job.id, 1, 2.5)])

    assert stored(store, job.id).reached == Reached(2.5)
    assert stored(store, other.id).reached == Reached(7)


def test_progress_stands_until_the_next_attempt_reports(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.record([], [Progress(job.id, job.fence, 1, 2)])
    store.settle([settle(job, Failed(BOOM), Retry(base="1s"))])
    clock.advance("1s")
    store.promote()

    (again,) = store.claim(opened_session(store), "default", 1)
    assert again.reached == Reached(1, 2)
    assert stored(store, job.id) == again

    store.record([], [Progress(job.id, again.fence, 0, 2)])
    assert stored(store, job.id).reached == Reached(0, 2)


def test_a_finished_job_keeps_its_progress_and_a_replayed_one_begins_anew(store: SqlStore) -> None:
    job = claimed_job(store)
    store.record([], [Progress(job.id, job.fence, 1, 2, "half")])

    store.settle([settle(job, Failed(BOOM))])
    assert stored(store, job.id).reached == Reached(1, 2, "half")

    store.replay([job.id])
    assert stored(store, job.id).progress is None


def test_progress_changes_nothing_else(store: SqlStore) -> None:
    job = claimed_job(store)
    store.cancel([job.id], "stop")
    before = stored(store, job.id)

    store.record([], [Progress(job.id, job.fence, 1)])

    after = stored(store, job.id)
    assert (after.state, after.wish, after.reason, after.fence) == (
        JobState.RUNNING,
        before.wish,
        before.reason,
        before.fence,
    )


# --- two tries of one call -----------------------------------------------------------------------------------


def test_a_second_try_waits_for_a_first_one_that_is_under_way(postgres_url: str) -> None:
    """The server may still be at work on a call that we gave up on, when the same lines come again."""
    slow, quick = open_store(postgres_url), open_store(postgres_url)
    job = claimed_job(slow)
    second = ThreadPoolExecutor(1)

    def record_slowly(tx: Runner) -> Future[set[object]]:
        tx.run("lock_running", attempts=rows.document([(job.id, job.fence)]))
        tx.run("record_lines", lines=rows.log_lines(lines(job, 1, 2)))
        again: Future[set[object]] = second.submit(quick.record, lines(job, 1, 2, 3), [])  # type: ignore[arg-type]
        with psycopg.connect(postgres_url, autocommit=True) as looking:
            while looking.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
                pass
        return again

    assert slow._db.transact(record_slowly).result() == {job.id}

    assert said(slow, job) == [(1, 1), (1, 2), (1, 3)]
    second.shutdown()
    slow.close()
    quick.close()


def test_a_record_does_not_wait_for_jobs_of_others(postgres_url: str) -> None:
    store = open_store(postgres_url)
    job, other = claimed_job(store), new_job(queue="other")
    store.enqueue([other])
    with psycopg.connect(postgres_url) as busy:
        busy.execute("SELECT FROM mainspring.jobs WHERE id = %s FOR UPDATE", [other.id])

        assert store.record(lines(job, 1), []) == {job.id}
    store.close()
