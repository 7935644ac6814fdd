"""Whatever two teams do in whatever order, neither ever sees or changes what is the other's."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from msgspec.structs import replace

from mainspring import JobState, Mainspring, Retry, every
from mainspring.errors import InvalidValue, JobNotFound, MainspringError, NotAllowed, ScheduleNotFound, TokenNotFound
from mainspring.job_handle import JobHandle
from mainspring.model.audit import Entry
from mainspring.model.job import Job
from mainspring.model.queue import Pausable
from mainspring.store.protocol import JobFilter, LetterFilter
from mainspring.testing import drain
from mainspring.workflow_handle import WorkflowHandle

EXAMPLES = int(os.environ.get("MAINSPRING_TEST_EXAMPLES", "30"))
STEPS = 25
FAR = every("1h", datetime(2100, 1, 1, tzinfo=UTC))
PAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

ON_JOBS: dict[str, Callable[[WorkflowHandle[Any]], object]] = {
    "cancel": lambda job: job.cancel(),
    "pause": lambda job: job.pause(),
    "resume": lambda job: job.resume(),
    "replay": lambda job: job.replay(),
    "signal": lambda job: job.signal("go", 1),
    "logs": lambda job: job.logs(),
    "attempts": lambda job: job.attempts(),
    "steps": lambda job: job.steps(),
    "explain": lambda job: job.explain(),
    "members": lambda job: job.members(),
    "progress": lambda job: job.progress(),
    "result": lambda job: job.result(timeout=0),
}
ON_SCHEDULES: dict[str, Callable[[Mainspring, str], object]] = {
    "get": lambda app, one: app.schedules.get(one),
    "pause": lambda app, one: app.schedules.pause(one),
    "resume": lambda app, one: app.schedules.resume(one),
    "remove": lambda app, one: app.schedules.remove(one),
    "trigger": lambda app, one: app.schedules.trigger(one),
    "preview": lambda app, one: app.schedules.preview(one),
    "history": lambda app, one: app.schedules.history(one),
    "backfill": lambda app, one: app.schedules.backfill(one, *PAST),
}
ON_QUEUES: dict[str, Callable[[Mainspring, str], object]] = {
    "pause": lambda app, name: app.queues.pause(name),
    "resume": lambda app, name: app.queues.resume(name),
    "set": lambda app, name: app.queues.set(name, ageing="1m"),
    "strict": lambda app, name: app.queues.set(name, ageing=None),
}

sides = st.sampled_from([0, 1])
keys = st.sampled_from([None, None, "k1", "k2", "@k1", "@acme-0/k1"])
tasks = st.sampled_from(["greet", "fail"])


class Apart(RuleBasedStateMachine):
    """Two teams on one database, which are new for each example: what others left there is of no interest."""

    def __init__(self, app: Mainspring, number: int) -> None:
        super().__init__()
        self.app = app
        self.names = [f"acme-{number}", f"beta-{number}"]
        self.teams = [app.within(name) for name in self.names]
        self.queue = f"gpu-{number}"
        self.jobs: list[UUID] = []
        self.tokens: list[str] = []

    def seen_by_all(self, side: int) -> object:
        """Return all that is a team's, as one sees it who is bound to none."""
        store, name = self.app.client.store, self.names[side]
        schedules = store.schedules(team=name)
        jobs = store.page(JobFilter(team=name), limit=1_000)
        return (
            jobs,
            [store.attempts(job.id) for job in jobs],
            schedules,
            [store.ticks(f"@{name}/{one}") for one in ("s1", "s2")],
            [token for token in store.tokens() if name in token.grants],
            store.audit(name),
            [replace(one, oldest_ready=None) for one in store.queues() if one.team == name],  # it grows by itself
        )

    def act(self, side: int, deed: Callable[[Mainspring], object]) -> object:
        """Have a team do something, which may be refused, and see that nothing of the other's has changed."""
        before = self.seen_by_all(1 - side)
        try:
            return deed(self.teams[side])
        except MainspringError as error:
            return error
        finally:
            assert self.seen_by_all(1 - side) == before

    def owner(self, job_id: UUID) -> str | None:
        return self.app.client.store.get([job_id])[job_id].team

    @rule(side=sides, task=tasks, key=keys, idempotency=keys, own_queue=st.booleans(), data=st.data())
    def enqueue(
        self, side: int, task: str, key: str | None, idempotency: str | None, own_queue: bool, data: st.DataObject
    ) -> None:
        parents: list[UUID] = data.draw(st.lists(st.sampled_from(self.jobs), max_size=2)) if self.jobs else []
        wishes: dict[str, Any] = {"key": key, "after": parents}
        if own_queue:
            wishes["queue"] = self.queue
        if idempotency:
            wishes["idempotency_key"] = idempotency
        made = self.act(side, lambda team: team.enqueue(task, **wishes))
        if any(one is not None and one.startswith("@") for one in (key, idempotency)):
            assert isinstance(made, InvalidValue)
        elif isinstance(made, JobHandle):
            assert self.owner(made.id) == self.names[side]
            assert {self.owner(parent) for parent in parents} <= {self.names[side]} or idempotency or key
            self.jobs = list(dict.fromkeys([*self.jobs, made.id]))
        elif any(self.owner(parent) != self.names[side] for parent in parents) and not own_queue:
            assert isinstance(made, JobNotFound)

    @rule(side=sides, task=tasks)
    def enqueue_workflow(self, side: int, task: str) -> None:
        def deed(team: Mainspring) -> WorkflowHandle[Any]:
            with team.workflow("etl") as workflow:
                first = workflow.add("greet").on_failure("greet")
                workflow.add(task, first)
            return workflow.enqueue()

        made = self.act(side, deed)
        assert isinstance(made, WorkflowHandle)
        self.jobs += [made.id, *(member.id for member in made.members())]

    @precondition(lambda self: self.jobs)
    @rule(side=sides, what=st.sampled_from(sorted(ON_JOBS)), data=st.data())
    def control(self, side: int, what: str, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(self.jobs))
        told = self.act(side, lambda team: ON_JOBS[what](WorkflowHandle(team.client, job_id)))
        if self.owner(job_id) != self.names[side]:
            assert str(told) == str(JobNotFound(job_id))

    @rule(side=sides, schedule=st.sampled_from(["s1", "s2"]))
    def add_schedule(self, side: int, schedule: str) -> None:
        self.act(side, lambda team: team.schedules.add(schedule, "greet", FAR))

    @rule(side=sides, what=st.sampled_from(sorted(ON_SCHEDULES)), schedule=st.sampled_from(["s1", "s2"]))
    def on_schedule(self, side: int, what: str, schedule: str) -> None:
        known = {one.id for one in self.teams[side].schedules.list()}
        told = self.act(side, lambda team: ON_SCHEDULES[what](team, schedule))
        if schedule not in known and what != "history":
            assert isinstance(told, ScheduleNotFound)
            assert self.names[1 - side] not in str(told)

    @rule(side=sides, what=st.sampled_from(["discard", "replay", "list"]), by_id=st.booleans(), data=st.data())
    def on_dead_letters(self, side: int, what: str, by_id: bool, data: st.DataObject) -> None:
        chosen: dict[str, Any] = {"task": "fail"}
        if self.jobs and by_id:
            chosen = {"ids": [data.draw(st.sampled_from(self.jobs))]}
        if what == "discard":
            self.act(side, lambda team: team.dead.discard(**chosen))
        elif what == "list":
            self.act(side, lambda team: team.dead.list(task="fail"))
        elif "ids" in chosen and self.owner(chosen["ids"][0]) != self.names[side]:
            assert isinstance(self.act(side, lambda team: team.dead.replay(**chosen)), JobNotFound)

    @rule(owner=st.sampled_from([None, 0, 1]))
    def give_queue(self, owner: int | None) -> None:
        self.app.queues.give(self.queue, None if owner is None else self.names[owner])

    @rule(side=sides, what=st.sampled_from(sorted(ON_QUEUES)))
    def on_queue(self, side: int, what: str) -> None:
        told = self.act(side, lambda team: ON_QUEUES[what](team, self.queue))
        if self.app.client.store.queue_owners().get(self.queue) != self.names[side]:
            assert isinstance(told, NotAllowed)

    @rule(side=sides, elsewhere=st.booleans())
    def create_token(self, side: int, elsewhere: bool) -> None:
        granted = self.names[1 - side] if elsewhere else self.names[side]
        made = self.act(side, lambda team: team.tokens.create("ci", {granted: "admin"}))
        assert isinstance(made, tuple) is not elsewhere
        if isinstance(made, tuple):
            self.tokens.append(made[1].id)

    @precondition(lambda self: self.tokens)
    @rule(side=sides, data=st.data())
    def revoke_token(self, side: int, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(self.tokens))
        told = self.act(side, lambda team: team.tokens.revoke(token))
        theirs = self.names[side] not in self.app.tokens.get(token).grants
        assert isinstance(told, TokenNotFound) is theirs

    @rule(side=sides)
    def record(self, side: int) -> None:
        entry = Entry("somebody", "job.cancel", team=self.names[1 - side])
        self.act(side, lambda team: team.audit.record([entry]))

    @rule()
    def work(self) -> None:
        self.app.client.store.resume_claims(Pausable.QUEUE, self.queue)  # or it would wait for ever
        drain(self.app)

    @invariant()
    def each_sees_what_is_its_own_and_nothing_else(self) -> None:
        store = self.app.client.store
        for name, team in zip(self.names, self.teams, strict=True):
            jobs = store.page(JobFilter(team=name), limit=1_000)
            own = {job.id for job in jobs}
            assert {job.id for job in team.jobs(limit=1_000)} == own
            assert {job.id for job in team.client.workflows()} == {job.id for job in jobs if _is_root(job)}
            dead = {job.id for job in jobs if job.state is JobState.FAILED}
            assert {job.id for job in team.dead.list(limit=1_000)} == dead
            assert sum(group.count for group in team.dead.groups(limit=1_000)) == team.dead.count() == len(dead)
            assert store.dead_count(LetterFilter(team=name)) == len(dead)
            assert {one.definition.team for one in team.schedules.list()} <= {name}
            assert {one.team for one in team.queues.list()} <= {name, None}
            counted = Counter[JobState]()
            for queue in team.queues.list():
                counted.update(queue.jobs)
            unfinished = Counter(job.state for job in jobs if not job.state.final and self._reaches(name, job.queue))
            assert counted == unfinished
            assert {record.team for record in team.audit.list(limit=1_000)} <= {name}
            assert {team for token in team.tokens.list() for team in token.grants} <= {name}

    def _reaches(self, name: str, queue: str) -> bool:
        return self.app.client.store.queue_owners().get(queue, name) == name


def _is_root(job: Job) -> bool:
    return job.plan is not None and job.workflow is None


@pytest.mark.slow
def test_neither_of_two_teams_ever_sees_or_changes_what_is_the_others(app: Mainspring) -> None:
    numbers = count()

    @app.task
    def greet(name: str = "Ada") -> str:
        return name

    @app.task(retry=Retry(max_attempts=1))
    def fail(name: str = "Ada") -> None:
        raise ValueError(name)

    class OnThisDatabase(Apart):
        def __init__(self) -> None:
            super().__init__(app, next(numbers))

    run_state_machine_as_test(OnThisDatabase, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS))
