"""Queues and tasks that are paused, fleet-wide; and what people see of queues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.model.queue import NewPause, Pausable, Pause
from mainspring.model.session import NewSession
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, new_jobs, opened_session, stored

QUEUE, TASK = Pausable


def pause(store: SqlStore, kind: Pausable, name: str, reason: str | None = None, by: str = "ada@desk") -> Pause:
    return store.pause_claims(NewPause(kind=kind, name=name, by=by, reason=reason))


def test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed(store: SqlStore) -> None:
    mail, other = new_job(queue="mail"), new_job()
    store.enqueue([mail, other])
    session = opened_session(store)
    pause(store, QUEUE, "mail")

    assert store.claim(session, "mail", 10) == []
    assert [job.id for job in store.claim(session, "default", 10)] == [other.id]
    assert store.resume_claims(QUEUE, "mail")
    assert [job.id for job in store.claim(session, "mail", 10)] == [mail.id]


def test_no_job_of_a_paused_task_is_claimed_and_the_others_are(store: SqlStore) -> None:
    jobs = [new_job(task=task) for task in ("greet", "bill", "greet", "ship")]
    store.enqueue(jobs)
    session = opened_session(store)
    pause(store, TASK, "greet")

    assert [job.id for job in store.claim(session, "default", 1, ["greet", "bill"])] == [jobs[1].id]
    assert [job.id for job in store.claim(session, "default", 10)] == [jobs[3].id]
    assert store.resume_claims(TASK, "greet")
    assert [job.id for job in store.claim(session, "default", 10)] == [jobs[0].id, jobs[2].id]


def test_a_queue_and_a_task_of_one_name_are_paused_apart(store: SqlStore) -> None:
    store.enqueue([new_job(task="mail"), new_job(task="greet", queue="mail")])
    session = opened_session(store)
    pause(store, TASK, "mail")

    assert store.claim(session, "default", 10) == []
    assert len(store.claim(session, "mail", 10)) == 1
    assert not store.resume_claims(QUEUE, "mail")
    assert len(store.pauses()) == 1


def test_what_runs_goes_on_when_its_queue_is_paused(store: SqlStore) -> None:
    job = claimed_job(store)
    pause(store, QUEUE, "default")
    pause(store, TASK, "greet")

    assert store.settle([settle(job, Succeeded("1"))]) == {job.id}
    assert stored(store, job.id).state is JobState.SUCCEEDED


def test_a_pause_says_who_why_and_since_when(store: SqlStore, clock: SettableClock) -> None:
    first = pause(store, QUEUE, "mail", "the server is down")
    since = clock.now()
    clock.advance("1h")

    again = pause(store, QUEUE, "mail", "still down", by="bob@desk")

    assert first == Pause(QUEUE, "mail", "ada@desk", "the server is down", since)
    assert again == Pause(QUEUE, "mail", "bob@desk", "still down", since)
    assert store.pauses() == [again]


def test_pauses_are_listed_queues_first(store: SqlStore) -> None:
    for kind, name in ((TASK, "a"), (QUEUE, "z"), (QUEUE, "b")):
        pause(store, kind, name)

    assert [(found.kind, found.name) for found in store.pauses()] == [(QUEUE, "b"), (QUEUE, "z"), (TASK, "a")]


def test_a_resume_of_what_is_not_paused_says_so(store: SqlStore) -> None:
    assert not store.resume_claims(QUEUE, "mail")


@pytest.mark.parametrize(
    "wrong", [{"name": "no space"}, {"name": ""}, {"by": ""}, {"by": "  "}, {"by": None}, {"reason": 7}]
)
def test_a_pause_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=r"^expected "):
        NewPause(**{"kind": QUEUE, "name": "mail", "by": "ada", **wrong})  # type: ignore[arg-type]


def test_a_resume_is_heard_by_whoever_waits_for_the_queue(store: SqlStore) -> None:
    pause(store, QUEUE, "mail")
    listener = store.listen({"mail", "default"})

    store.resume_claims(QUEUE, "mail")

    assert "mail" in listener.wait(5)
    listener.close()


def test_the_resume_of_a_task_is_heard_by_all_queues_that_are_served(store: SqlStore) -> None:
    store.open_session(NewSession(id=new_id(), name="worker", queues=["mail"], tasks=["greet"]))
    pause(store, TASK, "greet")
    listener = store.listen({"mail"})

    store.resume_claims(TASK, "greet")

    assert "mail" in listener.wait(5)
    listener.close()


def test_queues_tell_what_waits_there_and_who_serves_them(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([*new_jobs(2, queue="mail"), new_job(queue="mail", delay=timedelta(hours=1))])
    clock.advance("5s")
    store.enqueue([new_job(queue="mail"), new_job(queue="later", delay=timedelta(hours=1))])
    store.open_session(NewSession(id=new_id(), name="one", queues=["mail", "idle"]))
    store.open_session(NewSession(id=new_id(), name="gone", queues=["mail"], lease=timedelta(seconds=1)))
    held = pause(store, QUEUE, "held")
    clock.advance("2s")

    found = {queue.name: queue for queue in store.queues()}

    assert list(found) == ["held", "idle", "later", "mail"]
    assert found["mail"].jobs == {JobState.READY: 3, JobState.SCHEDULED: 1}
    assert found["mail"].oldest_ready == timedelta(seconds=7)
    assert (found["mail"].workers, found["idle"].workers) == (("one",), ("one",))
    assert (found["mail"].paused, found["held"].pause) == (False, held)
    assert (found["later"].oldest_ready, found["idle"].jobs) == (None, {})
