"""Prepare: give claimed jobs the results of others that they need, and let maps become the jobs they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from msgspec.structs import replace

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


def is_related(job: Job) -> bool:
    """Return whether *job* may take results of others, or stand for them."""
    return job.links is not None or job.workflow is not None or job.plan is not None


def prepare(store: Store, jobs: Sequence[tuple[Job, Task]], new_ids: NewIds) -> list[Job | Outcome]:
    """Return, for each of *jobs*, how it starts, or what its attempt has come to already."""
    try:
        wanted = set[UUID]().union(*(_wanted(job) for job, _ in jobs))
        results = store.results(wanted) if wanted else {}
    except InvalidPayload as error:
        if len(jobs) == 1:
            return [Failed(failure_of(error, jobs[0][1].name), retryable=False)]
        return [made for one in jobs for made in prepare(store, [one], new_ids)]  # it is the fault of some only
    return [_start(job, task, results, new_ids) for job, task in jobs]


def _start(job: Job, task: Task, results: dict[UUID, str], new_ids: NewIds) -> Job | Outcome:
    try:
        given = replace(job, payload=filled(job.payload, results)) if _wanted(job) else job
        return _expand(given, task, new_ids) if _is_map(job) else given
    except InvalidValue as error:
        return Failed(failure_of(error, task.name), retryable=False)


def _wanted(job: Job) -> set[UUID]:
    """Return the jobs whose results *job* takes: only one that comes after others, or belongs to them, can."""
    if (job.links is None and job.workflow is None) or '"refs":' not in job.payload:
        return set()
    return {ref.job for ref in decode_call(job.payload).refs}


def _is_map(job: Job) -> bool:
    plan = plan_of(job)
    return plan is not None and plan.gathers and not plan.begun


def _expand(job: Job, task: Task, new_ids: NewIds) -> Outcome:
    """Return the jobs of *task* that the map *job*, whose arguments are known, becomes."""
    call = decode_call(job.payload)
    items, *args = call.args
    if not isinstance(items, list):
        raise InvalidPayload(f"expected a list to map {task.name!r} over, got: {shortened(items)}")
    if len(items) > MOST_ITEMS:
        raise InvalidPayload(f"expected at most {MOST_ITEMS:,} items to map {task.name!r} over, got {len(items):,}")
    payloads = [task.encode(item, *args, **call.kwargs) for item in items]
    members = _members(job, task, payloads, new_ids(len(items), job.id)) if items else []
    return Expanded(tuple(members), encode_plan(replace(plan_of(job) or Plan(gathers=True), begun=True)))


def _members(job: Job, task: Task, payloads: Sequence[str], ids: Sequence[UUID]) -> list[NewJob]:
    pattern = NewJob(
        id=ids[0],
        task=job.task,
        payload=payloads[0],
        queue=job.queue,
        priority=job.priority,
        expires=task.expires,
        fair=job.fair,
        workflow=job.id,
    )
    plan = plan_of(job)
    key_of = task.key_of if plan is None or not plan.keyless else lambda _: None
    return [
        pattern.like(job_id, payload, key_of(payload), job.fair or task.fair_of(payload))
        for job_id, payload in zip(ids, payloads, strict=True)
    ]
