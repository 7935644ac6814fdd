"""Whatever happens in whatever order, both stores and a plain Python reference show the same."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from mainspring.clock import microseconds, random_bits
from mainspring.errors import KeyTaken
from mainspring.model.failure import Failure
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, NewJob
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge, IfFailed
from mainspring.model.outcome import (
    Cancelled,
    Failed,
    Lost,
    Outcome,
    Paused,
    Returned,
    Snoozed,
    Succeeded,
    Suspended,
    TimedOut,
)
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.properties.reference import ReferenceStore, Tie
from tests.support.factories import new_id, new_job

EXAMPLES = int(os.environ.get("MAINSPRING_TEST_EXAMPLES", "40"))
STEPS = 40
RETRY = Retry(max_attempts=2, base="5s")
BOOM = Failure(type="ValueError", message="boom")

queues = st.sampled_from(["mail", "default"])
known_tasks = st.sampled_from([None, None, ["greet"], ["bill", "greet", "ship"], ["ship"], []])
outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        Succeeded("1"),
        Failed(BOOM),
        Failed(BOOM, retryable=False),
        TimedOut(BOOM),
        Snoozed(timedelta(seconds=3)),
        Suspended(timedelta(seconds=3)),
        Suspended(timedelta(seconds=8), "paid"),
        Cancelled("asked"),
        Paused("asked"),
        Returned(),
        Lost("gone"),
    ]
)
requests = st.fixed_dictionaries(
    {
        "queue": queues,
        "task": st.sampled_from(["greet", "bill"]),
        "priority": st.sampled_from([1, 5, 20]),
        "key": st.sampled_from([None, None, "a", "b"]),
        "delay": st.sampled_from([0, 0, 4, 30]).map(lambda seconds: timedelta(seconds=seconds)),
        "expires": st.sampled_from([None, None, 3, 20]).map(lambda seconds: seconds and timedelta(seconds=seconds)),
    }
)


class Agreement(RuleBasedStateMachine):
    """One history, told to three stores."""

    def __init__(self, postgres_url: str) -> None:
        super().__init__()
        self.clock = SettableClock()
        self.folder = tempfile.TemporaryDirectory()
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute(
                "TRUNCATE mainspring.jobs, mainspring.jobs_done, mainspring.attempts, mainspring.logs, "
                "mainspring.sessions, mainspring.sessions_done, mainspring.edges, mainspring.follow_ups"
            )
            server.execute(
                "UPDATE mainspring.retention SET reached = NULL"
            )  # this history begins when the last one did
        sqlite_url = f"sqlite:///{Path(self.folder.name) / 'mainspring.db'}?synchronous=normal"
        self.stores = [open_store(found, clock=self.clock) for found in (sqlite_url, postgres_url)]
        self.reference = ReferenceStore(self.clock)
        # By the same clock as everything else: prune judges by the id of a parent how old it can be.
        self.ids = IdSource(lambda: microseconds(self.clock.now()) // 1_000, random_bits)
        self.known: list[UUID] = []
        self.claimed: list[Job] = []
        self.sessions: list[UUID] = []

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.folder.cleanup()

    def all_say(self, ask: Callable[[SqlStore], object], expected: object) -> None:
        assert [ask(store) for store in self.stores] == [expected, expected]
        self.clock.advance(0.001)  # so that few jobs are due at the very same moment, which leaves their order open

    @rule(data=st.data(), asked=st.lists(requests, min_size=1, max_size=3), lonely=st.booleans())
    def enqueue(self, data: st.DataObject, asked: list[dict[str, object]], lonely: bool) -> None:
        jobs: list[NewJob] = []
        for request in asked:
            parents = () if lonely else data.draw(self._some_parents(jobs))
            jobs.append(new_job(id=self.ids.next(), parents=parents, **request))
        self._enqueue(jobs)

    def _some_parents(self, jobs: list[NewJob]) -> st.SearchStrategy[tuple[Edge, ...]]:
        """Return a choice of parents: jobs that are stored, ended or not, and those that come along in *jobs*."""
        older = [*list(self.reference.jobs)[-8:], *(job.id for job in jobs)]
        if not older:
            return st.just(())
        edges = st.builds(Edge, st.sampled_from(older), st.sampled_from(IfFailed))
        return st.lists(edges, max_size=3, unique_by=lambda edge: edge.parent).map(tuple)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def enqueue_again(self, data: st.DataObject) -> None:
        stored = self.reference.jobs.get(data.draw(st.sampled_from(self.known)))
        if stored is not None:
            self._enqueue([new_job(id=stored.id, queue=stored.queue)])

    def _enqueue(self, jobs: list[NewJob]) -> None:
        live = [job for job in jobs if job.id not in self.reference.jobs]
        done = [job for job in jobs if job not in live and self.reference.jobs[job.id].state.final]
        if done:
            return  # an id comes again only after a lost reply, and the dialect knows when it lost one
        try:
            expected = self.reference.enqueue(jobs)
        except KeyTaken:
            for store in self.stores:
                with pytest.raises(KeyTaken):
                    store.enqueue(jobs)
            return
        self.known += [job.id for job in live if job.id in self.reference.jobs]
        self.all_say(lambda store: store.enqueue(jobs), expected)

    @rule(seconds=st.sampled_from([0.5, 2, 10, 40]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(days=st.sampled_from([1, 3]))
    def days_pass(self, days: int) -> None:
        self.clock.advance(timedelta(days=days))

    @rule(lease=st.sampled_from([5, 60]))
    def open_session(self, lease: int) -> None:
        session = NewSession(id=new_id(), name=f"w{len(self.sessions)}", lease=timedelta(seconds=lease))
        self.sessions.append(session.id)
        self.reference.open_session(session)
        self.all_say(lambda store: store.open_session(session), None)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), queue=queues, limit=st.integers(1, 3), tasks=known_tasks)
    def claim(self, data: st.DataObject, queue: str, limit: int, tasks: list[str] | None) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        try:
            expected = self.reference.claim(session, queue, limit, tasks)
        except Tie:
            return
        self.claimed += [self.reference.jobs[job_id] for job_id in expected]
        self.all_say(lambda store: [job.id for job in store.claim(session, queue, limit, tasks)], expected)

    @precondition(lambda self: self.claimed)
    @rule(data=st.data(), numbers=st.lists(st.integers(1, 4), max_size=3), done=st.integers(0, 3))
    def record(self, data: st.DataObject, numbers: list[int], done: int) -> None:
        """Let attempts, present and past, say something, of which some may have been said before."""
        jobs = data.draw(st.lists(st.sampled_from(self.claimed), min_size=1, max_size=2))
        lines = [LogLine(job.id, job.fence, n, "INFO", f"{job.fence}/{n}") for job in jobs for n in numbers]
        progress = [Progress(job.id, job.fence, done, 3) for job in jobs] if done else []
        expected = self.reference.record(lines, progress)
        self.all_say(lambda store: store.record(lines, progress), expected)

    @precondition(lambda self: self.claimed)
    @rule(data=st.data(), results=st.lists(outcomes, min_size=1, max_size=3))
    def settle(self, data: st.DataObject, results: list[Outcome]) -> None:
        """Settle attempts, present and past: of those only the present ones may hold."""
        jobs = data.draw(
            st.lists(st.sampled_from(self.claimed), min_size=1, max_size=len(results), unique_by=lambda job: job.id)
        )
        decided = [settle(job, outcome, RETRY) for job, outcome in zip(jobs, results, strict=False)]
        self.all_say(lambda store: store.settle(decided), self.reference.settle(decided))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.sessions))

        def ask(store: SqlStore) -> object:
            beat = store.beat(session, {})
            return beat.alive, dict(beat.wishes)

        self.all_say(ask, self.reference.beat(session, {}))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def close_session(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        self.all_say(lambda store: store.close_session(session), self.reference.close_session(session))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), what=st.sampled_from(["cancel", "pause", "resume", "replay"]))
    def control(self, data: st.DataObject, what: str) -> None:
        ids = data.draw(st.lists(st.sampled_from(self.known), min_size=1, max_size=3, unique=True))
        arguments = () if what == "resume" else (f"{what} it",)
        getattr(self.reference, what)(ids, *arguments)
        states = {job_id: self.reference.jobs[job_id].state for job_id in ids if job_id in self.reference.jobs}
        self.all_say(lambda store: getattr(store, what)(ids, *arguments), states)

    @rule()
    def promote(self) -> None:
        self.all_say(lambda store: store.promote().count, self.reference.promote())

    @rule()
    def expire(self) -> None:
        self.all_say(lambda store: store.expire().count, self.reference.expire())

    @rule()
    def release(self) -> None:
        self.reference.release()
        for store in self.stores:
            store.release()

    @rule()
    def reap(self) -> None:
        self.all_say(lambda store: store.reap(), self.reference.reap())

    @rule(age=st.sampled_from([timedelta(0), timedelta(hours=1), timedelta(days=2)]))
    def prune(self, age: timedelta) -> None:
        self.all_say(lambda store: store.prune(age), self.reference.prune(age))

    @invariant()
    def all_show_the_same(self) -> None:
        jobs = self.reference.jobs
        for store in self.stores:
            assert store.get(self.known) == jobs
            assert [job.id for job in store.page(limit=1000)] == sorted(jobs, reverse=True)
            assert {found.id for found in store.sessions()} == set(self.reference.leases)

    @invariant()
    def all_tell_the_same_history(self) -> None:
        for job_id in self.known[-3:]:
            for store in self.stores:
                assert store.attempts(job_id) == self.reference.attempts(job_id)
                assert store.logs(job_id) == self.reference.logs(job_id)


def test_both_stores_agree(postgres_url: str) -> None:
    class OnThisServer(Agreement):
        def __init__(self) -> None:
            super().__init__(postgres_url)

    run_state_machine_as_test(OnThisServer, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS))
