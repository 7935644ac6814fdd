"""Keys: what an enqueue does about the unfinished job that has its key."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring.model.failure import Failure
from mainspring.model.job import IfTaken, Job, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import chunks
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected
from tests.support.factories import claimed_job, new_job, opened_session, stored

RETURN, REPLACE, RESCHEDULE = IfTaken
HOUR = timedelta(hours=1)


def asked(argument: object, if_taken: IfTaken = RETURN, **changes: Any) -> NewJob:
    return new_job(payload=payload(argument), if_taken=if_taken, **{"key": "k"} | changes)


def payload(argument: object) -> str:
    return f'{{"args":[{argument}],"kwargs":{{}}}}'


def seen(store: SqlStore, job: NewJob | Job) -> tuple[str, int, JobState]:
    found = stored(store, job.id)
    return found.payload, found.priority, found.state


def test_by_default_the_job_that_has_the_key_stays_as_it_is(store: SqlStore) -> None:
    first = asked(1)
    store.enqueue([first])

    assert store.enqueue([asked(2, priority=9)]) == [first.id]

    assert seen(store, first) == (payload(1), 5, JobState.READY)


@pytest.mark.parametrize("if_taken", IfTaken)
def test_a_free_key_is_taken(store: SqlStore, if_taken: IfTaken) -> None:
    job = asked(1, if_taken)

    assert store.enqueue([job]) == [job.id]


def test_replace_gives_a_job_that_waits_new_arguments_and_its_old_time(store: SqlStore, clock: SettableClock) -> None:
    first = asked(1, delay=HOUR)
    store.enqueue([first])
    due = clock.now() + HOUR
    clock.advance("10m")

    assert store.enqueue([asked(2, REPLACE, priority=9, queue="mail")]) == [first.id]

    assert seen(store, first) == (payload(2), 9, JobState.SCHEDULED)
    assert (stored(store, first.id).run_at, stored(store, first.id).queue) == (due, "default")


def test_replace_keeps_a_job_in_its_place_among_those_of_its_priority(store: SqlStore, clock: SettableClock) -> None:
    jobs = [new_job(), asked(1), new_job()]
    store.enqueue(jobs)
    urgent = new_job(priority=9)
    store.enqueue([urgent])
    session = opened_session(store)
    clock.advance("1s")

    store.enqueue([asked(2, REPLACE, priority=9)])
    store.enqueue([asked(3, REPLACE, priority=5)])

    assert [job.id for job in store.claim(session, "default", 9)] == [urgent.id, *(job.id for job in jobs)]


def test_replace_moves_a_job_with_its_priority(store: SqlStore) -> None:
    first, other = asked(1, priority=1), new_job(priority=5)
    store.enqueue([first, other])

    store.enqueue([asked(2, REPLACE, priority=9)])

    assert [job.id for job in store.claim(opened_session(store), "default", 9)] == [first.id, other.id]


def test_reschedule_moves_the_due_time_again_and_again(store: SqlStore, clock: SettableClock) -> None:
    first = asked(0, RESCHEDULE, delay=timedelta(seconds=10))
    store.enqueue([first])
    for number in range(1, 4):
        clock.advance("8s")
        assert store.promote().count == 0
        assert store.enqueue([asked(number, RESCHEDULE, delay=timedelta(seconds=10))]) == [first.id]
    clock.advance("9.999999s")
    assert store.promote().count == 0
    clock.advance("0.000001s")
    assert store.promote().count == 1

    (job,) = store.claim(opened_session(store), "default", 9)
    assert (job.id, job.payload, job.run_at) == (first.id, payload(3), clock.now())


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [(0, 0, JobState.READY), (0, 1, JobState.SCHEDULED), (1, 0, JobState.READY), (2, 1, JobState.SCHEDULED)],
)
def test_reschedule_makes_a_job_ready_or_not(store: SqlStore, first: int, second: int, state: JobState) -> None:
    job = asked(1, delay=first * HOUR)
    store.enqueue([job])

    store.enqueue([asked(2, RESCHEDULE, delay=second * HOUR)])

    assert seen(store, job) == (payload(2), 5, state)
    assert len(store.claim(opened_session(store), "default", 9)) == (state is JobState.READY)


def test_reschedule_takes_an_instant(store: SqlStore, clock: SettableClock) -> None:
    job = asked(1)
    store.enqueue([job])

    store.enqueue([asked(2, RESCHEDULE, run_at=clock.now() + HOUR)])

    assert stored(store, job.id).run_at == clock.now() + HOUR


def test_a_rescheduled_job_goes_behind_those_that_were_due_before(store: SqlStore, clock: SettableClock) -> None:
    first, other = asked(1), new_job()
    store.enqueue([first, other])
    clock.advance("1s")

    store.enqueue([asked(2, RESCHEDULE)])

    assert [job.id for job in store.claim(opened_session(store), "default", 9)] == [other.id, first.id]


@pytest.mark.parametrize("if_taken", [REPLACE, RESCHEDULE])
def test_a_running_job_is_never_changed(store: SqlStore, if_taken: IfTaken) -> None:
    job = claimed_job(store, key="k", payload=payload(1))

    assert store.enqueue([asked(2, if_taken, delay=HOUR)]) == [job.id]

    assert stored(store, job.id) == job


@pytest.mark.parametrize("if_taken", [REPLACE, RESCHEDULE])
def test_a_job_of_another_task_is_never_changed(store: SqlStore, if_taken: IfTaken) -> None:
    job = asked(1)
    store.enqueue([job])
    before = stored(store, job.id)

    assert store.enqueue([asked(2, if_taken, task="other", delay=HOUR)]) == [job.id]

    assert stored(store, job.id) == before


@pytest.mark.parametrize("if_taken", [REPLACE, RESCHEDULE])
def test_a_job_that_has_finished_gives_up_its_key(store: SqlStore, if_taken: IfTaken) -> None:
    store.settle([settle(claimed_job(store, key="k"), Succeeded("1"))])
    again = asked(2, if_taken)

    assert store.enqueue([again]) == [again.id]


def test_a_job_that_waits_for_another_try_gets_its_new_arguments_then(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, key="k", payload=payload(1))
    store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry(base="1m"))])

    store.enqueue([asked(2, REPLACE)])
    assert seen(store, job) == (payload(2), 5, JobState.RETRYING)
    assert stored(store, job.id).run_at == clock.now() + timedelta(minutes=1)

    store.enqueue([asked(3, RESCHEDULE, delay=HOUR)])
    assert (seen(store, job), stored(store, job.id).run_at) == (
        (payload(3), 5, JobState.RETRYING),
        clock.now() + HOUR,
    )
    store.enqueue([asked(4, RESCHEDULE)])
    (again,) = store.claim(opened_session(store), "default", 9)
    assert (again.payload, again.attempt, again.fence) == (payload(4), 2, 2)


def test_a_paused_job_stays_paused(store: SqlStore, clock: SettableClock) -> None:
    job = asked(1)
    store.enqueue([job])
    store.pause([job.id])

    store.enqueue([asked(2, RESCHEDULE, delay=HOUR)])

    assert seen(store, job) == (payload(2), 5, JobState.PAUSED)
    assert store.resume([job.id]) == {job.id: JobState.SCHEDULED}
    assert stored(store, job.id).run_at == clock.now() + HOUR


def test_of_a_batch_each_has_its_say_in_turn(store: SqlStore, clock: SettableClock) -> None:
    jobs = [
        asked(1),
        asked(2, REPLACE, priority=7),
        asked(3, RESCHEDULE, delay=HOUR),
        asked(4, REPLACE),
        asked(5),
        asked(9, REPLACE, key="other"),
    ]

    assert store.enqueue(jobs) == [jobs[0].id] * 5 + [jobs[5].id]

    assert seen(store, jobs[0]) == (payload(4), 5, JobState.SCHEDULED)
    assert stored(store, jobs[0].id).run_at == clock.now() + HOUR


def test_a_large_batch_changes_what_it_meets(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST", 2)
    first = [asked(number, key=f"k{number}") for number in range(5)]
    store.enqueue(first[::2])

    again = [asked(number + 10, REPLACE, key=f"k{number}") for number in range(5)]
    assert store.enqueue(again) == [first[0].id, again[1].id, first[2].id, again[3].id, first[4].id]

    assert {job.payload for job in store.page()} == {payload(number + 10) for number in range(5)}


def test_what_is_said_in_a_transaction_of_the_callers_holds_if_that_does(
    url: str, store: SqlStore, clock: SettableClock
) -> None:
    job = asked(1)
    store.enqueue([job])
    with connected(url) as conn:
        assert store.enqueue([asked(2, RESCHEDULE, delay=HOUR)], conn) == [job.id]
        conn.rollback()
        assert seen(store, job) == (payload(1), 5, JobState.READY)

        assert store.enqueue([asked(2, RESCHEDULE, delay=HOUR)], conn) == [job.id]
        conn.commit()
    assert seen(store, job) == (payload(2), 5, JobState.SCHEDULED)


def test_it_is_known_for_which_requests_another_job_stands(store: SqlStore) -> None:
    store.enqueue([new_job(key="k"), new_job(idempotency_key="once")])
    asked = [new_job(key="k"), new_job(idempotency_key="once"), new_job(key="other"), new_job()]

    assert store.repeats(asked) == {asked[0].id, asked[1].id}
    assert store.repeats([]) == set()
