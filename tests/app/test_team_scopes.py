"""What is another team's is as if it were not there, whatever is asked of it and by whatever way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring import Context, JobState, Limit, Mainspring, Retry, cron, every
from mainspring.errors import (
    DeadGroupNotFound,
    InvalidValue,
    JobNotFound,
    NotAllowed,
    QuotaExceeded,
    ScheduleNotFound,
    TeamNotFound,
)
from mainspring.job_handle import JobHandle
from mainspring.model.breaker import Phase
from mainspring.model.session import NewSession
from mainspring.task_handle import TaskHandle
from mainspring.testing import drain
from mainspring.workflow_handle import WorkflowHandle
from tests.support.databases import connected, execute, table
from tests.support.factories import new_id

FAR = every("1h", datetime(2100, 1, 1, tzinfo=UTC))


@pytest.fixture
def acme(app: Mainspring) -> Mainspring:
    @app.task
    def greet(name: str = "Ada") -> str:
        return name

    @app.task(retry=Retry(max_attempts=1))
    def fail() -> None:
        raise ValueError("boom")

    return app.within("acme")


@pytest.fixture
def beta(app: Mainspring) -> Mainspring:
    return app.within("beta")


def named(app: Mainspring, task: str) -> TaskHandle[..., Any]:
    return TaskHandle(app.client, app.tasks.get(task))


def session_at(app: Mainspring) -> UUID:
    session = NewSession(id=new_id(), name="worker", lease=timedelta(hours=1))
    app.client.store.open_session(session)
    return session.id


ASKED: dict[str, Callable[[JobHandle[Any]], object]] = {
    "refresh": lambda job: job.refresh(),
    "state": lambda job: job.state,
    "cancel": lambda job: job.cancel(),
    "pause": lambda job: job.pause(),
    "resume": lambda job: job.resume(),
    "replay": lambda job: job.replay(),
    "attempts": lambda job: job.attempts(),
    "logs": lambda job: job.logs(),
    "signal": lambda job: job.signal("go"),
    "steps": lambda job: job.steps(),
    "explain": lambda job: job.explain(),
    "result": lambda job: job.result(timeout=5),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("other", ["beta", "default"])
def test_a_job_of_another_team_is_not_there_for_a_handle(acme: Mainspring, other: str, asked: str) -> None:
    job = acme.enqueue("greet")
    before = job.refresh()
    theirs = acme.within(other)

    handles: list[JobHandle[Any]] = [JobHandle(theirs.client, job.id), WorkflowHandle(theirs.client, job.id)]
    for handle in handles:
        with pytest.raises(JobNotFound) as caught:
            ASKED[asked](handle)
        assert str(caught.value) == str(JobNotFound(job.id))
    assert job.refresh() == before


@pytest.mark.parametrize("asked", ["jobs", "members", "progress", "picture"])
def test_a_workflow_of_another_team_is_not_there(acme: Mainspring, beta: Mainspring, asked: str) -> None:
    with acme.workflow("etl") as wf:
        wf.add("greet")
    run = wf.enqueue()

    with pytest.raises(JobNotFound):
        getattr(WorkflowHandle(beta.client, run.id), asked)()
    assert [job.id for job in acme.client.workflows()] == [run.id]
    assert beta.client.workflows() == []
    assert acme.within("default").client.workflows() == []


def test_a_signal_reaches_no_other_teams_job(acme: Mainspring, beta: Mainspring, url: str) -> None:
    job = acme.enqueue("greet")

    with pytest.raises(JobNotFound):
        beta.signal(job.id, "go")
    assert execute(url, f"SELECT count(*) FROM {table(url, 'signals')}") == [(0,)]
    acme.signal(job.id, "go")


def test_no_job_comes_after_one_of_another_team(acme: Mainspring, beta: Mainspring) -> None:
    job = acme.enqueue("greet")

    for parent in (job.id, UUID(int=1)):
        with pytest.raises(JobNotFound) as caught:
            beta.enqueue("greet", after=[parent])
        assert str(caught.value) == str(JobNotFound(parent))
    with pytest.raises(JobNotFound):
        acme.within("default").enqueue("greet", after=[job])
    with beta.workflow("etl") as wf:
        wf.add(named(beta, "greet").using(after=[job]))
    with pytest.raises(JobNotFound):
        wf.enqueue()
    assert beta.jobs() == []
    assert acme.enqueue("greet", after=[job]).state is JobState.BLOCKED


def test_in_a_callers_transaction_a_job_may_come_after_one_of_that(acme: Mainspring, url: str) -> None:
    with connected(url) as conn:
        parent = acme.enqueue("greet", conn=conn)
        child = acme.enqueue("greet", after=[parent], conn=conn)
        conn.commit()

    assert {job.id for job in acme.jobs()} == {parent.id, child.id}


def test_keys_and_idempotency_keys_are_those_of_the_team(acme: Mainspring, beta: Mainspring) -> None:
    ours = acme.enqueue("greet", key="k", idempotency_key="i")
    theirs = beta.enqueue("greet", key="k", idempotency_key="i")

    assert ours.id != theirs.id
    assert acme.enqueue("greet", idempotency_key="i").id == ours.id
    assert [job.id for job in acme.jobs(key="k")] == [ours.id]
    assert [job.id for job in beta.jobs(key="k")] == [theirs.id]
    assert acme.within("default").jobs(key="k") == []
    assert [job.snapshot.key for job in acme.jobs()] == ["k"]
    assert (ours.refresh().key, ours.refresh().fair) == ("k", None)


def test_all_that_a_workflow_makes_is_the_teams_also_what_undoes_it(acme: Mainspring, app: Mainspring) -> None:
    with acme.workflow("etl") as wf:
        done = wf.add("greet").on_failure("greet", "undo")
        wf.add(named(acme, "fail").using(after=[done]))
    run = wf.enqueue()
    drain(app)

    members = run.members()
    assert sorted((member.task, member.state) for member in members) == [
        ("fail", "failed"),
        ("greet", "succeeded"),
        ("greet", "succeeded"),
    ]
    assert {app.client.get(member.id).team for member in [run.refresh(), *members]} == {"acme"}
    assert app.within("default").jobs() == []


def test_what_a_map_makes_is_the_teams_and_keeps_its_own_fair_keys(app: Mainspring) -> None:
    @app.task(fair="{tenant}")
    def send(tenant: str) -> str:
        return tenant

    acme = app.within("acme")
    with acme.workflow("mail") as wf:
        wf.map("send", ["a", "b"])
    wf.enqueue()
    drain(app)

    assert {(job.snapshot.team, job.snapshot.fair) for job in app.jobs(task="send")} == {
        ("acme", "@acme/"),  # of the map itself
        ("acme", "@acme/a"),
        ("acme", "@acme/b"),
    }


# schedules


def test_schedules_of_two_teams_may_have_one_id(acme: Mainspring, beta: Mainspring, app: Mainspring) -> None:
    ours = acme.schedules.add("digest", "greet", FAR, notes="ours")
    theirs = beta.schedules.add("digest", "greet", FAR, notes="theirs")
    app.schedules.add("digest", "greet", FAR, notes="the platform's")

    assert (ours.id, ours.definition.team) == ("digest", "acme")
    assert acme.schedules.list() == [ours]
    assert beta.schedules.get("digest") == theirs
    assert [one.definition.notes for one in acme.within("default").schedules.list()] == ["the platform's"]
    assert [one.id for one in app.schedules.list()] == ["@acme/digest", "@beta/digest", "digest"]
    assert app.schedules.get("@acme/digest").definition.notes == "ours"
    with pytest.raises(InvalidValue, match="does not begin with @"):
        app.schedules.add("@acme/other", "greet", FAR)
    with pytest.raises(InvalidValue, match="within the same team"):
        beta.schedules.add_many([acme.schedules.new("x", "greet", FAR)])


SCHEDULED: dict[str, Callable[[Mainspring, str], object]] = {
    "get": lambda app, one: app.schedules.get(one),
    "pause": lambda app, one: app.schedules.pause(one),
    "resume": lambda app, one: app.schedules.resume(one),
    "remove": lambda app, one: app.schedules.remove(one),
    "trigger": lambda app, one: app.schedules.trigger(one),
    "preview": lambda app, one: app.schedules.preview(one),
    "history": lambda app, one: app.schedules.history(one),
    "backfill": lambda app, one: app.schedules.backfill(
        one, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    ),
}


@pytest.mark.parametrize("asked", SCHEDULED)
@pytest.mark.parametrize("other", ["beta", "default"])
def test_a_schedule_of_another_team_is_not_there(acme: Mainspring, other: str, asked: str) -> None:
    acme.schedules.add("digest", "greet", FAR)
    acme.schedules.trigger("digest")
    before, history = acme.schedules.get("digest"), acme.schedules.history("digest")
    theirs = acme.within(other)

    with pytest.raises(ScheduleNotFound) as caught:
        SCHEDULED[asked](theirs, "digest")
    assert str(caught.value) == "no schedule has the id 'digest'"
    with pytest.raises((InvalidValue, ScheduleNotFound)):
        SCHEDULED[asked](theirs, "@acme/digest")
    assert (acme.schedules.get("digest"), acme.schedules.history("digest")) == (before, history)


def test_all_that_can_be_done_with_a_schedule_can_be_done_within_a_team(acme: Mainspring, app: Mainspring) -> None:
    acme.schedules.add("digest", "greet", cron("0 9 * * *"))

    assert acme.schedules.pause("digest", reason="holiday").paused
    assert not acme.schedules.resume("digest").paused
    assert len(acme.schedules.preview("digest", n=3)) == 3
    now = datetime.now(UTC)
    made = acme.schedules.backfill("digest", now - timedelta(days=3), now)
    triggered = acme.schedules.trigger("digest")
    assert len(made) == 3
    assert [tick.schedule for tick in acme.schedules.history("digest")] == ["digest"] * 4
    assert {job.id for job in acme.jobs()} == {triggered.id, *(job.id for job in made)}
    assert {(job.snapshot.team, job.snapshot.schedule, job.snapshot.fair) for job in app.jobs()} == {
        ("acme", "@acme/digest", "@acme/")
    }
    assert triggered.refresh().schedule == "digest"
    acme.schedules.remove("digest")
    assert acme.schedules.list() == []


def test_schedules_that_code_defines_within_a_team_are_the_teams(app: Mainspring, caplog: Any) -> None:
    acme = app.within("acme")
    app.schedules.add("elsewhere", "greet", FAR)

    @acme.schedule(FAR, id="digest")
    @acme.task
    def work() -> None: ...

    acme.schedules.sync()

    assert [one.id for one in app.schedules.list()] == ["@acme/digest", "elsewhere"]
    assert caplog.records == []


# dead letters


def test_dead_letters_are_those_of_the_team(acme: Mainspring, beta: Mainspring, app: Mainspring) -> None:
    ours, theirs, platforms = (place.enqueue("fail") for place in (acme, beta, app))
    drain(app)
    (group,) = acme.dead.groups()

    assert (group.count, group.sample) == (1, ours.id)
    assert app.dead.groups()[0].count == 3
    assert [job.id for job in acme.dead.list()] == [ours.id]
    assert [job.id for job in beta.dead.list(group=group.fingerprint[:6])] == [theirs.id]
    assert (acme.dead.count(), acme.within("default").dead.count(), app.dead.count()) == (1, 1, 3)
    with pytest.raises(JobNotFound):
        acme.dead.discard(ids=[theirs.id])
    with pytest.raises(JobNotFound):
        acme.dead.replay(ids=[platforms.id])
    with pytest.raises(DeadGroupNotFound):
        app.within("gamma").dead.list(group=group.fingerprint)

    assert acme.dead.discard(group=group.fingerprint) == 1
    assert [job.state for job in (ours, theirs, platforms)] == [JobState.CANCELLED, JobState.FAILED, JobState.FAILED]
    assert acme.dead.groups() == []
    assert beta.dead.discard(task="fail") == 1
    assert platforms.state is JobState.FAILED


# queues


def test_a_queue_of_a_team_takes_only_its_jobs_and_is_seen_by_it_alone(
    acme: Mainspring, beta: Mainspring, app: Mainspring
) -> None:
    app.queues.give("gpu", "acme")
    acme.enqueue("greet", queue="gpu")
    app.enqueue("greet", queue="gpu")  # whoever is bound to none may put anything anywhere

    for other in (beta, app.within("default")):
        with pytest.raises(InvalidValue, match="queue 'gpu' takes no jobs of team"):
            other.enqueue("greet", queue="gpu")
        with pytest.raises(InvalidValue, match="takes no jobs"):
            other.schedules.add("s", "greet", FAR, queue="gpu")
        with other.workflow("etl") as wf:
            wf.add("greet").on_failure(named(other, "greet").using(queue="gpu"))
        with pytest.raises(InvalidValue, match="takes no jobs"):
            wf.enqueue()
        assert other.queues.list() == []
    assert len(app.jobs()) == 2
    (queue,) = acme.queues.list()
    assert (queue.name, queue.team, queue.jobs) == ("gpu", "acme", {JobState.READY: 1})
    assert app.queues.list()[0].jobs == {JobState.READY: 2}

    app.queues.give("gpu", None)
    beta.enqueue("greet", queue="gpu")


def test_a_shared_queue_shows_each_team_its_own_jobs(acme: Mainspring, beta: Mainspring, app: Mainspring) -> None:
    for place, count in ((acme, 1), (beta, 2), (app, 3)):
        for _ in range(count):
            place.enqueue("greet")

    shown = [place.queues.list()[0].jobs[JobState.READY] for place in (acme, beta, app.within("default"), app)]
    assert shown == [1, 2, 3, 6]


def test_a_team_rules_its_own_queues_only(acme: Mainspring, beta: Mainspring, app: Mainspring) -> None:
    app.queues.give("gpu", "acme")
    platform = app.within("default")

    rules: list[Callable[[Mainspring, str], object]] = [
        lambda team, queue: team.queues.pause(queue),
        lambda team, queue: team.queues.resume(queue),
        lambda team, queue: team.queues.set(queue, ageing="1m"),
        lambda team, queue: team.queues.give(queue, None),
    ]
    for team, queue in ((beta, "gpu"), (beta, "mail"), (acme, "mail"), (platform, "gpu")):
        for rule in rules:
            with pytest.raises(NotAllowed):
                rule(team, queue)
    assert (app.client.store.pauses(), app.queues.list()[0].ageing) == ([], None)

    acme.queues.pause("gpu")
    acme.queues.set("gpu", ageing="1m")
    assert acme.queues.resume("gpu")
    platform.queues.pause("mail")
    assert app.queues.resume("mail")


def test_a_queue_that_is_given_away_is_ranked_as_before(acme: Mainspring, app: Mainspring) -> None:
    app.queues.give("gpu", "acme")

    assert app.client.store.rerank() == 0
    app.queues.set("gpu", ageing="1m")
    app.queues.give("gpu", "beta")
    app.queues.give("gpu", None)
    assert app.queues.list()[0].ageing == timedelta(minutes=1)


# what is the whole fleet's


def test_what_is_the_fleets_is_neither_seen_nor_ruled_from_within_a_team(app: Mainspring, acme: Mainspring) -> None:
    app.paused_tasks.pause("greet")
    app.breakers.trip("smtp")
    platform = app.within("default")

    assert (acme.paused_tasks.list(), acme.limits.list(), acme.breakers.list(), acme.client.sessions()) == ([],) * 4
    assert acme.breakers.get("smtp").phase is Phase.CLOSED
    for rule in (
        lambda: acme.paused_tasks.pause("fail"),
        lambda: acme.paused_tasks.resume("greet"),
        lambda: acme.limits.release("smtp"),
        lambda: acme.breakers.trip("db"),
        lambda: acme.breakers.reset("smtp"),
        lambda: acme.teams.set("acme", max_pending=None),
        lambda: acme.teams.remove("acme"),
    ):
        with pytest.raises(NotAllowed, match="team 'acme' can't"):
            rule()
    assert [pause.name for pause in platform.paused_tasks.list()] == ["greet"]
    assert [one.key for one in platform.breakers.list()] == ["smtp"]


def test_quotas_of_other_teams_are_not_seen(app: Mainspring, acme: Mainspring, beta: Mainspring) -> None:
    ours = app.teams.set("acme", max_pending=1)
    app.teams.set("beta", rate="1/h")

    assert (acme.teams.list(), acme.teams.get("acme")) == ([ours], ours)
    for call in (acme.teams.get, lambda name: acme.teams.admit(name, jobs=1)):
        with pytest.raises(TeamNotFound):
            call("beta")
    beta.teams.admit("beta", jobs=1)
    with pytest.raises(QuotaExceeded, match="try again in"):
        app.teams.admit("beta", jobs=1)
    with pytest.raises(TeamNotFound, match="did you mean 'acme'"):
        app.teams.get("acmee")
    with pytest.raises(TeamNotFound):
        app.teams.remove("gamma")
    app.teams.remove("beta")
    assert app.teams.list() == [ours]


def test_why_a_job_waits_names_no_job_of_another_team(app: Mainspring) -> None:
    @app.task(limits=[Limit("license", concurrency=1)])
    def render() -> None: ...

    acme, beta = app.within("acme"), app.within("beta")
    holder, waiter = acme.enqueue("render"), beta.enqueue("render")
    store = app.client.store
    wants = [Limit("license", concurrency=1).want({})]
    held = store.claim(session_at(app), "default", 2)
    store.admit([(job, wants) for job in sorted(held, key=lambda job: job.id != holder.id)])

    (reason,) = beta.job(waiter.id).explain()[:1]
    assert reason.code == "limit"
    assert str(holder.id) not in reason.sentence
    assert str(holder.id) in app.job(waiter.id).explain()[0].sentence


def test_what_a_job_adds_stands_in_the_teams_line(app: Mainspring) -> None:
    @app.task
    def child() -> None: ...

    @app.task
    def parent(ctx: Context) -> None:
        ctx.add(child)

    app.within("acme").enqueue("parent")
    drain(app)

    (made,) = app.jobs(task="child")
    assert (made.snapshot.team, made.snapshot.fair) == ("acme", "@acme/")


# fair share


FLOOD, SLOTS = 3_000, 8


def test_a_teams_flood_delays_another_teams_job_by_no_more_than_the_slots_and_one(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    acme, beta = (TaskHandle[..., Any](app.within(team).client, work.task) for team in ("acme", "beta"))
    acme.enqueue_many([((), {})] * FLOOD)
    store = app.client.store
    session = session_at(app)
    assert len(store.claim(session, "default", SLOTS)) == SLOTS

    other = beta.enqueue()

    next_ones = [job.id for _ in range(SLOTS + 1) for job in store.claim(session, "default", 1)]
    assert other.id in next_ones


def test_no_team_can_stand_in_the_line_of_another(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    fairs = [
        app.client.get(place.enqueue("work", fair=fair).id).fair
        for place, fair in ((app.within("acme"), "x"), (app.within("beta"), "x"), (app.within("default"), None))
    ]

    assert fairs == ["@acme/x", "@beta/x", None]
    for place in (app, app.within("default"), app.within("beta")):
        with pytest.raises(InvalidValue, match="expected fair that does not begin with @"):
            place.enqueue("work", fair="@acme/x")
