"""App: the front door. What users write against."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast, overload
from uuid import UUID

from mainspring.breakers import Breakers
from mainspring.client import Client
from mainspring.clock import Clock
from mainspring.dead import Dead
from mainspring.errors import InvalidValue, check_known, did_you_mean
from mainspring.job_handle import JobHandle, id_of
from mainspring.limits import Limits
from mainspring.model.job import JobState
from mainspring.model.task import Registry
from mainspring.model.text import shortened
from mainspring.model.trigger import Trigger
from mainspring.node import Node, NodeSettings, run_until_signalled
from mainspring.queues import PausedTasks, Queues
from mainspring.schedules import ScheduleOptions, Schedules, check_trigger
from mainspring.store.protocol import JobFilter
from mainspring.task_handle import Policies, TaskHandle, Wishes, make_task
from mainspring.worker.context import Context
from mainspring.workflow import NamedWorkflow, Workflow, declared
from mainspring.workflow_handle import handle_of

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=TaskHandle[..., Any])

DEFAULT_URL = "sqlite:///mainspring.db"


class Mainspring:
    """An application: its tasks, and the database that keeps their jobs.

    The database is MAINSPRING_URL's unless one is named, and a SQLite file here unless that says otherwise. It is
    opened when it is first needed, so making an app touches nothing.
    """

    def __init__(self, url: str | None = None, *, clock: Clock | None = None) -> None:
        """A *clock* takes the place of the database's own; it is meant for tests."""
        self.client = Client(url or os.environ.get("MAINSPRING_URL") or DEFAULT_URL, clock=clock)
        self.tasks = Registry()
        self.schedules = Schedules(self.client, self.tasks)
        self.dead = Dead(self.client, self.tasks)
        self.queues = Queues(self.client)
        self.limits = Limits(self.client)
        self.breakers = Breakers(self.client)
        self.paused_tasks = PausedTasks(self.client, self.tasks)

    @overload
    def task(self, handler: Callable[Concatenate[Context, P], Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, handler: Callable[Concatenate[Context, P], R], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, handler: Callable[P, Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, handler: Callable[P, R], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, /, **policies: Unpack[Policies]) -> TaskDecorator: ...

    def task(self, handler: Callable[..., Any] | None = None, /, **policies: Unpack[Policies]) -> Any:
        """Make a function a task. It stays an ordinary function when it is called.

        A function may become several tasks, of this app or of others: given a task, this makes another one of its
        function, with policies of its own.
        """
        if handler is None:
            return lambda handler: self._register(handler, policies)
        return self._register(handler, policies)

    @overload
    def workflow(self, name: str, /, **options: Unpack[WorkflowOptions]) -> NamedWorkflow: ...
    @overload
    def workflow(self, function: Callable[Concatenate[Workflow, P], object], /) -> TaskHandle[P, Any]: ...
    @overload
    def workflow(self, /, **policies: Unpack[Policies]) -> WorkflowDecorator: ...

    def workflow(self, made_of: Any = None, /, **given: Any) -> Any:
        """Make a workflow: called with a name, one to add jobs to and enqueue; as a decorator, one to enqueue by name.

        A function that is decorated gets the workflow as its first argument, and adds jobs to it when a worker runs
        it. It can be enqueued, scheduled, and added to other workflows as any task can.
        """
        if isinstance(made_of, str):
            check_known(given, WorkflowOptions)
            return NamedWorkflow(self.client, self.tasks, made_of, given.get("key"))
        if made_of is None:
            return lambda function: self._declare(function, cast("Policies", given))
        return self._declare(made_of, cast("Policies", given))

    def schedule(
        self,
        trigger: Trigger,
        *,
        id: str | None = None,  # noqa: A002
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[S], S]:
        """Have a task enqueued when *trigger* says so. It stands above `@app.task`, any number of times.

        Every worker of the app stores it as it starts. Its id is the name of the task unless given.
        """
        check_trigger(trigger)  # or a decorator without its parentheses would do nothing at all
        return lambda task: self.schedules.define(id, task, trigger, options)

    def enqueue(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> JobHandle[Any]:
        """Enqueue a job of the task with this name.

        Its arguments are checked if the app knows the task. An app that has tasks knows them all; one that has none
        is a mere sender, and may name any.
        """
        return self._to_send(task, wishes).enqueue(*args, **kwargs or {})

    async def aenqueue(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> JobHandle[Any]:
        """Do as `enqueue` does, for callers that must not block their loop."""
        return await self._to_send(task, wishes).aenqueue(*args, **kwargs or {})

    def job(self, job_id: UUID | str) -> JobHandle[Any]:
        """Return a handle for the job with this id, which must exist."""
        return handle_of(self.client, self.tasks, self.client.get(id_of(job_id)))

    def jobs(
        self,
        *,
        state: JobState | str | None = None,
        queue: str | None = None,
        task: str | None = None,
        key: str | None = None,
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> list[JobHandle[Any]]:
        """Return jobs, newest first; pass the last one's id as *before* for the next page."""
        match = JobFilter(state=None if state is None else _state(state), queue=queue, task=task, key=key)
        found = self.client.page(match, None if before is None else id_of(before), limit)
        return [handle_of(self.client, self.tasks, job) for job in found]

    def signal(self, job: JobHandle[Any] | UUID | str, name: str, value: object = None) -> None:
        """Send a signal to a job, which takes it with `ctx.wait_signal(name)`, now or when it comes to that."""
        self._signalled(job).signal(name, value)

    async def asignal(self, job: JobHandle[Any] | UUID | str, name: str, value: object = None) -> None:
        """Do as `signal` does, for callers that must not block their loop."""
        await self._signalled(job).asignal(name, value)

    @contextmanager
    def worker(self, **settings: Unpack[NodeSettings]) -> Iterator[Node]:
        """Work in the background of this process while the block lasts; it ends when what has started is settled."""
        node = Node(self.client, self.tasks, settings, self.schedules.sync)
        node.start()
        try:
            yield node
        finally:
            node.stop()

    def run_worker(self, **settings: Unpack[NodeSettings]) -> None:
        """Work until SIGTERM or SIGINT, and settle what has started; a second signal stops at once."""
        run_until_signalled(Node(self.client, self.tasks, settings, self.schedules.sync))

    def close(self) -> None:
        """Close the database. The app can be used again, which opens it again."""
        self.client.close()

    def _register(self, handler: Callable[..., Any], policies: Policies) -> TaskHandle[..., Any]:
        task = make_task(handler, policies)
        self.tasks.add(task)
        return TaskHandle(self.client, task)

    def _declare(self, function: Callable[..., Any], policies: Policies) -> TaskHandle[..., Any]:
        handler, parameter = declared(self.client, self.tasks, function)
        task = make_task(handler, policies, workflow=parameter)
        self.tasks.add(task)
        return TaskHandle(self.client, task)

    def _signalled(self, job: JobHandle[Any] | UUID | str) -> JobHandle[Any]:
        return JobHandle(self.client, job.id if isinstance(job, JobHandle) else id_of(job))

    def _to_send(self, task: str, wishes: Wishes) -> TaskHandle[..., Any]:
        return TaskHandle[..., Any](self.client, self.tasks.to_send(task)).using(**wishes)


class WorkflowOptions(TypedDict, total=False):
    """What a workflow that is made job by job may say beside its name."""

    key: str | None


class WorkflowDecorator(Protocol):
    """What `app.workflow(...)` returns without a name: it keeps the types of the function that it decorates."""

    def __call__(self, function: Callable[Concatenate[Workflow, P], object], /) -> TaskHandle[P, Any]: ...


class TaskDecorator(Protocol):
    """What `app.task(...)` returns: it keeps the types of the function that it decorates."""

    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], R], /) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> TaskHandle[P, R]: ...


def _state(wanted: JobState | str) -> JobState:
    if wanted not in tuple(JobState):
        hint = did_you_mean(str(wanted), JobState)
        raise InvalidValue(f"expected state to be one of {', '.join(JobState)}, got: {shortened(wanted)}{hint}")
    return JobState(wanted)
