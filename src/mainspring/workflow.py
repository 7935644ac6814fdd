"""Workflows of an app: made job by job and enqueued as a whole, or declared once and enqueued like a task."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from msgspec.structs import replace

from mainspring.client import Client
from mainspring.errors import InvalidValue
from mainspring.handler import check_handler, name_of, task_name
from mainspring.model.channel import Channel, encode_channels
from mainspring.model.graph import Addable, Graph, Node
from mainspring.model.job import NewJob
from mainspring.model.payload import encode_call
from mainspring.model.task import Registry
from mainspring.model.text import shortened
from mainspring.model.workflow import NewWorkflow, encode_plan
from mainspring.store.protocol import OWN
from mainspring.task_handle import TaskHandle
from mainspring.worker.context import Context
from mainspring.workflow_handle import WorkflowHandle

_NO_ARGUMENTS = encode_call((), {})


class Workflow(Graph):
    """Jobs that belong together. Nothing of it is stored before `enqueue`, and then all of it or nothing.

    Its result is that of the job that was added last, unless `output` is set to another.
    """

    def __init__(self, client: Client, tasks: Registry, job_id: UUID) -> None:
        super().__init__(job_id)
        self._client = client
        self._tasks = tasks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave what was made as it is: `enqueue` is a call of its own."""

    def task(self, task: Addable | str) -> Addable:
        """Return *task*, which may be called by its name."""
        if isinstance(task, str):
            task = TaskHandle[..., Any](self._client, self._tasks.to_send(task))
        if isinstance(task, TaskHandle) and not task.belongs_to(self._client):
            raise InvalidValue(f"expected a task of the same app, got one of another: {task!r}")
        return super().task(task)


class NamedWorkflow(Workflow):
    """A workflow that is enqueued by whoever has made it."""

    def __init__(
        self, client: Client, tasks: Registry, name: str, key: str | None, notify: Sequence[Channel] = ()
    ) -> None:
        (job_id,) = client.new_ids(1)
        super().__init__(client, tasks, job_id)
        self._job = NewJob(id=job_id, task=name, payload=_NO_ARGUMENTS, key=key, notify=encode_channels(notify))
        self._enqueued = False

    @property
    def id(self) -> UUID:
        """The id that it has when it is stored, unless another one stands for it."""
        return self._job.id

    @property
    def request(self) -> NewJob:
        """The job that it is itself, without the others."""
        return self._job

    def enqueue(self, conn: object = OWN) -> WorkflowHandle[Any]:
        """Store it. If an unfinished one has its key, that one stands for it, and nothing is stored.

        With *conn*, a connection of the caller's own to the same database, it is part of its transaction.
        """
        if not self.jobs:
            raise InvalidValue(f"expected workflow {self._job.task!r} to have jobs, got none; add some with add or map")
        self.check_open()
        job = replace(self._job, plan=encode_plan(self.plan), members=len(self.jobs))
        stored = self._client.enqueue_workflow(NewWorkflow(job, tuple(self.jobs)), conn)
        self._enqueued = conn is OWN  # another's transaction may be rolled back, and tried again
        return WorkflowHandle(self._client, stored)

    async def aenqueue(self) -> WorkflowHandle[Any]:
        """Do as `enqueue` does, for callers that must not block their loop; in no transaction of theirs."""
        return await asyncio.to_thread(self.enqueue)

    def check_open(self) -> None:
        if self._enqueued:
            raise InvalidValue(f"workflow {self._job.task!r} was enqueued already; make another for another run")


def declared(client: Client, tasks: Registry, function: Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    """Return the handler that makes a workflow of what *function* adds to it, and the parameter that takes that."""
    check_handler(function)
    if inspect.iscoroutinefunction(function):
        raise InvalidValue(
            f"expected a plain function that adds jobs to a workflow, got the coroutine function {name_of(function)}"
        )
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise InvalidValue(
            "expected the function of a workflow to take that as its first parameter, such as "
            f"def {task_name(function)}(wf, ...), got: {task_name(function)}()"
        )

    @functools.wraps(function)
    def expand(context: Context, /, *args: Any, **kwargs: Any) -> Graph:
        made = Workflow(client, tasks, context.job_id)
        output = function(made, *args, **kwargs)
        if output is not None and not (isinstance(output, Node) and made.has(output)):
            raise InvalidValue(
                f"expected workflow {task_name(function)!r} to return the job whose result is its own, or nothing, "
                f"got: {shortened(output)}"
            )
        made.output = output or made.output
        return made

    expand.__annotations__ = {name: note for name, note in function.__annotations__.items() if name != "return"}
    return expand, parameters[0].name
