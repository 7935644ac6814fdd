"""Prepare: give claimed jobs the results of others that they need, and let maps become the jobs they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from mainspring.errors import InvalidPayload, InvalidValue
from mainspring.model.job import Job, NewJob
from mainspring.model.outcome import Expanded, Failed, Outcome
from mainspring.model.payload import decode_call, filled
from mainspring.model.task import Task
from mainspring.model.text import shortened
from mainspring.model.workflow import Plan, encode_plan, plan_of
from mainspring.store import Store
from mainspring.worker.failure import failure_of

MOST_ITEMS = 100_000
"""Jobs that one map may become: they are stored in one transaction."""

NewIds = Callable[[int, UUID | None], list[UUID]]


def needs_results(job: Job) -> bool:
    """Return whether *job* takes results of others: only one that comes after others, or belongs to them, can."""
    return (job.links is not None or job.workflow is not None) and '"refs":' in job.payload


def fill(store: Store, jobs: Sequence[Job]) -> dict[UUID, str]:
    """Return the payloads of *jobs* with the results of other jobs in their places; what has none is null."""
    refs = {job.id: {ref.job for ref in decode_call(job.payload).refs} for job in jobs}
    wanted = set().union(*refs.values())
    results = store.results(wanted) if wanted else {}
    return {job.id: filled(job.payload, results) for job in jobs}


def is_map(job: Job) -> bool:
    """Return whether *job* is to become others."""
    plan = plan_of(job)
    return plan is not None and plan.gathers and not plan.begun


def expand(job: Job, task: Task, new_ids: NewIds) -> Outcome:
    """Return the outcome of the map *job*, whose arguments are known: the jobs of *task* that it becomes."""
    try:
        members = _members(job, task, new_ids)
    except InvalidValue as error:
        return Failed(failure_of(error, task.name), retryable=False)
    return Expanded(tuple(members), encode_plan(Plan(begun=True, gathers=True)))


def _members(job: Job, task: Task, new_ids: NewIds) -> list[NewJob]:
    call = decode_call(job.payload)
    items, *args = call.args
    if not isinstance(items, list):
        raise InvalidPayload(f"expected a list to map {task.name!r} over, got: {shortened(items)}")
    if len(items) > MOST_ITEMS:
        raise InvalidPayload(f"expected at most {MOST_ITEMS:,} items to map {task.name!r} over, got {len(items):,}")
    if not items:
        return []
    payloads = [task.encode(item, *args, **call.kwargs) for item in items]
    ids = new_ids(len(items), job.id)
    pattern = NewJob(
        id=ids[0],
        task=job.task,
        payload=payloads[0],
        queue=job.queue,
        priority=job.priority,
        expires=task.expires,
        key=task.key_of(payloads[0]),
        fair=job.fair or task.fair_of(payloads[0]),
        workflow=job.id,
    )
    return [
        pattern.like(job_id, payload, task.key_of(payload), job.fair or task.fair_of(payload))
        for job_id, payload in zip(ids, payloads, strict=True)
    ]
