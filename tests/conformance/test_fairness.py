"""Fairness: jobs with a fair key take turns, so that nobody's flood keeps the others waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mainspring.model.breaker import Breaker, Trip
from mainspring.model.failure import Failure
from mainspring.model.fairness import TURN
from mainspring.model.job import IfTaken, Job, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit, Want, want_of
from mainspring.model.outcome import Cancelled, Expanded, Failed, Returned, Succeeded, Suspended
from mainspring.model.retry import Retry
from mainspring.model.workflow import Plan, encode_plan
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected, execute, table
from tests.support.factories import new_id, new_job, new_jobs, opened_session, stored
from tests.support.refusal import refusing

SECOND = timedelta(seconds=1)
LONG = timedelta(days=1)


@pytest.fixture
def session(store: SqlStore) -> UUID:
    return opened_session(store, lease=LONG)


def keys(jobs: list[Job]) -> str:
    """Return the fair keys of *jobs*, for short; one without is a dash."""
    return "".join(job.fair or "-" for job in jobs)


def fair_jobs(text: str, **changes: object) -> list[NewJob]:
    """Return a job for each letter of *text*, which is its fair key."""
    return [new_job(fair=letter, **changes) for letter in text]


def taken(store: SqlStore, session: UUID, queue: str, limit: int, tasks: Collection[str] | None = None) -> list[Job]:
    """Claim jobs and start them, as a worker does."""
    jobs = store.claim(session, queue, limit, tasks)
    store.reach(jobs)
    return jobs


def finish(store: SqlStore, jobs: list[Job]) -> None:
    store.settle([settle(job, Succeeded("null")) for job in jobs])


def test_jobs_take_turns_by_their_key_and_keep_their_order_within_it(store: SqlStore, session: UUID) -> None:
    jobs = fair_jobs("aaaabbc")
    store.enqueue(jobs)

    claimed = taken(store, session, "default", 10)

    assert sorted(keys(claimed)[:3]) == ["a", "b", "c"]
    assert sorted(keys(claimed)[3:5]) == ["a", "b"]
    assert keys(claimed)[5:] == "aa"
    for key in "abc":
        mine = [job.id for job in jobs if job.fair == key]
        assert [job.id for job in claimed if job.fair == key] == mine


def test_one_who_comes_after_a_flood_is_next(store: SqlStore, session: UUID, clock: SettableClock) -> None:
    store.enqueue(fair_jobs("a" * 1_000))
    taken(store, session, "default", 300)
    clock.advance(SECOND)

    store.enqueue(fair_jobs("b"))

    assert "b" in keys(taken(store, session, "default", 2))


def test_one_who_was_away_has_no_claim_to_what_he_did_not_need(store: SqlStore, session: UUID) -> None:
    """Whether or not he had been there before."""
    store.enqueue([*fair_jobs("b"), *fair_jobs("a" * 300)])
    taken(store, session, "default", 101)

    store.enqueue(fair_jobs("b" * 100))

    assert 9 <= Counter(keys(taken(store, session, "default", 20)))["a"] <= 11


def test_one_who_sends_the_next_as_soon_as_one_is_taken_does_not_go_before_all_others(
    store: SqlStore, session: UUID
) -> None:
    """His line is never longer than one: only that it is remembered how far it was keeps him from being first again."""
    store.enqueue(fair_jobs("b" * 20))
    order = ""
    for _ in range(20):
        store.enqueue(fair_jobs("a"))
        order += keys(taken(store, session, "default", 1))

    assert 8 <= order.count("b") <= 12


def test_a_key_that_weighs_more_has_more_of_its_jobs_in_a_turn(store: SqlStore, session: UUID) -> None:
    store.enqueue([*fair_jobs("a" * 100, weight=3), *fair_jobs("b" * 100)])

    shares = Counter(keys(taken(store, session, "default", 40)))

    assert 29 <= shares["a"] <= 31


def test_what_one_leaves_is_for_the_others(store: SqlStore, session: UUID) -> None:
    store.enqueue([*fair_jobs("a", weight=100), *fair_jobs("b" * 50)])

    assert len(taken(store, session, "default", 51)) == 51


def test_a_job_without_a_key_goes_before_those_that_have_one(
    store: SqlStore, session: UUID, clock: SettableClock
) -> None:
    store.enqueue(fair_jobs("aa"))
    clock.advance(SECOND)
    plain = new_jobs(2)
    store.enqueue(plain)

    claimed = taken(store, session, "default", 4)

    assert [job.id for job in claimed[:2]] == [job.id for job in plain]
    assert keys(claimed) == "--aa"


def test_a_larger_priority_goes_first_whatever_the_turn(store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("ab"))
    store.enqueue(fair_jobs("aaa", priority=10))

    assert keys(taken(store, session, "default", 3)) == "aaa"


def test_turns_of_one_priority_say_nothing_about_another(store: SqlStore, session: UUID) -> None:
    """A flood among the urgent ones must not make its sender, or anybody, wait among the others."""
    store.enqueue(fair_jobs("a" * 100, priority=10))
    taken(store, session, "default", 100)
    store.enqueue([*fair_jobs("b" * 5), *fair_jobs("a")])

    assert "a" in keys(taken(store, session, "default", 2))


def test_what_another_kind_of_worker_takes_ahead_of_a_flood_does_not_move_newcomers_behind_it(
    store: SqlStore, session: UUID
) -> None:
    store.enqueue(fair_jobs("a" * 500, task="slow"))
    store.enqueue(fair_jobs("a" * 400 + "b", task="quick"))
    assert len(taken(store, session, "default", 401, tasks=["quick"])) == 401

    store.enqueue(fair_jobs("b", task="slow"))

    assert "b" in keys(taken(store, session, "default", 2, tasks=["slow"]))


def test_a_job_that_nobody_can_take_does_not_hold_turns_back(store: SqlStore, session: UUID) -> None:
    """It is always the first that is ready. If turns began there, whoever comes new would go before all others."""
    store.enqueue([new_job(fair="x", task="unknown")])
    store.enqueue(fair_jobs("a" * 400))
    taken(store, session, "default", 200, tasks=["greet"])

    store.enqueue(fair_jobs("b" * 100))

    assert 4 <= Counter(keys(taken(store, session, "default", 10, tasks=["greet"])))["a"] <= 6


def test_a_delayed_job_is_given_its_turn_when_it_is_due(store: SqlStore, session: UUID, clock: SettableClock) -> None:
    later = fair_jobs("a" * 100, delay=SECOND)
    store.enqueue(later)
    store.enqueue(fair_jobs("a"))
    store.enqueue(fair_jobs("b" * 3))
    assert "a" in keys(taken(store, session, "default", 2))

    clock.advance(SECOND)
    assert store.promote().count == 100
    assert store.promote().count == 0

    claimed = taken(store, session, "default", 4)
    assert keys(claimed).count("a") >= 2
    assert [job.id for job in claimed if job.fair == "a"] == [job.id for job in later[: keys(claimed).count("a")]]
    assert stored(store, later[-1].id).state is JobState.READY


def test_a_retry_is_given_a_turn_when_it_is_due(store: SqlStore, session: UUID, clock: SettableClock) -> None:
    store.enqueue(fair_jobs("a"))
    (job,) = taken(store, session, "default", 1)
    failed = Failed(Failure(type="ValueError", message="no"), retryable=True)
    store.settle([settle(job, failed, Retry(max_attempts=3, base="1s"), 1.0)])
    store.enqueue(fair_jobs("b" * 50))
    taken(store, session, "default", 25)
    clock.advance(SECOND)

    assert store.promote().count == 1

    assert "a" in keys(taken(store, session, "default", 2))


def test_two_nodes_that_promote_the_same_jobs_give_each_one_turn(url: str, clock: SettableClock) -> None:
    one, other = open_store(url, clock=clock), open_store(url, clock=clock)
    one.enqueue(fair_jobs("ab" * 10, delay=SECOND))
    clock.advance(SECOND)

    assert one.promote().count + other.promote().count == 20

    assert len(other.claim(opened_session(other), "default", 40)) == 20
    one.close()
    other.close()


def test_a_job_that_a_worker_gave_back_keeps_its_turn(store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("aaa" + "bbb"))
    first, _, _ = taken(store, session, "default", 3)
    store.settle([settle(first, Returned())])

    assert taken(store, session, "default", 1)[0].id == first.id


@pytest.mark.parametrize("leave", ["cancel", "pause", "expire"])
def test_a_flood_that_never_had_its_turn_does_not_count(
    store: SqlStore, session: UUID, clock: SettableClock, leave: str
) -> None:
    flood = fair_jobs("a" * 100, expires=SECOND)
    store.enqueue(flood)
    store.enqueue(fair_jobs("b" * 50))
    ids = [job.id for job in flood]
    if leave == "expire":
        clock.advance(SECOND)
        store.expire()
    else:
        getattr(store, leave)(ids)

    store.enqueue(fair_jobs("a"))

    assert "a" in keys(taken(store, session, "default", 2))


def test_what_is_cancelled_after_its_turn_has_been_paid_for(url: str, store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("aaa"))
    claimed = taken(store, session, "default", 3)
    following = f"SELECT next FROM {table(url, 'lines')}"
    before = execute(url, following)
    store.settle([settle(job, Cancelled()) for job in claimed])

    assert execute(url, following) == before


def test_what_is_resumed_or_replayed_stands_in_line_anew(store: SqlStore, session: UUID) -> None:
    held, dead = fair_jobs("ac")
    store.enqueue([held, dead])
    store.pause([held.id])
    store.cancel([dead.id])
    store.enqueue(fair_jobs("b" * 50))
    taken(store, session, "default", 25)

    assert store.resume([held.id]) == {held.id: JobState.SCHEDULED}
    assert store.replay([dead.id]) == {dead.id: JobState.SCHEDULED}
    assert store.promote().count == 2

    assert set(keys(taken(store, session, "default", 4))) == {"a", "b", "c"}


def test_a_job_with_a_key_of_its_own_gets_its_turn_from_promote(store: SqlStore, session: UUID) -> None:
    job = new_job(fair="a", key="k")
    store.enqueue([job])
    assert store.enqueue([new_job(fair="a", key="k", if_taken=IfTaken.RESCHEDULE)]) == [job.id]
    assert stored(store, job.id).state is JobState.SCHEDULED

    assert store.promote().count == 1

    assert [one.id for one in taken(store, session, "default", 1)] == [job.id]


def test_a_job_of_a_callers_transaction_gets_its_turn_from_promote(url: str, real_store: SqlStore) -> None:
    job = new_job(fair="a")
    with connected(url) as connection:
        real_store.enqueue([job], connection)
        connection.commit()

    assert real_store.promote().count == 1

    assert [one.id for one in real_store.claim(opened_session(real_store), "default", 1)] == [job.id]


def test_where_a_queue_ages_its_jobs_turns_play_no_part(store: SqlStore, session: UUID, clock: SettableClock) -> None:
    store.set_ageing("default", 10 * SECOND)
    for key in "aaab":
        store.enqueue(fair_jobs(key))
        clock.advance(SECOND)
    store.enqueue(fair_jobs("c", delay=SECOND))
    clock.advance(SECOND)
    store.promote()

    assert keys(taken(store, session, "default", 5)) == "aaabc"


def test_turns_outlive_that_the_queue_is_ranked_anew(url: str, store: SqlStore, session: UUID) -> None:
    """As when somebody who had not heard that ageing is off has written a job that is ranked by it."""
    store.set_ageing("default", 10 * SECOND)
    late = new_job()
    store.enqueue([late])
    store.set_ageing("default", None)
    store.enqueue(fair_jobs("aaab"))
    execute(url, f"UPDATE {table(url, 'jobs')} SET rank = 1 WHERE id = '{late.id}'")

    assert store.rerank() == 1

    assert "b" in keys(taken(store, session, "default", 3))


def test_lines_that_have_fallen_behind_are_pruned_and_all_of_them_when_nobody_waits(
    url: str, store: SqlStore, session: UUID
) -> None:
    store.enqueue(fair_jobs("abc" + "d" * 4))
    finish(store, taken(store, session, "default", 6))
    lines = f"SELECT fair FROM {table(url, 'lines')}"

    store.prune(LONG)
    assert execute(url, lines) == [("d",)]

    finish(store, taken(store, session, "default", 1))
    store.prune(LONG)
    assert execute(url, lines) == []


def test_a_line_in_which_somebody_stands_is_not_pruned(url: str, store: SqlStore, session: UUID) -> None:
    """Or the next one who joins it could stand beside him."""
    store.enqueue(fair_jobs("b"))
    taken(store, session, "default", 1)
    store.enqueue(fair_jobs("a"))
    store.prune(LONG)
    store.enqueue(fair_jobs("a"))

    ranks = execute(url, f"SELECT DISTINCT rank FROM {table(url, 'jobs')} WHERE fair = 'a'")
    assert len(ranks) == 2


def test_lines_that_lead_nowhere_are_pruned(url: str, store: SqlStore, session: UUID) -> None:
    """Those of jobs that were all cancelled unclaimed, and those of a queue that ages its jobs."""
    unclaimed = fair_jobs("abc", queue="never")
    store.enqueue(unclaimed)
    store.cancel([job.id for job in unclaimed])
    store.set_ageing("ageing", 10 * SECOND)
    store.enqueue(fair_jobs("aab", queue="ageing"))

    store.prune(LONG)

    assert execute(url, f"SELECT * FROM {table(url, 'lines')}") == []


def test_those_of_equal_turn_go_by_age(url: str, store: SqlStore, session: UUID) -> None:
    """Wherever their rows lie: PostgreSQL puts new ones where old ones have been."""
    first = fair_jobs("abcdefgh")
    store.enqueue(first)
    store.cancel([job.id for job in first[::2]])
    if url.startswith("postgres"):
        execute(url, "VACUUM mainspring.jobs")
    later = fair_jobs("ijkl")
    store.enqueue(later)

    behind = [store.jobs_ahead(job.id, 100) for job in [*first[1::2], *later]]
    order = [job.id for _ in range(8) for job in store.claim(session, "default", 1)]

    assert order == [job.id for job in [*first[1::2], *later]]
    assert behind == list(range(8))


def test_a_task_that_comes_new_begins_where_the_others_are(store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("x" * 200, task="old"))
    finish(store, taken(store, session, "default", 200))

    store.enqueue(fair_jobs("x" * 150, task="new"))
    store.enqueue(fair_jobs("y", task="old"))

    assert keys(taken(store, session, "default", 200)).index("y") <= 2


def started(store: SqlStore, session: UUID, wants: Sequence[Want], limit: int) -> list[Job]:
    """Claim jobs that want something of limits, and return those that may start."""
    holds = tuple(want.key for want in wants if want.concurrency)
    breaker = next((want for want in wants if want.rule), None)
    jobs = [replace(job, holds=holds, breaker=breaker) for job in store.claim(session, "default", limit)]
    admitted = store.admit([(job, wants) for job in jobs])
    store.reach([job for job in jobs if job.id in admitted])
    return [job for job in jobs if job.id in admitted]


def test_a_flood_that_waits_for_a_limit_has_not_had_its_turns(store: SqlStore, session: UUID) -> None:
    """Workers claim it and set it aside in no time; whoever comes then must not stand behind all of it."""
    shared = [Limit("smtp", concurrency=2).want({})]
    store.enqueue(fair_jobs("x" * 300))
    running = [job for _ in range(2) for job in started(store, session, shared, 100)]
    assert store.counts()["default"][JobState.BLOCKED] == 198

    store.enqueue(fair_jobs("y"))

    ended = 0
    while "y" not in keys(running):
        finish(store, [running.pop(0)])
        running += started(store, session, shared, 100)
        ended += 1
    assert ended <= 4


@pytest.mark.parametrize("way", ["a workflow", "a wait for a signal"])
def test_what_waits_for_other_than_a_limit_has_had_its_turn_and_holds_up_no_others(
    store: SqlStore, session: UUID, way: str
) -> None:
    store.enqueue(fair_jobs("w", task="waiter"))
    (waiter,) = taken(store, session, "default", 1)
    members = (new_job(workflow=waiter.id, queue="other"),)
    plan = encode_plan(Plan(begun=True))
    outcome = Expanded(members, plan) if way == "a workflow" else Suspended(LONG, "go")
    store.settle([settle(waiter, outcome)])
    assert stored(store, waiter.id).state is JobState.BLOCKED
    for _ in range(50):
        store.enqueue(fair_jobs("a"))
        finish(store, taken(store, session, "default", 1))

    store.enqueue(fair_jobs("a" * 5))
    store.enqueue(fair_jobs("b" * 40, task="bill"))

    assert keys(taken(store, session, "default", 12)).count("a") == 5


def test_a_flood_that_waits_for_a_breaker_has_not_had_its_turns(
    store: SqlStore, session: UUID, clock: SettableClock
) -> None:
    breaker = [want_of(Breaker("b", open_at="50% of 4 in 1m", cooldown="30s"), {})]
    store.trip_breaker(Trip(key="b", lasting=timedelta(minutes=1), by="ada"))
    store.enqueue(fair_jobs("x" * 100))
    started(store, session, breaker, 100)
    clock.advance("61s")
    store.release()
    store.enqueue(fair_jobs("y"))

    ended = ""
    while "y" not in ended:
        running = started(store, session, breaker, 8)
        finish(store, running)
        ended += keys(running)
    assert len(ended) <= 10


def test_one_who_puts_his_job_off_again_and_again_pays_for_one_turn(store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("b" * 100))
    job = new_job(fair="a", key="k")
    store.enqueue([job])
    store.promote()
    for _ in range(40):
        store.enqueue([new_job(fair="a", key="k", if_taken=IfTaken.RESCHEDULE)])
        store.promote()
    store.enqueue(fair_jobs("a"))

    assert keys(taken(store, session, "default", 6)).count("a") == 2


def test_a_job_that_is_given_another_priority_joins_the_line_of_that(store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("x" * 100))
    finish(store, taken(store, session, "default", 100))
    job = new_job(fair="y", key="k")
    store.enqueue([job])
    store.promote()
    store.enqueue(fair_jobs("x" * 50, priority=10))

    store.enqueue([new_job(fair="y", key="k", priority=10, if_taken=IfTaken.REPLACE)])
    store.promote()

    assert keys(taken(store, session, "default", 60)).index("y") <= 2


def test_a_claim_outlives_that_nobody_can_note_how_far_it_got(url: str, store: SqlStore, session: UUID) -> None:
    store.enqueue(fair_jobs("a"))
    with refusing(url, "INSERT", "turns"):
        assert keys(taken(store, session, "default", 1)) == "a"


def test_a_line_that_somebody_has_locked_holds_up_no_other(postgres_url: str) -> None:
    """As one does who joins it and is stopped before his commit."""
    store = open_store(postgres_url)
    store.enqueue(fair_jobs("x"))
    store.enqueue(fair_jobs("xy", run_at=datetime(2026, 1, 1, tzinfo=UTC)))
    with connected(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.lines WHERE fair = 'x' FOR UPDATE")
        store.promote()
        waiting = execute(postgres_url, "SELECT fair FROM mainspring.jobs WHERE state = 'scheduled'")
        holder.rollback()
    store.promote()

    assert waiting == [("x",)]
    assert store.counts()["default"] == {JobState.READY: 3}
    store.close()


def test_a_turn_holds_many_steps_of_the_heaviest() -> None:
    assert TURN // 100 >= 10


@settings(max_examples=15)
@given(
    floods=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 60)), min_size=1, max_size=6),
    before=st.integers(0, 100),
)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_whoever_comes_new_waits_for_one_job_of_each_other_at_most(
    kind: str, floods: list[tuple[str, int]], before: int, request: pytest.FixtureRequest
) -> None:
    """Whatever the others have sent and have got before."""
    store = open_store(request.getfixturevalue(f"{kind}_url"))
    session, queue = opened_session(store, lease=LONG), str(new_id())  # a queue for each example
    for key, count in floods:
        store.enqueue(fair_jobs(key * count, queue=queue))
    taken(store, session, queue, before)

    store.enqueue(fair_jobs("n", queue=queue))

    ahead = keys(taken(store, session, queue, 10_000)).index("n")
    assert ahead <= len({key for key, _ in floods})
    store.close()
