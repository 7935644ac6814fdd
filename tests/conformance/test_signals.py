"""Signals: kept until they are taken, once, and whoever waits for one is woken, whatever comes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from mainspring.errors import InvalidValue, JobNotFound, SignalRefused
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Cancelled, Failed, Returned, Succeeded, Suspended
from mainspring.store import open_store, rows
from mainspring.store.database import Runner
from mainspring.store.settle import apply
from mainspring.store.signals import MOST
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, opened_session, stored
from tests.support.waiting import until, waiting_for_a_lock

HOUR = timedelta(hours=1)
BOOM = Failure(type="ValueError", message="boom")


def send(store: SqlStore, job_id: UUID, value: str = "1", name: str = "go") -> None:
    store.signal(job_id, name, value, new_id())


def take(
    store: SqlStore, job: Job, number: int = 1, signal: str = "go", timeout: timedelta | None = HOUR
) -> str | timedelta:
    return store.take_signal(job.id, job.fence, f"@signal {signal} {number}", signal, timeout)


def waiting_job(store: SqlStore, timeout: timedelta | None = HOUR, **changes: object) -> Job:
    """Return a job that is blocked until the signal `go` comes."""
    job = claimed_job(store, opened_session(store, lease=timedelta(days=900)), **changes)
    left = take(store, job, timeout=timeout)
    assert isinstance(left, timedelta)
    store.settle([settle(job, Suspended(left, "go"))])
    return stored(store, job.id)


# --- taking --------------------------------------------------------------------------------------------------


def test_what_was_sent_before_anybody_asked_is_kept_and_taken_once(store: SqlStore) -> None:
    job = claimed_job(store)
    send(store, job.id, '"yes"')

    assert take(store, job, 1) == '"yes"'
    assert take(store, job, 2) == HOUR

    assert [(step.name, step.result) for step in store.steps(job.id)] == [
        ("@signal go 1", '"yes"'),
        ("@signal go 2", None),
    ]


def test_the_oldest_is_taken_first_by_the_clock_of_the_database(store: SqlStore, clock: SettableClock) -> None:
    """Who sends makes the id, and his clock may be wrong."""
    job = claimed_job(store)
    late, early = (f"{digit}1999999-9999-7000-8000-000000000000" for digit in "90")
    store.signal(job.id, "go", '"first"', UUID(late))
    clock.advance("1s")
    store.signal(job.id, "go", '"second"', UUID(early))

    assert [take(store, job, number) for number in (1, 2)] == ['"first"', '"second"']


def test_a_signal_is_taken_by_its_name_and_by_its_job(store: SqlStore) -> None:
    job, other = claimed_job(store), claimed_job(store)
    send(store, job.id, "1", "go")

    assert take(store, job, signal="stop") == HOUR
    assert take(store, other) == HOUR
    assert take(store, job) == "1"


def test_a_step_that_has_its_signal_keeps_it(store: SqlStore) -> None:
    """So that a repeated call, whose first reply was lost, does not take another."""
    job = claimed_job(store)
    send(store, job.id, "1")
    send(store, job.id, "2")

    assert [take(store, job, 1), take(store, job, 1), take(store, job, 2)] == ["1", "1", "2"]


def test_a_wait_that_is_over_stays_so_and_leaves_what_comes_later_to_the_next(
    store: SqlStore, clock: SettableClock
) -> None:
    job = claimed_job(store, opened_session(store, lease=timedelta(days=900)))
    assert take(store, job, 1) == HOUR
    clock.advance("40m")
    assert take(store, job, 1, timeout=3 * HOUR) == timedelta(minutes=20)
    clock.advance("20m")

    assert take(store, job, 1) == "null"
    send(store, job.id, "7")

    assert take(store, job, 1) == "null"
    assert take(store, job, 2) == "7"


def test_what_comes_at_the_last_moment_is_taken_all_the_same(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, opened_session(store, lease=timedelta(days=900)))
    take(store, job)
    clock.advance("2h")
    send(store, job.id, "7")

    assert take(store, job) == "7"


def test_a_wait_without_a_limit_is_very_long(store: SqlStore) -> None:
    job = waiting_job(store, timeout=None)

    assert job.run_at.year > 2100


# --- sending -------------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_it_goes_on_at_once(store: SqlStore, clock: SettableClock) -> None:
    job = waiting_job(store)
    assert (job.state, job.signal, job.attempt) == (JobState.BLOCKED, "go", 0)
    listener = store.listen({"default"})
    listener.wait(0.05)

    send(store, job.id, "7", "stop")
    assert stored(store, job.id).state is JobState.BLOCKED
    clock.advance("1m")
    send(store, job.id, "8")

    woken = stored(store, job.id)
    assert (woken.state, woken.signal, woken.run_at) == (JobState.READY, None, clock.now())
    assert listener.wait(5) == {"default"}
    listener.close()
    (again,) = store.claim(opened_session(store), "default", 1)
    assert take(store, again) == "8"


def test_one_with_a_fair_key_goes_on_in_its_line(store: SqlStore) -> None:
    job = waiting_job(store, fair="acme")

    send(store, job.id)

    assert stored(store, job.id).state is JobState.SCHEDULED
    store.promote()
    assert stored(store, job.id).state is JobState.READY


def test_one_whose_time_is_over_goes_on_without(store: SqlStore, clock: SettableClock) -> None:
    job = waiting_job(store)
    clock.advance("59m")
    assert store.promote().next_due == timedelta(minutes=1)
    clock.advance("1m")

    assert store.promote().count == 1

    (again,) = store.claim(opened_session(store), "default", 1)
    assert (again.id, take(store, again)) == (job.id, "null")


def test_a_paused_job_keeps_the_signal_until_it_is_resumed(store: SqlStore) -> None:
    job = waiting_job(store)
    store.pause([job.id])

    send(store, job.id, "7")
    assert stored(store, job.id).state is JobState.PAUSED

    store.resume([job.id])
    (again,) = store.claim(opened_session(store), "default", 1)
    assert take(store, again) == "7"


def test_a_waiting_job_can_be_cancelled(store: SqlStore) -> None:
    job = waiting_job(store)

    assert store.cancel([job.id]) == {job.id: JobState.CANCELLED}


def test_a_signal_that_is_sent_again_under_its_id_is_kept_once_taken_or_not(store: SqlStore) -> None:
    job, signal_id = claimed_job(store), new_id()
    for _ in range(2):
        store.signal(job.id, "go", "1", signal_id)
    assert take(store, job, 1) == "1"
    store.signal(job.id, "go", "1", signal_id)
    assert take(store, job, 2) == HOUR

    store.settle([settle(job, Succeeded("1"))])
    store.signal(job.id, "go", "1", signal_id)


@pytest.mark.parametrize(
    ("outcome", "instead"),
    [(Succeeded("1"), "enqueue another"), (Failed(BOOM), "replay it first"), (Cancelled(), "replay it first")],
)
def test_a_job_that_has_ended_takes_none(
    store: SqlStore, outcome: Succeeded | Failed | Cancelled, instead: str
) -> None:
    job = claimed_job(store)
    store.settle([settle(job, outcome)])

    with pytest.raises(SignalRefused, match=f"has ended as {outcome.name} and takes no signals any more; {instead}"):
        send(store, job.id)


def test_nobody_takes_none(store: SqlStore) -> None:
    with pytest.raises(JobNotFound):
        send(store, new_id())


def test_a_job_may_have_so_many_that_it_has_not_taken(store: SqlStore) -> None:
    job, other = claimed_job(store), claimed_job(store)
    for number in range(MOST):
        send(store, job.id, name=f"n{number % 3}")

    with pytest.raises(SignalRefused, match=r"has 1,000 signals that it has not taken"):
        send(store, job.id)
    send(store, other.id)
    assert take(store, job, signal="n0") == "1"
    send(store, job.id)


@pytest.mark.parametrize(("name", "value"), [("two words", "1"), ("", "1"), ("x" * 129, "1"), ("go", "\0"), ("go", 7)])
def test_what_can_not_be_kept_is_refused(store: SqlStore, name: str, value: str) -> None:
    job = claimed_job(store)

    with pytest.raises(InvalidValue, match="of a signal to be"):
        send(store, job.id, value, name)


def test_signals_wait_for_a_job_that_has_not_begun_and_outlive_its_replay(store: SqlStore) -> None:
    new = new_job()
    store.enqueue([new])
    send(store, new.id, "7")
    (job,) = store.claim(opened_session(store), "default", 1)
    store.settle([settle(job, Failed(BOOM))])
    store.replay([job.id])

    (again,) = store.claim(opened_session(store), "default", 1)
    assert take(store, again) == "7"


# --- signal and suspension at once ---------------------------------------------------------------------------


def test_one_that_comes_between_the_look_and_the_suspension_is_not_missed(store: SqlStore) -> None:
    job = claimed_job(store)
    assert take(store, job) == HOUR
    send(store, job.id, "7")
    listener = store.listen({"default"})
    listener.wait(0.05)

    assert store.settle([settle(job, Suspended(HOUR, "go"))]) == {job.id}

    assert stored(store, job.id).state is JobState.READY
    assert listener.wait(5) == {"default"}
    listener.close()
    (again,) = store.claim(opened_session(store), "default", 1)
    assert take(store, again) == "7"


def test_only_the_signal_that_it_waits_for_and_has_not_taken_makes_it_go_on(store: SqlStore) -> None:
    job, other = claimed_job(store), claimed_job(store)
    send(store, job.id, "7")
    send(store, job.id, "8", "stop")
    take(store, job, 1)
    assert take(store, job, 2) == HOUR

    store.settle([settle(job, Suspended(HOUR, "go")), settle(other, Returned())])

    assert stored(store, job.id).state is JobState.BLOCKED


@pytest.mark.parametrize(("wish", "state"), [("cancel", JobState.CANCELLED), ("pause", JobState.PAUSED)])
def test_a_wish_that_came_meanwhile_goes_first(store: SqlStore, wish: str, state: JobState) -> None:
    job = claimed_job(store)
    take(store, job)
    send(store, job.id)
    getattr(store, wish)([job.id])

    store.settle([settle(job, Suspended(HOUR, "go"))])

    assert stored(store, job.id).state is state


def test_who_sends_waits_for_a_suspension_that_is_under_way_and_wakes_it(postgres_url: str) -> None:
    slow, quick = open_store(postgres_url), open_store(postgres_url)
    job = claimed_job(slow)
    take(slow, job)
    with ThreadPoolExecutor(1) as sender:

        def suspend_slowly(tx: Runner) -> None:
            apply(tx, [settle(job, Suspended(HOUR, "go"))])
            sender.submit(send, quick, job.id, "7")
            until(lambda: waiting_for_a_lock(postgres_url))

        slow._db.transact(suspend_slowly)

    assert stored(slow, job.id).state is JobState.READY
    slow.close()
    quick.close()


def test_a_suspension_waits_for_a_sender_who_is_under_way_and_sees_him(postgres_url: str) -> None:
    slow, quick = open_store(postgres_url), open_store(postgres_url)
    job = claimed_job(slow)
    take(slow, job)
    with ThreadPoolExecutor(1) as worker:

        def send_slowly(tx: Runner) -> None:
            tx.run("lock_live", ids=rows.ids([job.id]))
            tx.run("send_signal", job_id=job.id, name="go", signal_id=new_id(), value="7")
            worker.submit(quick.settle, [settle(job, Suspended(HOUR, "go"))])
            until(lambda: waiting_for_a_lock(postgres_url))

        slow._db.transact(send_slowly)

    assert stored(slow, job.id).state is JobState.READY
    slow.close()
    quick.close()


def test_signals_and_suspensions_at_random_never_leave_a_job_waiting(real_store: SqlStore) -> None:
    store, session = real_store, opened_session(real_store, lease=timedelta(hours=1))
    jobs = [claimed_job(store, session) for _ in range(40)]

    def suspend(job: Job) -> None:
        left = take(store, job)
        if isinstance(left, timedelta):
            store.settle([settle(job, Suspended(left, "go"))])
        else:
            store.settle([settle(job, Succeeded(left))])

    with ThreadPoolExecutor(4) as threads:
        for job in jobs:
            threads.submit(suspend, job)
            threads.submit(send, store, job.id, "7")

    assert {stored(store, job.id).state for job in jobs} <= {JobState.READY, JobState.SUCCEEDED}


def test_a_listener_for_due_times_hears_of_a_wait_that_may_end_sooner(store: SqlStore) -> None:
    listener = store.listen({"@due"})
    listener.wait(0.05)

    waiting_job(store)

    assert "@due" in listener.wait(5)
    listener.close()


def test_a_sender_does_not_wait_for_jobs_of_others(postgres_url: str) -> None:
    store = open_store(postgres_url)
    job, other = claimed_job(store), claimed_job(store)
    with psycopg.connect(postgres_url) as busy:
        busy.execute("SELECT FROM mainspring.jobs WHERE id = %s FOR UPDATE", [other.id])

        send(store, job.id)
    store.close()
