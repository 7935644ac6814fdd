"""A task as its caller sees it: a function that can also be enqueued."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack

from mainspring.client import Client
from mainspring.errors import InvalidValue, check_known, did_you_mean
from mainspring.job_handle import JobHandle
from mainspring.model.duration import Duration, duration
from mainspring.model.job import NewJob
from mainspring.model.retry import Retry
from mainspring.model.task import Executor, Task
from mainspring.model.text import shortened
from mainspring.twin import twin
from mainspring.worker.context import Context

P = ParamSpec("P")
R = TypeVar("R")


class Policies(TypedDict, total=False):
    """What a task's jobs are like unless they say otherwise."""

    name: str
    queue: str
    priority: int
    retry: Retry
    timeout: Duration
    executor: str


class Wishes(TypedDict, total=False):
    """What one enqueue may want differently from its task."""

    queue: str
    priority: int
    run_after: Duration
    run_at: datetime
    key: str


class TaskHandle(Generic[P, R]):
    """A task of an app. Calling it calls the function; enqueueing it has a worker do so."""

    __wrapped__: Callable[..., Any]

    def __init__(self, client: Client, task: Task, wishes: Wishes | None = None) -> None:
        self._client = client
        self._wishes: Wishes = wishes or {}
        self.task = task
        # Not what else the function carries: an attribute of the same name as one of ours would take its place.
        functools.update_wrapper(self, task.handler, updated=())

    def __repr__(self) -> str:
        return f"<task {self.task.name}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.task.handler(*args, **kwargs)

    @property
    def name(self) -> str:
        return self.task.name

    def using(self, **wishes: Unpack[Wishes]) -> TaskHandle[P, R]:
        """Return this task with other wishes for the jobs that are enqueued through it."""
        merged: Wishes = {**self._wishes, **wishes}
        check_known(merged, Wishes)
        if "run_at" in merged and "run_after" in merged:
            raise InvalidValue("expected run_at or run_after, got both")
        return TaskHandle(self._client, self.task, merged)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Have the function called by a worker. Once this returns, the job is never lost."""
        return self._enqueue([self.task.encode(*args, **kwargs)])[0]

    def enqueue_many(self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]) -> list[JobHandle[R]]:
        """Enqueue a job for each pair of arguments by position and by name, all or none."""
        return self._enqueue([self.task.encode(*args, **kwargs) for args, kwargs in calls])

    delay = enqueue
    aenqueue = twin(enqueue)
    aenqueue_many = twin(enqueue_many)

    def _enqueue(self, payloads: list[str]) -> list[JobHandle[R]]:
        ids = self._client.store.enqueue(self._new_jobs(payloads))
        return [JobHandle(self._client, job_id, self.task.result_type) for job_id in ids]

    def _new_jobs(self, payloads: list[str]) -> list[NewJob]:
        task, wishes = self.task, self._wishes
        alike = functools.partial(
            NewJob,
            task=task.name,
            queue=wishes.get("queue", task.queue),
            priority=wishes.get("priority", task.priority),
            run_at=wishes.get("run_at"),
            delay=duration(wishes["run_after"], "run_after") if "run_after" in wishes else timedelta(0),
            key=wishes.get("key"),
        )
        ids = self._client.new_ids(len(payloads))
        return [alike(id=job_id, payload=payload) for job_id, payload in zip(ids, payloads, strict=True)]


def make_task(handler: Callable[..., Any], policies: Policies) -> Task:
    """Return the task that *policies* make of *handler*, or of its function if it is a task itself."""
    check_known(policies, Policies)
    if isinstance(handler, TaskHandle):
        handler = handler.task.handler
    given: dict[str, Any] = dict(policies)
    if "timeout" in given:
        given["timeout"] = duration(given["timeout"], "timeout")
    given["executor"] = _executor(handler, policies.get("executor"))
    given.setdefault("name", getattr(handler, "__name__", None))
    return Task(handler=handler, context=_context(handler), **given)


def _executor(handler: Callable[..., Any], wanted: str | None) -> Executor:
    awaits = inspect.iscoroutinefunction(handler)
    if wanted is None:
        return Executor.COROUTINE if awaits else Executor.THREAD
    if wanted not in tuple(Executor):
        known = ", ".join(Executor)
        raise InvalidValue(
            f"expected executor to be one of {known}, got: {shortened(wanted)}{did_you_mean(str(wanted), Executor)}"
        )
    if awaits != (wanted == Executor.COROUTINE):
        kind = "a coroutine function" if awaits else "a plain function"
        raise InvalidValue(f"expected a handler that executor={wanted!r} can run, got {kind}")
    return Executor(wanted)


def _context(handler: Callable[..., Any]) -> str | None:
    """Return the name of the parameter that is annotated as a Context."""
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return None  # refused when it is enqueued, with the reason
    found = [parameter for parameter in parameters if _is_context(parameter.annotation)]
    if not found:
        return None
    (parameter, *more) = found
    if more or (parameter is not parameters[0] and parameter.kind is not inspect.Parameter.KEYWORD_ONLY):
        raise InvalidValue("expected the Context to be one parameter: the first, or one that is passed by name only")
    return parameter.name


def _is_context(annotation: object) -> bool:
    # Annotations may be text, and name things that do not exist yet; ours is known by its last word.
    return annotation is Context or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Context")
