"""Teams: whose a job is stays with it through all its life, and so does what is kept beside it."""

from __future__ import annotations

import pytest

from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Cancelled, Failed, Outcome, Succeeded, TimedOut
from mainspring.model.retry import Retry
from mainspring.store.protocol import JobFilter
from mainspring.store.sql import SqlStore
from tests.support.factories import claimed_job, new_job, opened_session, stored

BOOM = Failure(type="ValueError", message="boom")


def test_a_job_stays_its_teams_until_its_end_and_through_a_replay(store: SqlStore) -> None:
    job = claimed_job(store, team="acme", notify='["x"]', trace="00-1")
    assert (job.team, job.notify, job.trace) == ("acme", '["x"]', "00-1")

    store.settle([settle(job, Failed(BOOM), Retry(max_attempts=1))])
    done = stored(store, job.id)
    assert (done.state, done.team, done.notify) == (JobState.FAILED, "acme", '["x"]')

    store.replay([job.id])
    again = stored(store, job.id)
    assert (again.state, again.team, again.notify) == (JobState.READY, "acme", '["x"]')


def test_a_retry_leaves_it_its_teams(store: SqlStore) -> None:
    job = claimed_job(store, team="acme", notify='["x"]')

    store.settle([settle(job, Failed(BOOM), Retry(max_attempts=2))])

    waiting = stored(store, job.id)
    assert (waiting.state, waiting.team, waiting.notify) == (JobState.RETRYING, "acme", '["x"]')


def test_pages_show_one_teams_jobs_only_if_asked(store: SqlStore) -> None:
    session = opened_session(store)
    jobs = {team: claimed_job(store, session, team=team) for team in ("acme", "beta", None)}
    store.settle([settle(jobs["beta"], Succeeded("1"))])
    waiting = new_job(team="acme")
    store.enqueue([waiting])

    def page(team: str | None) -> set[object]:
        return {job.id for job in store.page(JobFilter(team=team))}

    assert page("acme") == {jobs["acme"].id, waiting.id}
    assert page("beta") == {jobs["beta"].id}
    assert page("default") == {jobs[None].id}
    assert page(None) == {waiting.id, *(job.id for job in jobs.values())}


@pytest.mark.parametrize(
    "outcome",
    [
        Succeeded("1", details='{"exit_code":0}'),
        Failed(BOOM, retryable=False, details='{"exit_code":0}'),
        Failed(BOOM, details='{"exit_code":0}'),
        TimedOut(BOOM, details='{"exit_code":0}'),
        Cancelled(details='{"exit_code":0}'),
    ],
    ids=lambda outcome: f"{outcome.name}-{getattr(outcome, 'retryable', '')}",
)
def test_what_an_attempt_says_of_itself_is_kept_with_it(store: SqlStore, outcome: Outcome) -> None:
    job = claimed_job(store)

    store.settle([settle(job, outcome, Retry(max_attempts=2))])

    (attempt,) = store.attempts(job.id)
    assert attempt.details == '{"exit_code":0}'


def test_what_an_attempt_says_of_itself_survives_a_replay(store: SqlStore) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Failed(BOOM, retryable=False, details='{"exit_code":3}'))])

    store.replay([job.id])

    (attempt,) = store.attempts(job.id)
    assert attempt.details == '{"exit_code":3}'
