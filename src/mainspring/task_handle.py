"""A task as its caller sees it: a function that can also be enqueued."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack
from uuid import UUID

import msgspec
from msgspec.structs import replace

from mainspring.client import Client
from mainspring.errors import InvalidValue, check_known
from mainspring.handler import check_findable, check_handler, context_of, executor_of, task_name
from mainspring.job_handle import JobHandle, id_of
from mainspring.keys import payload_closer
from mainspring.model.breaker import Breaker
from mainspring.model.channel import Channel, encode_channels
from mainspring.model.duration import Duration, duration
from mainspring.model.graph import Node
from mainspring.model.job import IDEMPOTENCY_TTL, IfTaken, NewJob, if_taken_of, priority_of
from mainspring.model.limits import Limit
from mainspring.model.links import Edge, IfFailed, if_failed_of
from mainspring.model.payload import Ref
from mainspring.model.retry import Retry
from mainspring.model.sealed import undo_context
from mainspring.model.task import Task
from mainspring.model.text import shortened
from mainspring.model.workflow import Plan, encode_plan
from mainspring.store.protocol import OWN
from mainspring.traces import traceparent
from mainspring.workflow_handle import handle

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
    encrypt: bool
    notify: Sequence[Channel]


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
    after: Sequence[Parental]
    notify: Sequence[Channel]
    conn: object


class Parent(msgspec.Struct, frozen=True):
    """A job that another comes after, where that is to know what to do if it fails, is cancelled or expires."""

    job: Any
    if_failed: IfFailed | Literal["cancel", "run", "wait"] = IfFailed.CANCEL


Parental = Parent | JobHandle[Any] | Node | UUID | str
"""What stands for a job that another comes after."""

_NOT_IN_A_WORKFLOW = ("conn", "idempotency_key", "idempotency_ttl", "if_taken")


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

    def belongs_to(self, client: Client) -> bool:
        """Return whether its jobs go to the database of *client*, as those of its app do, whatever their team."""
        return self._client.home is client.home

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

    def prepare(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NewJob:
        """Return the job of a call, checked but not stored, for `app.enqueue_prepared`."""
        (job,) = self._new_jobs([self.task.encode(*args, **kwargs)])
        return job

    def new_job(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        refs: Sequence[Ref],
        workflow: UUID | None,
        after: UUID | None,
        keyed: bool = True,
    ) -> NewJob:
        """Return a job that is not stored, for a graph; with a key only if it is *keyed*."""
        self._check_for_workflow()
        payload = self.task.encode_linked(args, kwargs, refs)
        if keyed:
            (job,) = self._new_jobs([payload], {ref.job for ref in refs}, after)
            return replace(job, workflow=workflow)
        return self._undoing(payload, {ref.job for ref in refs}, workflow, after)

    def _undoing(self, payload: str, results: Collection[UUID], workflow: UUID | None, after: UUID | None) -> NewJob:
        """Return a job that may undo something of *workflow*. It has no key, and what is sealed is sealed for that."""
        task = dataclasses.replace(self.task, encrypt=False)
        given = TaskHandle[P, R](self._client, task, {**self._wishes, "key": None})
        (job,) = given._new_jobs([payload], results, after)
        if self.task.encrypt:
            assert workflow is not None
            payload = self._client.keys.seal_document(payload, undo_context(workflow, task.name))
        return replace(job, workflow=workflow, payload=payload)

    def new_map(
        self,
        items: Sequence[object] | None,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        refs: Sequence[Ref],
        workflow: UUID | None,
        after: UUID | None,
    ) -> NewJob:
        """Return a job that becomes one for each of *items*, likewise. Those have keys; it has none."""
        self._check_for_workflow()
        payload = self.task.encode_map(items, args, kwargs, refs)
        if self._wishes.get("key") is not None:
            raise InvalidValue("expected no key for a map, whose jobs would all have it; None lets them have none")
        given = TaskHandle[P, R](self._client, self.task, {"fair": None, **self._wishes, "key": None})
        (job,) = given._new_jobs([payload], {ref.job for ref in refs}, after)
        return replace(job, workflow=workflow, plan=encode_plan(Plan(gathers=True, keyless="key" in self._wishes)))

    def _check_for_workflow(self) -> None:
        for name in _NOT_IN_A_WORKFLOW:
            if name in self._wishes:
                raise InvalidValue(f"expected no {name} for one job of a workflow; say it of the workflow, if anywhere")

    def _check_own_transaction(self) -> None:
        if "conn" in self._wishes:
            raise InvalidValue(
                "expected no conn with aenqueue, which works on another thread, while a transaction belongs to one; "
                "call enqueue, which takes no longer than a statement of your own"
            )

    def _enqueue(self, payloads: list[str]) -> list[JobHandle[R]]:
        conn = self._wishes.get("conn", OWN)
        stored = self._client.enqueue(self._new_jobs(payloads), conn) if payloads else []
        result_type, workflow = self.task.result_type, self.task.makes_workflow
        return [handle(self._client, job_id, workflow=workflow, result_type=result_type) for job_id in stored]

    def _new_jobs(self, payloads: list[str], results: Collection[UUID] = (), after: UUID | None = None) -> list[NewJob]:
        task, wishes = self.task, self._wishes
        edges = _edges(wishes.get("after", ()), results)
        ids = self._client.new_ids(len(payloads), max((*edges, *filter(None, [after])), default=None))
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
            parents=tuple(edges.values()),
            plan=encode_plan(Plan()) if task.makes_workflow else None,
            notify=encode_channels(wishes["notify"]) if "notify" in wishes else task.notify,
            trace=traceparent(),
        )
        if pattern.fair is None and "weight" in wishes:
            raise InvalidValue("expected a fair key with weight, which divides turns, got none")
        if task.encrypt and pattern.if_taken is not IfTaken.RETURN:
            raise InvalidValue(
                f"expected no if_taken={pattern.if_taken.value!r} for task {task.name!r}, which is encrypted: what is "
                "sealed for one job can't become another's; cancel that job first"
            )
        close = payload_closer(self._client.keys if task.encrypt else None, task.name)
        keys = task.key_of if "key" not in wishes else _none
        fairs = task.fair_of if "fair" not in wishes else _none
        return [
            pattern.like(job_id, close(job_id, payload), keys(payload), fairs(payload))
            for job_id, payload in zip(ids, payloads, strict=True)
        ]

    def _idempotency_ttl(self) -> timedelta:
        if "idempotency_ttl" not in self._wishes:
            return IDEMPOTENCY_TTL
        if "idempotency_key" not in self._wishes:
            raise InvalidValue("expected an idempotency_key with idempotency_ttl, got none")
        return duration(self._wishes["idempotency_ttl"], "idempotency_ttl")


def _edges(after: Sequence[Parental], results: Collection[UUID]) -> dict[UUID, Edge]:
    """Return the edges to those *after* which a job comes, and to those whose *results* it gets, by their ids."""
    if isinstance(after, str | UUID | Parent | Node | JobHandle) or not isinstance(after, Iterable):
        raise InvalidValue(f"expected after to be a list of jobs, got: {shortened(after)}")
    edges = {job: Edge(job) for job in results}
    for one in after:
        parent = one if isinstance(one, Parent) else Parent(one)
        job_id = id_of(getattr(parent.job, "id", parent.job))
        edges[job_id] = Edge(job_id, if_failed_of(parent.if_failed))
    return edges


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


def make_task(handler: Callable[..., Any], policies: Policies, workflow: str | None = None) -> Task:
    """Return the task that *policies* make of *handler*, or of its function if it is a task itself.

    If it makes a *workflow*, that is the parameter which takes the context.
    """
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
    given["notify"] = encode_channels(policies.get("notify"))
    if "name" not in given:
        given["name"] = task_name(handler)
    given["executor"] = executor_of(handler, policies.get("executor"))
    context = workflow or context_of(handler)
    task = Task(handler=handler, context=context, makes_workflow=workflow is not None, **given)
    check_findable(task)
    return task
