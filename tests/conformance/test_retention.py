"""Retention by rules: which jobs go, when, with all that is kept of them, and with their workflows."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.model.failure import Failure
from mainspring.model.job import JobState, NewJob
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Outcome
from mainspring.model.retention import Covers, RetentionRule
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store import retention as store_retention
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import FAILURE, SUCCESS, new_id, new_job, new_jobs, new_workflow, opened_session, work_off

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NODE = timedelta(days=30)
LONG = timedelta(days=9_000)


def keep(
    store: SqlStore,
    age: timedelta | None = None,
    count: int | None = None,
    *,
    team: str | None = None,
    queue: str | None = None,
    state: JobState | None = None,
) -> None:
    rule = RetentionRule(Covers(team, queue, state), age, count)
    rule.check()
    store.set_retention(rule)


def finish(store: SqlStore, outcome: Outcome = SUCCESS, **changes: Any) -> UUID:
    (job_id,) = finish_some(store, 1, outcome, **changes)
    return job_id


def finish_some(store: SqlStore, count: int, outcome: Outcome = SUCCESS, **changes: Any) -> list[UUID]:
    """Let so many jobs end in the same instant; return their ids, the smallest first."""
    store.enqueue(new_jobs(count, **changes))
    jobs = store.claim(opened_session(store, lease=LONG), changes.get("queue", "default"), count)
    store.settle([settle(job, outcome) for job in jobs])
    return sorted(job.id for job in jobs)


def kept(store: SqlStore, *ids: UUID) -> list[bool]:
    found = store.get(ids)
    return [job_id in found for job_id in ids]


def rows_of(url: str, name: str) -> int:
    ((count,),) = execute(url, f"SELECT count(*) FROM {table(url, name)}")
    return int(count)


# --- by age --------------------------------------------------------------------------------------------------------


def test_what_a_rule_covers_goes_sooner_than_the_rest(store: SqlStore, clock: SettableClock) -> None:
    keep(store, 2 * DAY, state=JobState.SUCCEEDED)
    succeeded, failed = finish(store), finish(store, FAILURE)
    clock.advance("2d")
    early = store.prune(NODE)
    clock.advance("1d")

    assert (early, store.prune(NODE)) == (0, 1)
    assert kept(store, succeeded, failed) == [False, True]
    clock.advance("28d")
    assert store.prune(NODE) == 1


def test_ages_of_a_day_or_more_go_by_whole_days_and_shorter_ones_by_the_moment(
    store: SqlStore, clock: SettableClock
) -> None:
    keep(store, HOUR, queue="quick")
    keep(store, 7 * DAY, queue="slow")
    quick, slow = finish(store, queue="quick"), finish(store, queue="slow")
    gone = []
    for moment in (
        clock.now() + HOUR,
        clock.now() + HOUR + timedelta(microseconds=1),
        datetime(2026, 1, 8, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 1, 9, tzinfo=UTC),
    ):
        clock.jump(to=moment)
        store.prune(NODE)
        gone.append(kept(store, quick, slow))

    assert gone == [[True, True], [False, True], [False, True], [False, False]]


def test_a_rule_may_keep_jobs_longer_than_the_nodes_do(store: SqlStore, clock: SettableClock) -> None:
    keep(store, 90 * DAY, queue="books")
    book, other = finish(store, queue="books"), finish(store)
    clock.advance("31d")

    assert store.prune(NODE) == 1
    assert kept(store, book, other) == [True, False]
    clock.advance("60d")
    assert store.prune(NODE) == 1


def test_a_rule_for_everything_takes_the_place_of_the_nodes(store: SqlStore, clock: SettableClock) -> None:
    keep(store, 90 * DAY)
    job = finish(store)
    clock.advance("60d")
    assert store.prune(NODE) == 0
    assert store.remove_retention(Covers()) is True
    assert store.prune(NODE) == 1
    assert kept(store, job) == [False]
    assert store.remove_retention(Covers()) is False


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        (Covers(state=JobState.FAILED), Covers()),
        (Covers(queue="mail"), Covers(state=JobState.FAILED)),
        (Covers(queue="mail", state=JobState.FAILED), Covers(queue="mail")),
        (Covers(team="acme"), Covers(queue="mail", state=JobState.FAILED)),
        (Covers(team="acme", state=JobState.FAILED), Covers(team="acme")),
        (Covers(team="acme", queue="mail"), Covers(team="acme", state=JobState.FAILED)),
        (Covers("acme", "mail", JobState.FAILED), Covers("acme", "mail")),
    ],
    ids=str,
)
def test_the_most_precise_rule_counts(store: SqlStore, clock: SettableClock, longer: Covers, shorter: Covers) -> None:
    """The team says most, then the queue, then the state; whether that keeps a job longer or not."""
    jobs = {
        (team, queue, outcome is FAILURE): finish(store, outcome, team=team, queue=queue)
        for team in (None, "acme")
        for queue in ("default", "mail")
        for outcome in (SUCCESS, FAILURE)
    }
    clock.advance("5d")

    def covered(by: Covers, job: tuple[str | None, str, bool]) -> bool:
        team, queue, failed = job
        return (
            by.team in (None, team)
            and by.queue in (None, queue)
            and by.state in (None, JobState.FAILED if failed else JobState.SUCCEEDED)
        )

    store.set_retention(RetentionRule(longer, 20 * DAY))
    store.set_retention(RetentionRule(shorter, 2 * DAY))
    told = {one.covers: one.jobs for one in store.prunable(NODE)}
    store.prune(NODE)

    expected = {job for job in jobs if covered(shorter, job) and not covered(longer, job)}
    assert {job for job, job_id in jobs.items() if kept(store, job_id) == [False]} == expected
    assert told[shorter] == len(expected)
    assert expected


def test_the_default_team_is_named_like_any_other(store: SqlStore, clock: SettableClock) -> None:
    keep(store, 2 * DAY, team="default")
    nobodys, theirs = finish(store), finish(store, team="acme")
    clock.advance("5d")
    store.prune(NODE)

    assert kept(store, nobodys, theirs) == [False, True]


def test_a_rule_that_is_changed_or_removed_means_other_jobs_from_then_on(store: SqlStore, clock: SettableClock) -> None:
    keep(store, 10 * DAY, queue="mail")
    keep(store, 2 * DAY)
    keep(store, 90 * DAY, state=JobState.EXPIRED)  # so that no whole day goes
    mail, other = finish(store, queue="mail"), finish(store)
    clock.advance("5d")
    gone = [store.prune(NODE)]
    keep(store, 9 * DAY, queue="mail")
    gone.append(store.prune(NODE))
    removed = store.remove_retention(Covers(queue="mail")), store.remove_retention(Covers(queue="mail"))
    gone.append(store.prune(NODE))

    assert (gone, removed) == ([1, 0, 1], (True, False))
    assert kept(store, mail, other) == [False, False]


def test_unfinished_jobs_stay_whatever_the_rules(store: SqlStore, clock: SettableClock) -> None:
    keep(store, HOUR)
    keep(store, count=1, queue="default")
    store.enqueue([new_job(), new_job(delay=timedelta(days=3))])
    clock.advance("900d")

    assert store.prune(NODE) == 0
    assert store.counts() == {"default": {JobState.READY: 1, JobState.SCHEDULED: 1}}


def test_a_job_that_lives_again_before_it_is_forgotten_stays(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, HOUR, state=JobState.FAILED)
    job = finish(store, FAILURE)
    clock.advance("2h")
    original = store_retention._forget

    def late(db: Any, going: Any) -> int:
        store.replay([job])
        work_off(store, {job: FAILURE})
        return original(db, going)

    monkeypatch.setattr(store_retention, "_forget", late)

    assert store.prune(NODE) == 0
    assert kept(store, job) == [True]


# --- by count -------------------------------------------------------------------------------------------------------


def test_the_newest_are_kept_by_when_they_ended(store: SqlStore, clock: SettableClock) -> None:
    keep(store, count=2, queue="mail")
    other = finish(store)
    ended = []
    slow = new_job(queue="mail")  # enqueued first, ended last
    store.enqueue([slow])
    (held,) = store.claim(opened_session(store, lease=LONG), "mail", 1)
    for length in ("1s", "10m", "1d", "3d"):
        ended.append(finish(store, queue="mail"))
        clock.advance(length)
    store.settle([settle(held, SUCCESS)])

    told = store.prunable(NODE)
    gone = store.prune(NODE)

    assert (gone, [one.jobs for one in told if one.jobs]) == (3, [3])
    assert kept(store, *ended, slow.id, other) == [False, False, False, True, True, True]
    assert store.prune(NODE) == 0


def test_of_those_that_ended_together_the_largest_ids_are_kept(store: SqlStore) -> None:
    keep(store, count=4, state=JobState.SUCCEEDED)
    ids = finish_some(store, 10)

    assert store.prune(NODE) == 6
    assert kept(store, *ids) == [False] * 6 + [True] * 4


def test_a_count_that_is_not_reached_removes_nothing(store: SqlStore, clock: SettableClock) -> None:
    keep(store, count=10)
    finish_some(store, 5)
    clock.advance("2d")
    finish_some(store, 5)

    assert store.prune(NODE) == 0


def test_what_is_counted_are_the_jobs_that_no_other_rule_covers(store: SqlStore) -> None:
    keep(store, count=3)
    keep(store, 7 * DAY, state=JobState.FAILED)
    failed = finish_some(store, 5, FAILURE)
    succeeded = finish_some(store, 5)

    store.prune(NODE)

    assert kept(store, *failed) == [True] * 5
    assert kept(store, *succeeded) == [False, False, True, True, True]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The days whose jobs were counted, so far."""
    days: list[datetime] = []
    original = store_retention._tallies

    def noted(db: Any, rules: Any, day: datetime) -> Any:
        days.append(day)
        return original(db, rules, day)

    monkeypatch.setattr(store_retention, "_tallies", noted)
    return days


def test_jobs_are_counted_once_for_all_rules_and_no_further_back_than_it_takes(
    store: SqlStore, clock: SettableClock, counted: list[datetime]
) -> None:
    keep(store, count=3, queue="mail")
    keep(store, count=2, team="acme", state=JobState.SUCCEEDED)
    keep(store, count=1)
    for _ in range(5):
        finish(store, queue="mail")
        finish(store, team="acme")
        finish(store)
        clock.advance("1d")

    assert store.prune(NODE) == 2 + 3 + 4
    assert [day.day for day in counted if day.day <= 5] == [5, 4, 3]  # of later days PostgreSQL has partitions already


def test_nobody_looks_through_all_jobs_for_a_team_that_has_few(store: SqlStore, counted: list[datetime]) -> None:
    keep(store, count=3, team="acme")
    keep(store, count=3, team="beta", queue="mail")
    finish_some(store, 3, team="acme")
    finish_some(store, 9)

    few = store.prune(NODE), list(counted)
    finish(store, team="acme")

    assert few == (0, [])
    assert store.prune(NODE) == 1


def test_of_age_and_count_whichever_says_sooner_counts(store: SqlStore, clock: SettableClock) -> None:
    keep(store, 2 * DAY, 3, queue="mail")
    old = finish_some(store, 2, queue="mail")
    clock.advance("3d")
    new = finish_some(store, 4, queue="mail")

    store.prune(NODE)

    assert kept(store, *old, *new) == [False] * 2 + [False, True, True, True]


def test_one_that_says_no_age_is_kept_no_longer_than_the_nodes_say(store: SqlStore, clock: SettableClock) -> None:
    keep(store, count=100, queue="mail")
    job = finish(store, queue="mail")
    clock.advance("31d")

    assert store.prune(NODE) == 1
    assert kept(store, job) == [False]


# --- what goes with a job -----------------------------------------------------------------------------------------


def test_all_that_is_kept_of_a_job_goes_with_it_and_nothing_else(
    store: SqlStore, url: str, clock: SettableClock
) -> None:
    keep(store, HOUR, queue="mail")
    jobs = {}
    for queue in ("mail", "default"):
        job = new_job(queue=queue)
        store.enqueue([job])
        (first,) = store.claim(opened_session(store, lease=LONG), queue, 1)
        store.record([LogLine(job.id, first.fence, 1, "INFO", "hello")], [])
        store.record_step(job.id, first.fence, "charge", "1")
        store.signal(job.id, "go", "1", new_id())
        store.settle([settle(first, Failed(Failure(type="E", message="e")), Retry(base="1s", cap="1s"))])
        clock.advance("1d")
        store.promote()
        (second,) = store.claim(opened_session(store, lease=LONG), queue, 1)
        store.settle([settle(second, SUCCESS)])
        jobs[queue] = job.id
    clock.advance("2h")

    assert store.prune(NODE) == 1

    assert kept(store, jobs["mail"], jobs["default"]) == [False, True]
    assert {
        name: rows_of(url, name) for name in ("jobs_done", "attempts", "logs", "steps", "signals")
    } == dict.fromkeys(("jobs_done", "attempts", "logs", "steps", "signals"), 1)


# --- workflows ------------------------------------------------------------------------------------------------------


def family(store: SqlStore, *members: NewJob, **root: Any) -> tuple[UUID, list[UUID]]:
    """Enqueue a workflow of *members* and let all of it end; return its id and theirs."""
    made = new_workflow(*members, **root)
    store.enqueue_workflow(made)
    outcomes = {job.id: FAILURE for job in made.members if job.task == "fails"}
    work_off(store, outcomes)
    return made.job.id, [job.id for job in made.members]


@pytest.fixture(params=[2_000, 2], ids=["one page", "many pages"])
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many jobs are looked at in one statement."""
    monkeypatch.setattr(store_retention, "PAGE", request.param)
    return int(request.param)


def test_members_stay_with_their_workflow_whatever_covers_them(
    store: SqlStore, clock: SettableClock, page: int
) -> None:
    keep(store, HOUR, state=JobState.SUCCEEDED)
    root, members = family(store, new_job(), new_job(), new_job(task="fails"))
    assert store.get([root])[root].state is JobState.FAILED
    plain = finish(store)
    clock.advance("2h")

    assert store.prune(NODE) == 1
    assert kept(store, root, *members, plain) == [True] * 4 + [False]


def test_members_go_with_their_workflow_whatever_covers_them(
    store: SqlStore, url: str, clock: SettableClock, page: int
) -> None:
    keep(store, HOUR, state=JobState.FAILED)
    root, members = family(store, *new_jobs(5), new_job(task="fails"))
    plain = finish(store)
    clock.advance("2h")

    told = {one.covers.state: one.jobs for one in store.prunable(NODE)}
    gone = store.prune(NODE)

    assert (gone, told[JobState.FAILED]) == (7, 7)
    assert kept(store, root, *members, plain) == [False] * 7 + [True]
    assert rows_of(url, "pruned") == 0


def test_workflows_within_workflows_go_with_the_outermost(
    store: SqlStore, url: str, clock: SettableClock, page: int
) -> None:
    keep(store, HOUR, queue="default")
    inner, leaf = new_id(), new_id()
    outer, members = family(store, new_job(), new_job())
    store_members_of(url, store, inner, leaf, outer)
    clock.advance("2h")

    told = sum(one.jobs for one in store.prunable(NODE))

    assert (store.prune(NODE), told) == (5, 5)
    assert kept(store, outer, *members, inner, leaf) == [False] * 5
    assert rows_of(url, "pruned") == 0


def store_members_of(url: str, store: SqlStore, inner: UUID, leaf: UUID, outer: UUID) -> None:
    """Make a finished member of *outer* that is a workflow of one job itself."""
    made = new_workflow(new_job(id=leaf), root=inner)
    store.enqueue_workflow(made)
    work_off(store)
    execute(url, f"UPDATE {table(url, 'jobs_done')} SET workflow = '{outer}' WHERE id = '{inner}'")


def test_a_node_that_dies_between_a_workflow_and_its_members_leaves_them_to_the_next(
    store: SqlStore, url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, HOUR)
    root, members = family(store, *new_jobs(3))
    clock.advance("2h")
    with monkeypatch.context() as dying:
        dying.setattr(store_retention, "_forget_members", _die)
        with pytest.raises(KeyboardInterrupt):
            store.prune(NODE)
    half = kept(store, root, *members)
    unfinished = [one.jobs for one in store.prunable(NODE)]

    assert store.prune(NODE) == 3
    assert (half, unfinished) == ([False, True, True, True], [0])
    assert kept(store, *members) == [False] * 3
    assert rows_of(url, "pruned") == 0


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_workflows_that_have_not_ended_keep_their_members(store: SqlStore, clock: SettableClock) -> None:
    keep(store, HOUR)
    made = new_workflow(new_job(), new_job(delay=900 * DAY))
    store.enqueue_workflow(made)
    work_off(store)
    clock.advance("2d")

    assert store.prune(NODE) == 0
    assert kept(store, *(job.id for job in made.members)) == [True, True]


# --- dry runs, many at once, and far behind --------------------------------------------------------------------------


@pytest.fixture
def history(store: SqlStore, clock: SettableClock) -> list[UUID]:
    """Jobs of several kinds that ended on several days."""
    ids: list[UUID] = []
    for _ in range(6):
        for changes in ({}, {"queue": "mail"}, {"team": "acme"}, {"team": "acme", "queue": "mail"}):
            ids += finish_some(store, 7, SUCCESS, **changes)
            ids += finish_some(store, 3, FAILURE, **changes)
        root, members = family(store, new_job(), new_job(task="fails"))
        ids += [root, *members]
        clock.advance("20h")
    keep(store, 2 * DAY, state=JobState.SUCCEEDED)
    keep(store, 3 * DAY, 9, queue="mail")
    keep(store, count=12, team="acme")
    keep(store, 5 * HOUR, team="acme", queue="mail", state=JobState.FAILED)
    return ids


def test_a_dry_run_tells_what_then_goes_and_changes_nothing(
    store: SqlStore, clock: SettableClock, history: list[UUID], page: int
) -> None:
    for _ in range(4):
        before = kept(store, *history)
        told = store.prunable(4 * DAY)
        unchanged = kept(store, *history)
        gone = store.prune(4 * DAY)
        clock.advance("1d")

        assert unchanged == before
        assert gone == sum(one.jobs for one in told)
        assert before.count(True) - kept(store, *history).count(True) == gone
        assert all((one.oldest is None) == (one.jobs == 0) for one in told)
    assert kept(store, *history).count(True) < len(history)


def test_nothing_is_left_to_go_after_a_prune(store: SqlStore, history: list[UUID], page: int) -> None:
    store.prune(4 * DAY)

    assert [one.jobs for one in store.prunable(4 * DAY)] == [0] * 5
    assert store.prune(4 * DAY) == 0


def test_any_number_of_nodes_may_prune_at_once(
    store: SqlStore, url: str, clock: SettableClock, history: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_retention, "PAGE", 5)
    expected = sum(one.jobs for one in store.prunable(4 * DAY))
    stores = [open_store(url, clock=clock) for _ in range(4)]
    start, gone = threading.Barrier(4), []

    def prune(one: SqlStore) -> None:
        start.wait()
        gone.append(one.prune(4 * DAY))

    threads = [threading.Thread(target=prune, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.close()

    gone.append(store.prune(4 * DAY))
    assert len(gone) == 5
    assert sum(gone) == expected
    assert rows_of(url, "pruned") == 0


def test_what_was_walked_through_is_not_walked_through_again(
    store: SqlStore, url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, DAY, state=JobState.SUCCEEDED)
    walked: list[datetime] = []
    original = store_retention._prune_day

    def noted(db: Any, rule: Any, edge: Any, day: datetime, tell: Any) -> None:
        walked.append(day)
        original(db, rule, edge, day, tell)

    for _ in range(3):
        finish(store, FAILURE)
        clock.advance("1d")
    monkeypatch.setattr(store_retention, "_prune_day", noted)
    store.prune(NODE)
    first = list(walked)
    store.prune(NODE)
    again = walked[len(first) :]
    clock.advance("1d")
    store.prune(NODE)
    next_day = walked[len(first) :]

    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    assert [day for day in first if day in days] == days[:2]
    assert again == []
    assert next_day == days[2:]


def test_a_rule_that_is_changed_while_a_node_prunes_is_not_taken_for_done(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, DAY)
    keep(store, 20 * DAY, queue="mail")
    keep(store, 90 * DAY, state=JobState.EXPIRED)  # so that no whole day goes
    mail = finish(store, queue="mail")
    clock.advance("5d")
    original = store_retention._prune_day

    def meanwhile(db: Any, rule: Any, edge: Any, day: datetime, tell: Any) -> None:
        original(db, rule, edge, day, tell)
        store.remove_retention(Covers(queue="mail"))

    with monkeypatch.context() as changing:
        changing.setattr(store_retention, "_prune_day", meanwhile)
        assert store.prune(NODE) == 0

    assert store.prune(NODE) == 1
    assert kept(store, mail) == [False]


def test_changes_that_come_at_once_are_all_counted(store: SqlStore, url: str, clock: SettableClock) -> None:
    """By that count a node knows that no rule was changed since it read them."""
    stores = [open_store(url, clock=clock) for _ in range(4)]

    def change(one: SqlStore) -> None:
        for n in range(10):
            keep(one, count=n + 1, queue=f"q{stores.index(one)}")
        one.remove_retention(Covers(queue=f"q{stores.index(one)}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, stores))
    for one in stores:
        one.close()

    assert execute(url, f"SELECT changes FROM {table(url, 'retention')}") == [(44,)]


def test_rules_are_told_with_the_most_precise_first(store: SqlStore) -> None:
    keep(store, DAY)
    keep(store, DAY, state=JobState.FAILED)
    keep(store, DAY, queue="mail")
    keep(store, None, 5, team="acme")

    assert [str(rule) for rule in store.retention()] == [
        "team acme: the newest 5 jobs",
        "queue mail: for 1d",
        "state failed: for 1d",
        "everything else: for 1d",
    ]


def test_whole_days_are_dropped_when_all_rules_let_them_go(postgres_url: str, clock: SettableClock) -> None:
    store = open_store(postgres_url, clock=clock)
    keep(store, 2 * DAY, state=JobState.SUCCEEDED)
    keep(store, 5 * DAY, state=JobState.FAILED)
    finish(store)
    finish(store, FAILURE)

    def days() -> int:
        found = execute(
            postgres_url,
            "SELECT count(*) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
            "WHERE inhparent = 'mainspring.jobs_done'::regclass AND relname = 'jobs_done_20260101'",
        )
        return int(found[0][0])

    clock.advance("4d")
    told = [(store.prune(4 * DAY), days())]
    clock.advance("2d")
    told.append((store.prune(4 * DAY), days()))
    store.close()

    assert told == [(1, 1), (1, 0)]


def test_days_are_found_whatever_the_server_knows_of_its_catalogs(postgres_url: str, clock: SettableClock) -> None:
    """Names of tables that are no days must not be taken for dates, however the planner goes about it."""
    store = open_store(postgres_url, clock=clock)
    keep(store, 2 * DAY, state=JobState.SUCCEEDED)
    for _ in range(40):
        finish(store)
        finish(store, FAILURE)
        clock.advance("1d")
    execute(postgres_url, "VACUUM ANALYZE")

    told = sum(one.jobs for one in store.prunable(NODE))
    gone = store.prune(NODE)
    store.close()

    assert (told, gone) == (48, 48)
