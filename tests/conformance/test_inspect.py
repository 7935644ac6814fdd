"""Inspect: look-ups over unfinished and finished jobs alike."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from mainspring.clock import microseconds
from mainspring.model.failure import Failure
from mainspring.model.ids import first_id, uuid7
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import inspect
from mainspring.store.database import Row
from mainspring.store.protocol import JobFilter
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, end, new_id, new_job, new_jobs, opened_session


def test_jobs_are_found_wherever_they_are(store: SqlStore) -> None:
    finished = claimed_job(store)
    store.settle([settle(finished, Succeeded("1"))])
    waiting = new_job()
    store.enqueue([waiting])

    found = store.get([finished.id, waiting.id, new_id()])

    assert {job.id: job.state for job in found.values()} == {
        finished.id: JobState.SUCCEEDED,
        waiting.id: JobState.READY,
    }
    assert store.get([]) == {}


def test_pages_walk_from_the_newest_to_the_oldest(store: SqlStore) -> None:
    jobs = new_jobs(7)
    store.enqueue(jobs)
    for job in store.claim(opened_session(store), "default", 3):
        store.settle([settle(job, Succeeded("1"))])
    newest_first = [job.id for job in reversed(jobs)]

    one = store.page(limit=4)
    two = store.page(before=one[-1].id, limit=4)

    assert [job.id for job in [*one, *two]] == newest_first
    assert store.page(before=two[-1].id) == []


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (JobFilter(state=JobState.READY), {"b", "c"}),
        (JobFilter(state=JobState.SUCCEEDED), {"a"}),
        (JobFilter(queue="mail"), {"c"}),
        (JobFilter(task="other"), {"b"}),
        (JobFilter(key="a"), {"a"}),
        (JobFilter(state=JobState.FAILED), set()),
    ],
)
def test_pages_can_be_filtered(store: SqlStore, match: JobFilter, expected: set[str]) -> None:
    finished = claimed_job(store, key="a")
    store.settle([settle(finished, Succeeded("1"))])
    store.enqueue([new_job(key="b", task="other"), new_job(key="c", queue="mail")])

    assert {job.key for job in store.page(match)} == expected


def test_pages_go_by_when_jobs_were_made(store: SqlStore, clock: SettableClock) -> None:
    made = [new_job(id=first_id(clock.now() + n * timedelta(minutes=1))) for n in range(4)]
    store.enqueue(made)
    for job in store.claim(opened_session(store), "default", 2):
        store.settle([settle(job, Succeeded("1"))])
    since, until = (clock.now() + n * timedelta(minutes=1) for n in (1, 3))

    def found(match: JobFilter) -> list[UUID]:
        return [job.id for job in store.page(match)]

    assert found(JobFilter(since=since)) == [made[3].id, made[2].id, made[1].id]
    assert found(JobFilter(until=until)) == [made[2].id, made[1].id, made[0].id]
    assert found(JobFilter(since=since, until=until)) == [made[2].id, made[1].id]


def test_pages_go_by_when_jobs_ended(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([new_job(id=uuid7(microseconds(clock.now()) // 1_000, n)) for n in range(4)])
    ended = []
    for job in store.claim(opened_session(store), "default", 3):
        store.settle([settle(job, Succeeded("1"))])
        ended.append((job.id, clock.now()))
        clock.advance("1m")

    def found(match: JobFilter) -> set[UUID]:
        return {job.id for job in store.page(match)}

    (_, second), (_, third) = ended[1:]
    assert found(JobFilter(finished_since=second)) == {ended[1][0], ended[2][0]}
    assert found(JobFilter(finished_until=second)) == {ended[0][0]}
    assert found(JobFilter(finished_since=second, finished_until=third)) == {ended[1][0]}
    assert found(JobFilter(finished_since=second, state=JobState.READY)) == set()


def test_a_job_that_was_made_by_a_clock_far_ahead_has_ended_when_it_did(store: SqlStore, clock: SettableClock) -> None:
    began = clock.now()
    ahead = new_job(id=first_id(began + timedelta(hours=3)))
    store.enqueue([ahead])
    end(store, ahead)
    clock.advance("1m")

    (found,) = store.page(JobFilter(finished_since=began, finished_until=clock.now()))
    assert found.id == ahead.id


def failed_with(store: SqlStore, message: str, retry: Retry | None = None, *, type: str = "ValueError") -> UUID:  # noqa: A002
    job = claimed_job(store)
    failure = Failure(type=type, message=message, traceback="File nowhere.py, in a_line_of_code")
    store.settle([settle(job, Failed(failure), retry or Retry(max_attempts=1))])
    return job.id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no luck", {"dead", "retrying"}),
        ("NO LUCK", {"dead", "retrying"}),
        ("valueerror: no luck", {"dead", "retrying"}),
        ("KeyErr", {"odd"}),
        ('"quoted" \\ and\nbroken', {"odd"}),
        ("and\\nbroken", set()),
        ("nbroken", set()),
        ("u0001", set()),
        ("text\t\x01", {"odd"}),
        ("ünï", {"odd"}),
        ("BROKEN ünï TEXT", {"odd"}),
        ("ÜNÏ", set()),
        ("nowhere.py", set()),
        ('","message":"', set()),
        ("%", set()),
    ],
)
def test_pages_go_by_what_an_error_says(store: SqlStore, text: str, expected: set[str]) -> None:
    failed = {
        "dead": failed_with(store, "no luck"),
        "retrying": failed_with(store, "No luck", Retry(base="1h")),
        "odd": failed_with(store, 'a "quoted" \\ and\nbroken ünï text\t\x01', type="KeyError"),
    }
    store.settle([settle(claimed_job(store), Succeeded("1"))])
    store.enqueue(new_jobs(1))

    found = {job.id for job in store.page(JobFilter(error=text))}

    assert found == {failed[name] for name in expected}
    dead = {job.id for job in store.page(JobFilter(error=text, state=JobState.FAILED))}
    assert dead == found - {failed["retrying"]}


@pytest.fixture(params=[0, 1_000], ids=["many", "few"])
def short_sighted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one look go through five rows of either table."""
    monkeypatch.setattr(inspect, "LOOKED", 5)
    monkeypatch.setattr(inspect, "FEW", request.param)


MATCHES = {
    "task": JobFilter(task="rare"),
    "of a team": JobFilter(task="rare", team="acme"),
    "of the default team": JobFilter(task="rare", team="default"),
    "ready": JobFilter(task="rare", state=JobState.READY),
    "scheduled": JobFilter(task="rare", state=JobState.SCHEDULED),
    "failed": JobFilter(task="rare", state=JobState.FAILED),
    "error": JobFilter(error="no luck"),
    "none": JobFilter(key="no such key"),
    "any": JobFilter(),
}


def mixed(store: SqlStore) -> None:
    """Make jobs in several states, of two teams, of which every seventh is of a rare task."""
    session = opened_session(store)
    for n in range(42):
        team, task = ("acme" if n % 2 else None), ("rare" if n % 7 == 0 else "plain")
        store.enqueue([new_job(task=task, team=team, queue=f"{n % 3}", delay=timedelta(hours=n % 4 // 3))])
    for job in store.claim(session, "0", 50):
        store.settle(
            [settle(job, Failed(Failure(type="E", message="no luck")) if job.task == "rare" else Succeeded("1"))]
        )


@pytest.mark.usefixtures("short_sighted")
@pytest.mark.parametrize("match", MATCHES.values(), ids=MATCHES.keys())
def test_one_look_is_not_far_and_says_where_to_go_on(store: SqlStore, match: JobFilter) -> None:
    mixed(store)
    everything = store.page(limit=1_000)
    seen: list[Job] = []
    before, looks = None, 0

    while looks == 0 or before is not None:
        looks += 1
        page = store.look(match, before=before, limit=3)
        assert before is None or page.before is None or page.before < before
        seen, before = [*seen, *page.jobs], page.before

    assert [job.id for job in seen] == [job.id for job in everything if fits(job, match)]
    assert [job.id for job in store.page(match, limit=1_000)] == [job.id for job in seen]


def fits(job: Job, match: JobFilter) -> bool:
    return (
        match.task in (None, job.task)
        and match.state in (None, job.state)
        and match.key in (None, job.key)
        and match.team in (None, job.team or "default")
        and (match.error is None or job.failure is not None)
    )


def test_one_look_ends_where_it_has_seen_enough_though_nothing_fits(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "LOOKED", 5)
    jobs = new_jobs(12)
    store.enqueue(jobs)

    first = store.look(JobFilter(task="none"))
    second = store.look(JobFilter(task="none"), before=first.before)

    assert (first.jobs, first.before) == ([], jobs[-6].id)
    assert (second.jobs, second.before) == ([], jobs[0].id)
    assert store.look(JobFilter(task="none"), before=second.before).before is None


def test_one_look_without_a_filter_goes_as_far_as_it_takes(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "LOOKED", 2)
    jobs = new_jobs(6)
    store.enqueue(jobs)

    assert [job.id for job in store.look(limit=5).jobs] == [job.id for job in reversed(jobs[1:])]


def test_jobs_that_have_become_many_since_they_were_counted_are_not_taken_for_few(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "FEW", 3)
    jobs, read = new_jobs(5), store._db.read

    def read_while_more_come(query: str, **given: object) -> list[Row]:
        found = read(query, **given)
        if query == "few":
            store.enqueue(jobs[3:])
        return found

    store.enqueue(jobs[:3])
    monkeypatch.setattr(store._db, "read", read_while_more_come)
    page = store.look(JobFilter(state=JobState.READY))

    assert ([job.id for job in page.jobs], page.before) == ([job.id for job in reversed(jobs)], None)


def test_unfinished_jobs_are_counted_by_queue_and_state(store: SqlStore) -> None:
    store.enqueue([*new_jobs(2), new_job(queue="mail", delay=timedelta(hours=1))])
    finished = claimed_job(store, queue="gone")
    store.settle([settle(finished, Succeeded("1"))])

    assert store.counts() == {"default": {JobState.READY: 2}, "mail": {JobState.SCHEDULED: 1}}


def test_attempts_tell_the_whole_story(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=timedelta(days=1))
    job = claimed_job(store, session)
    store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry(base="1s"))])
    clock.advance("1s")
    store.promote()
    (again,) = store.claim(session, "default", 1)

    while_running = store.attempts(job.id)
    store.settle([settle(again, Succeeded("1"))])
    at_the_end = store.attempts(job.id)

    assert [(past.number, past.outcome) for past in while_running] == [(1, "failed"), (2, None)]
    assert [(past.number, past.outcome) for past in at_the_end] == [(1, "failed"), (2, "succeeded")]
    assert [past.failure is None for past in at_the_end] == [False, True]
    assert {past.session for past in at_the_end} == {session}


def test_an_unknown_job_has_no_attempts(store: SqlStore) -> None:
    assert store.attempts(new_id()) == []
