"""Prepare: open what is sealed, give claimed jobs the results of others, and let maps become what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from mainspring.errors import InvalidKey, InvalidPayload, InvalidValue, MainspringError, SealBroken, StoreError
from mainspring.keys import Keyring, open_payload, payload_closer
from mainspring.model.job import TELLERS, Job, NewJob
from mainspring.model.outcome import Expanded, Failed, Outcome
from mainspring.model.payload import decode_call, filled
from mainspring.model.sealed import is_closed
from mainspring.model.secret import SCHEME, Path, places
from mainspring.model.task import Task
from mainspring.model.team import local_name
from mainspring.model.text import shortened
from mainspring.model.workflow import Plan, encode_plan, plan_of
from mainspring.store import Store
from mainspring.worker.failure import failure_of

MOST_ITEMS = 100_000
"""Jobs that one map may become: they are stored in one transaction."""

NewIds = Callable[[int, UUID | None], list[UUID]]


class Means(NamedTuple):
    """What it takes to prepare jobs."""

    store: Store
    keys: Keyring
    new_ids: NewIds


class Start(NamedTuple):
    """How a job starts: with which arguments, which secrets stand where among them, and whether it is sealed."""

    job: Job
    secrets: Mapping[Path, str]
    sealed: bool


def needs_preparation(job: Job, task: Task) -> bool:
    """Return whether *job* may take results of others, stand for them, be sealed or name secrets. Most do neither."""
    return (
        job.links is not None
        or job.workflow is not None
        or job.plan is not None
        or task.encrypt
        or SCHEME in job.payload
        or is_closed(job.payload)
    )


def prepare(means: Means, jobs: Sequence[tuple[Job, Task]]) -> list[Start | Outcome]:
    """Return, for each of *jobs*, how it starts, or what its attempt has come to already."""
    begun = [_open(means.keys, job, task) for job, task in jobs]
    try:
        wanted = set[UUID]().union(*(_wanted(one.job) for one in begun if isinstance(one, Start)))
        results = means.store.results(wanted, means.keys) if wanted else {}
    except StoreError:
        raise
    except MainspringError as error:
        if len(jobs) == 1:
            return [_failed(error, jobs[0][1])]
        return [made for one in jobs for made in prepare(means, [one])]  # it is the fault of some only
    return [
        _start(means, one, task, results) if isinstance(one, Start) else one
        for one, (_, task) in zip(begun, jobs, strict=True)
    ]


def _open(keys: Keyring, job: Job, task: Task) -> Start | Outcome:
    try:
        payload = open_payload(keys, job)
        # What people are told may quote anything, and would be sent out with a secret in its place.
        secrets = places(decode_call(payload)) if SCHEME in payload and task.name not in TELLERS else {}
    except MainspringError as error:
        return _failed(error, task)
    sealed = task.encrypt or payload is not job.payload
    return Start(job if payload is job.payload else replace(job, payload=payload), secrets, sealed)


def _failed(error: MainspringError, task: Task) -> Outcome:
    # Another worker may have the key, or this one get it, so that to try again is no waste. What is wrong with the job
    # itself stays wrong.
    retryable = isinstance(error, InvalidKey) or not isinstance(error, InvalidValue | SealBroken)
    return Failed(failure_of(error, task.name), retryable=retryable)


def _start(means: Means, start: Start, task: Task, results: dict[UUID, str]) -> Start | Outcome:
    job = start.job
    try:
        given = replace(job, payload=filled(job.payload, results)) if _wanted(job) else job
        if not _is_map(job):
            return start._replace(job=given)
        # What one that is sealed has returned is not to be stored in the open as the arguments of others.
        sealed = start.sealed or _take_sealed(means.store, job)
        return _expand(means, start._replace(job=given, sealed=sealed), task)
    except StoreError:
        raise
    except MainspringError as error:
        return _failed(error, task)


def _take_sealed(store: Store, job: Job) -> bool:
    """Return whether *job* takes results of others that are sealed."""
    wanted = _wanted(job)
    return any(is_closed(one.payload) or is_closed(one.result or "") for one in store.get(wanted).values())


def _wanted(job: Job) -> set[UUID]:
    """Return the jobs whose results *job* takes: only one that comes after others, or belongs to them, can."""
    if (job.links is None and job.workflow is None) or '"refs":' not in job.payload:
        return set()
    return {ref.job for ref in decode_call(job.payload).refs}


def _is_map(job: Job) -> bool:
    plan = plan_of(job)
    return plan is not None and plan.gathers and not plan.begun


def _expand(means: Means, start: Start, task: Task) -> Outcome:
    """Return the jobs of *task* that a map, whose arguments are known, becomes."""
    job = start.job
    call = decode_call(job.payload)
    if SCHEME in job.payload and places(call) != start.secrets:
        # What comes from outside may look like this, and would be sent back there with the secret in its place.
        raise InvalidPayload(f"expected items to map {task.name!r} over that name no secrets, got one from another job")
    items, *args = call.args
    if not isinstance(items, list):
        raise InvalidPayload(f"expected a list to map {task.name!r} over, got: {shortened(items)}")
    if len(items) > MOST_ITEMS:
        raise InvalidPayload(f"expected at most {MOST_ITEMS:,} items to map {task.name!r} over, got {len(items):,}")
    payloads = [task.encode(item, *args, **call.kwargs) for item in items]
    members = _members(means, start, task, payloads) if items else []
    return Expanded(tuple(members), encode_plan(replace(plan_of(job) or Plan(gathers=True), begun=True)))


def _members(means: Means, start: Start, task: Task, payloads: Sequence[str]) -> list[NewJob]:
    job = start.job
    fair = local_name(job.fair) or None  # what it is called among those of its team
    ids = means.new_ids(len(payloads), job.id)
    pattern = NewJob(
        id=ids[0],
        task=job.task,
        payload=payloads[0],
        queue=job.queue,
        priority=job.priority,
        expires=task.expires,
        fair=fair,
        workflow=job.id,
    )
    plan = plan_of(job)
    key_of = task.key_of if plan is None or not plan.keyless else lambda _: None
    close = payload_closer(means.keys if start.sealed else None, job.task)
    return [
        pattern.like(job_id, close(job_id, payload), key_of(payload), fair or task.fair_of(payload))
        for job_id, payload in zip(ids, payloads, strict=True)
    ]
