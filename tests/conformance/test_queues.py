"""Queues and tasks that are paused, fleet-wide; and what people see of queues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.queue import NewPause, Pausable, Pause
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.store import queues
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


@pytest.mark.parametrize("quick", [False, True], ids=["all", "quick"])
def test_queues_tell_what_waits_there_and_who_serves_them(store: SqlStore, clock: SettableClock, quick: bool) -> None:
    store.enqueue([*new_jobs(2, queue="mail"), new_job(queue="mail", delay=timedelta(hours=1))])
    clock.advance("5s")
    store.enqueue([new_job(queue="mail"), new_job(queue="later", delay=timedelta(hours=1))])
    store.open_session(NewSession(id=new_id(), name="one", queues=["mail", "idle"]))
    store.open_session(NewSession(id=new_id(), name="gone", queues=["mail"], lease=timedelta(seconds=1)))
    held = pause(store, QUEUE, "held")
    clock.advance("2s")

    found = {queue.name: queue for queue in store.queues(quick=quick)}

    assert list(found) == ["held", "idle", "later", "mail"]
    assert found["mail"].jobs == {JobState.READY: 3, JobState.SCHEDULED: 1}
    assert found["mail"].oldest_ready == timedelta(seconds=7)
    assert (found["mail"].workers, found["idle"].workers) == (("one",), ("one",))
    assert (found["mail"].paused, found["held"].pause) == (False, held)
    assert (found["later"].oldest_ready, found["idle"].jobs) == (None, {})


def in_all_states(store: SqlStore, team: str | None) -> None:
    """Leave jobs of a team in three queues, some of them ready, and of every other state one."""
    session = opened_session(store)
    failed, _ = (claimed_job(store, session, queue="c", team=team) for _ in range(2))
    store.settle([settle(failed, Failed(Failure(type="E", message="e")), Retry(base="1h"))])
    later, parent = (new_job(queue="b", team=team, delay=timedelta(hours=n)) for n in (1, 2))
    child = new_job(queue="a", team=team, parents=(Edge(parent.id),))
    store.enqueue([*new_jobs(7, queue="a", team=team), *new_jobs(3, queue="b", team=team), later, parent, child])
    store.pause([later.id], "held")


@pytest.mark.parametrize("teams", [(None,), (None, "acme")], ids=["one team", "two teams"])
def test_a_quick_look_at_queues_counts_the_same_as_a_long_one(store: SqlStore, teams: tuple[str | None, ...]) -> None:
    for team in teams:
        in_all_states(store, team)

    for team in (None, "default", "acme"):
        assert store.queues(team, quick=True) == store.queues(team)


def test_a_quick_look_at_more_queues_than_jobs_it_looks_at_sees_the_oldest_of_each(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "FIRST", 2)
    store.enqueue([new_job(queue=queue, priority=1) for queue in "abc"])
    clock.advance("5s")
    store.enqueue([new_job(queue="a", priority=10), new_job(queue="a", priority=5)])

    assert [queue.oldest_ready for queue in store.queues(quick=True)] == [timedelta(seconds=5)] * 3


def test_a_quick_look_says_of_so_many_queues_only_how_long_their_oldest_has_waited(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "QUEUES", 2)
    store.enqueue([new_job(queue=queue) for queue in "bca"])

    assert [queue.oldest_ready is not None for queue in store.queues(quick=True)] == [True, True, False]
    assert all(queue.oldest_ready is not None for queue in store.queues())


def test_a_bound_on_counts_is_never_so_low_that_it_tells_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "LOOKED", 1)
    monkeypatch.setattr(queues, "LOOKED_UP", 1)
    for team in (None, "acme"):
        store.enqueue([new_job(queue=queue, team=team) for queue in "aaabbb"])

    for team in (None, "default", "acme"):
        assert all(not queue.more for queue in store.queues(team, quick=True))


def test_a_quick_look_at_queues_says_of_which_states_there_are_more(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MOST", 4)
    in_all_states(store, None)
    in_all_states(store, "acme")

    for team in (None, "acme"):
        busy, idle, other = store.queues(team, quick=True)
        assert busy.jobs == {JobState.READY: 4, JobState.BLOCKED: 1 if team else 2}
        assert busy.more == {JobState.READY}
        assert idle.jobs[JobState.READY] == (3 if team else 4)
        assert idle.more == (set() if team else {JobState.READY})
        assert other.jobs == dict.fromkeys((JobState.RUNNING, JobState.RETRYING), 1 if team else 2)


def test_a_quick_look_at_the_queues_of_a_team_misses_none_for_all_that_waits_in_others(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MOST", 4)
    store.enqueue([*new_jobs(30, queue="later", team="acme", delay=timedelta(hours=1)), new_job(queue="others")])
    store.enqueue([new_job(queue=queue, team="acme") for queue in ("mail", "news")])
    store.enqueue(new_jobs(30, queue="others", team="rival"))

    later, mail, news = store.queues("acme", quick=True)

    assert (later.name, later.jobs) == ("later", {JobState.SCHEDULED: 4})
    assert (mail.name, mail.jobs) == ("mail", {JobState.READY: 1})
    assert (set(later.more), set(mail.more)) == ({JobState.SCHEDULED}, set())
    assert (news.name, news.jobs) == ("news", {JobState.READY: 1})
    assert (mail.oldest_ready, news.oldest_ready) == (timedelta(0), timedelta(0))


def test_a_quick_look_says_that_there_may_be_more_where_others_have_more_than_it_looks_at(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MOST", 4)
    store.enqueue([*new_jobs(5, team="acme"), *new_jobs(5, team="acme", delay=timedelta(hours=1))])
    clock.advance("1s")
    store.enqueue([*new_jobs(3), *new_jobs(3, delay=timedelta(hours=1))])
    store.enqueue([*new_jobs(2, queue="mail", team="acme"), new_job(queue="mail")])

    busy, mail = store.queues("default", quick=True)

    assert busy.jobs == {JobState.READY: 0, JobState.SCHEDULED: 0}  # nobody has passed over what is another team's
    assert busy.more == {JobState.READY, JobState.SCHEDULED}
    assert (mail.jobs, set(mail.more)) == ({JobState.READY: 1}, set())
