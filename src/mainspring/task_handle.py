"""A task as its caller sees it: a function that can also be enqueued."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack

from mainspring.client import Client
from mainspring.errors import InvalidValue, check_known
from mainspring.handler import check_findable, check_handler, context_of, executor_of, task_name
from mainspring.job_handle import JobHandle
from mainspring.model.breaker import Breaker
from mainspring.model.duration import Duration, duration
from mainspring.model.job import IDEMPOTENCY_TTL, IfTaken, NewJob, if_taken_of, priority_of
from mainspring.model.limits import Limit
from mainspring.model.retry import Retry
from mainspring.model.task import Task
from mainspring.model.text import shortened
from mainspring.store.protocol import OWN

P = ParamSpec("P")
R = TypeVar("R")


class Policies(TypedDict, total=False):
    """What a task's jobs are like unless they say otherwise."""

    name: str
    queue: str
    priority: int | str
    retry: Retry
    timeout: Duration
    expires: Duration
    executor: str
    limits: Sequence[Limit]
    breaker: Breaker
    key: str
    fair: str


class Wishes(TypedDict, total=False):
    """What one enqueue may want differently from its task."""

    queue: str
    priority: int | str
    run_after: Duration
    run_at: datetime
    expires: Duration
    key: str | None
    if_taken: IfTaken | Literal["return", "replace", "reschedule"]
    idempotency_key: str
    idempotency_ttl: Duration
    fair: str | None
    weight: int
    conn: object


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
        return self._enqueue([self.task.encode(*args, **kwargs) for args, kwargs in map(_checked, calls)])

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Do as `enqueue` does, for callers that must not block their loop."""
        self._check_own_transaction()
        return await asyncio.to_thread(self.enqueue, *args, **kwargs)

    async def aenqueue_many(self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]) -> list[JobHandle[R]]:
        """Do as `enqueue_many` does, likewise."""
        self._check_own_transaction()
        return await asyncio.to_thread(self.enqueue_many, calls)

    delay = enqueue

    def _check_own_transaction(self) -> None:
        if "conn" in self._wishes:
            raise InvalidValue(
                "expected no conn with aenqueue, which works on another thread, while a transaction belongs to one; "
                "call enqueue, which takes no longer than a statement of your own"
            )

    def _enqueue(self, payloads: list[str]) -> list[JobHandle[R]]:
        conn = self._wishes.get("conn", OWN)
        stored = self._client.enqueue(self._new_jobs(payloads), conn) if payloads else []
        result_type = self.task.result_type
        return [JobHandle(self._client, job_id, result_type) for job_id in stored]

    def _new_jobs(self, payloads: list[str]) -> list[NewJob]:
        task, wishes = self.task, self._wishes
        ids = self._client.new_ids(len(payloads))
        pattern = NewJob(
            id=ids[0],
            payload=payloads[0],
            task=task.name,
            queue=wishes.get("queue", task.queue),
            priority=priority_of(wishes.get("priority", task.priority)),
            run_at=wishes.get("run_at"),
            delay=duration(wishes["run_after"], "run_after") if "run_after" in wishes else timedelta(0),
            expires=duration(wishes["expires"], "expires") if "expires" in wishes else task.expires,
            key=wishes["key"] if "key" in wishes else task.key_of(payloads[0]),
            if_taken=if_taken_of(wishes["if_taken"]) if "if_taken" in wishes else IfTaken.RETURN,
            idempotency_key=wishes.get("idempotency_key"),
            idempotency_ttl=self._idempotency_ttl(),
            fair=wishes["fair"] if "fair" in wishes else task.fair_of(payloads[0]),
            weight=wishes.get("weight", 1),
        )
        if pattern.fair is None and "weight" in wishes:
            raise InvalidValue("expected a fair key with weight, which divides turns, got none")
        keys = task.key_of if "key" not in wishes else _none
        fairs = task.fair_of if "fair" not in wishes else _none
        return [
            pattern.like(job_id, payload, keys(payload), fairs(payload))
            for job_id, payload in zip(ids, payloads, strict=True)
        ]

    def _idempotency_ttl(self) -> timedelta:
        if "idempotency_ttl" not in self._wishes:
            return IDEMPOTENCY_TTL
        if "idempotency_key" not in self._wishes:
            raise InvalidValue("expected an idempotency_key with idempotency_ttl, got none")
        return duration(self._wishes["idempotency_ttl"], "idempotency_ttl")


def _checked(call: object) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return *call* if it is a pair of arguments by position and by name: a lone argument would be taken apart."""
    match call:
        case [Sequence() as args, Mapping() as kwargs] if not isinstance(args, str | bytes):
            return args, kwargs
    raise InvalidValue(
        "expected pairs of arguments by position and by name, such as ((1,), {'tenant': 'acme'}), "
        f"got: {shortened(call)}"
    )


def _none(_: str) -> None:
    """Return nothing: said once for all jobs."""


def make_task(handler: Callable[..., Any], policies: Policies) -> Task:
    """Return the task that *policies* make of *handler*, or of its function if it is a task itself."""
    check_known(policies, Policies)
    if isinstance(handler, TaskHandle):
        handler = handler.task.handler
    check_handler(handler)
    given: dict[str, Any] = dict(policies)
    for length in ("timeout", "expires"):
        if length in given:
            given[length] = duration(given[length], length)
    if "priority" in given:
        given["priority"] = priority_of(given["priority"])
    if "name" not in given:
        given["name"] = task_name(handler)
    given["executor"] = executor_of(handler, policies.get("executor"))
    task = Task(handler=handler, context=context_of(handler), **given)
    check_findable(task)
    return task
