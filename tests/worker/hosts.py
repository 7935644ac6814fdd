"""A host for an executor without a worker or a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from mainspring.clock import SystemClock
from mainspring.model.job import Job, JobState
from mainspring.model.journal import LogLine, Progress
from mainspring.model.outcome import Outcome
from mainspring.model.task import Task
from mainspring.worker.context import Context
from mainspring.worker.executors.executor import Executor
from mainspring.worker.held import Held


class ListWatch:
    """A watch that ends nothing, and knows what it should watch."""

    def __init__(self) -> None:
        self.watched: list[Held] = []

    def begin(self, held: Held) -> None:
        self.watched.append(held)

    def end(self, held: Held) -> None:
        self.watched.remove(held)


class ListHost:
    """What executors ask of a worker, with the outcomes in a list."""

    def __init__(self) -> None:
        self.watch = ListWatch()
        self.outcomes: list[Outcome | None] = []

    def hungry(self, executor: Executor) -> None: ...

    def context(self, held: Held) -> Context:
        raise NotImplementedError

    def record(self, entry: LogLine | Progress) -> None: ...

    def flush(self) -> None: ...

    def succeeded(self, held: Held) -> None: ...

    def charge(self, held: Held) -> None: ...

    def ended(self, held: Held, outcome: Outcome | None) -> None:
        self.outcomes.append(outcome)


def held_job(handler: Callable[[], Any], **policies: Any) -> Held:
    """Return a claimed job that calls *handler*."""
    now = SystemClock().now()
    job = Job(
        id=uuid4(),
        task="work",
        queue="default",
        payload='{"args":[],"kwargs":{}}',
        priority=0,
        state=JobState.RUNNING,
        run_at=now,
        created_at=now,
        key=None,
        attempt=1,
        losses=0,
        fence=1,
        session=uuid4(),
        started_at=now,
        wish=None,
        reason=None,
        error=None,
        finished_at=None,
        outcome=None,
        result=None,
        progress=None,
        schedule=None,
        tick=None,
        expires_at=None,
    )
    return Held(job, Task(name="work", handler=handler, **policies))
