"""Jobs: created, looked at, listed, and ruled by whoever made them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header, Query, Request
from starlette.datastructures import State
from starlette.responses import Response

from mainspring.api.callers import Asking, Caller
from mainspring.api.channels import channels
from mainspring.api.creates import Wanted
from mainspring.api.documents import (
    NO_NUL,
    BulkDocument,
    BulkRequest,
    JobDocument,
    JobPage,
    JobRequest,
    ParentRequest,
    ReasonRequest,
    SignalRequest,
    StateDocument,
)
from mainspring.api.pages import ErrorText, KeyText, Limit, Moment, QueueName, TaskName
from mainspring.api.policy import needs
from mainspring.api.requests import JsonRequest
from mainspring.api.routing import Routes, answer
from mainspring.client import Match
from mainspring.documents.jobs import job_document
from mainspring.documents.results import result_of
from mainspring.errors import InvalidValue, JobNotFound, MainspringError
from mainspring.job_handle import JobHandle
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.text import shortened
from mainspring.model.token import Role
from mainspring.task_handle import Parent, Wishes

routes = Routes("jobs")

BULK_BYTES = 16 * 1024 * 1024
_LONGEST_WAIT = 60

_ABOUT_THE_CALL = ("task", "args", "kwargs")
_NULL_SAYS_SO = ("key", "fair")
"""What null means something in: that the task's own does not hold."""


async def _create_quickly(request: JsonRequest, caller: Caller) -> Response:
    """Call `create_job` without the detours of the framework, which would take as long as all else that it does."""
    return await create_job(request, caller, await request.parsed(JobRequest), request.headers.get("idempotency-key"))


@routes.post(
    "/jobs",
    needs(Role.SUBMITTER, records="job.enqueue"),
    gives=JobDocument,
    status=201,
    also={200: JobDocument},
    problems=(409, 429),
    quickly=_create_quickly,
)
async def create_job(
    request: Request,
    caller: Asking,
    wanted: JobRequest,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=512, pattern=NO_NUL, description="As well as in the body, or there alone."),
    ] = None,
) -> Response:
    """Create a job.

    201 says that it is new; 200 that another one, with its key or idempotency key, stands for it.
    """
    if idempotency_key is not None:
        if wanted.idempotency_key not in (None, idempotency_key):
            raise InvalidValue(
                "expected the same idempotency key in the header and in the body, got "
                f"{shortened(idempotency_key)} and {shortened(wanted.idempotency_key)}; send one of the two"
            )
        wanted.idempotency_key = idempotency_key
    created = await request.app.state.creates.ask(Wanted(caller, lambda: _prepared(caller, wanted)))
    return answer(job_document(created.job, caller.keys), 201 if created.new else 200)


@routes.post(
    "/jobs/bulk",
    needs(Role.SUBMITTER, records="job.enqueue_many"),
    gives=BulkDocument,
    status=201,
    problems=(409, 429),
    most=BULK_BYTES,
)
def create_jobs(caller: Asking, wanted: BulkRequest) -> Response:
    """Create up to 1,000 jobs, all or none, in one transaction.

    The answer has the id of the job that stands for each, in their order. The body may have up to 16 MiB.
    """
    prepared = [_prepared_at(number, caller, one) for number, one in enumerate(wanted.jobs)]
    tasks = sorted({one.task for one in prepared})
    caller.record(f"{len(prepared)} jobs", tasks=tasks[:20], first=str(prepared[0].id))
    caller.app.admit_prepared(prepared)
    stored = caller.app.enqueue_prepared(prepared)
    items = [{"id": job.id, "created": job.id == new.id} for new, job in zip(prepared, stored, strict=True)]
    return answer({"items": items}, 201)


@routes.get("/jobs", needs(Role.VIEWER), gives=JobPage)
def list_jobs(  # noqa: PLR0913 - one parameter for each filter
    caller: Asking,
    state: Annotated[JobState | None, Query(description="Only those in this state.")] = None,
    queue: QueueName = None,
    task: TaskName = None,
    key: KeyText = None,
    since: Annotated[Moment, Query(description="Only those made then or later.")] = None,
    until: Annotated[Moment, Query(description="Only those made before.")] = None,
    finished_since: Annotated[Moment, Query(description="Only those that ended then or later.")] = None,
    finished_until: Annotated[Moment, Query(description="Only those that ended before.")] = None,
    error: ErrorText = None,
    before: Annotated[UUID | None, Query(description="Only those older than this one, for the next page.")] = None,
    limit: Limit = 50,
) -> Response:
    """List jobs, newest first.

    A time is an instant, or how long ago that was, such as `90m`. No more jobs are looked at than can be in no time:
    where few fit, there may be fewer than `limit`, or none, and more from `next` on.
    """
    client = caller.app.client
    times: Match = {
        "since": since,
        "until": until,
        "finished_since": finished_since,
        "finished_until": finished_until,
    }
    match = client.match({"state": state, "queue": queue, "task": task, "key": key, "error": error, **times})
    found = client.look(match, before, limit)
    return answer({"items": [job_document(job, caller.keys) for job in found.jobs], "next": found.before})


@routes.get("/jobs/{job_id}", needs(Role.VIEWER), gives=JobDocument, problems=(429,))
async def get_job(
    request: Request,
    caller: Asking,
    job_id: UUID,
    wait: Annotated[
        float, Query(ge=0, le=_LONGEST_WAIT, description="Seconds to wait for its end before it is shown as it is.")
    ] = 0,
) -> Response:
    """Show a job, at once or when it has finished."""
    job = await asyncio.to_thread(_seen, caller, job_id)
    if wait and not job.state.final:
        job = await _finished(request.app.state, caller, job, wait)
    return answer(await asyncio.to_thread(_whole, caller, job) if job.plan else job_document(job, caller.keys))


async def _finished(state: State, caller: Caller, job: Job, patience: float) -> Job:
    """Return *job* when it has finished, or *patience* has, to whoever is still let in then."""
    with state.followers.joined(caller.actor):
        job = await state.watch.final(caller.app.client, job, patience)
    await state.gate.check_still(caller)
    return job


@routes.post("/jobs/{job_id}/cancel", needs(Role.SUBMITTER, records="job.cancel"), gives=StateDocument)
def cancel_job(caller: Asking, job_id: UUID, why: ReasonRequest | None = None) -> Response:
    """Cancel a job: at once when it waits, by asking its worker when it runs."""
    job, reason = _recorded(caller, job_id, why)
    return _state(job, job.cancel(reason))


@routes.post("/jobs/{job_id}/pause", needs(Role.SUBMITTER, records="job.pause"), gives=StateDocument)
def pause_job(caller: Asking, job_id: UUID, why: ReasonRequest | None = None) -> Response:
    """Hold a job until it is resumed: at once when it waits, by asking its worker when it runs."""
    job, reason = _recorded(caller, job_id, why)
    return _state(job, job.pause(reason, by=caller.actor))


@routes.post("/jobs/{job_id}/resume", needs(Role.SUBMITTER, records="job.resume"), gives=StateDocument)
def resume_job(caller: Asking, job_id: UUID) -> Response:
    """Let a paused job go on at its due time."""
    job, _ = _recorded(caller, job_id, None)
    return _state(job, job.resume())


@routes.post("/jobs/{job_id}/replay", needs(Role.SUBMITTER, records="job.replay"), gives=StateDocument, problems=(409,))
def replay_job(caller: Asking, job_id: UUID, why: ReasonRequest | None = None) -> Response:
    """Run a job again that failed, expired or was cancelled."""
    job, reason = _recorded(caller, job_id, why)
    return _state(job, job.replay(reason))


@routes.post("/jobs/{job_id}/signal", needs(Role.SUBMITTER, records="job.signal"), status=204, problems=(409,))
def signal_job(caller: Asking, job_id: UUID, signal: SignalRequest) -> Response:
    """Send a job a signal, which it takes now or when it comes to that."""
    job = caller.app.job(job_id)
    caller.record(job_id, name=signal.name)
    job.signal(signal.name, signal.value)
    return Response(status_code=204)


def _prepared(caller: Caller, wanted: JobRequest) -> NewJob:
    """Return the job that *wanted* asks for, checked."""
    said = wanted.model_fields_set
    wishes: dict[str, Any] = {
        name: value
        for name in said
        if name not in _ABOUT_THE_CALL and ((value := getattr(wanted, name)) is not None or name in _NULL_SAYS_SO)
    }
    if "after" in wishes:
        wishes["after"] = _parents(caller, wishes["after"])
    if "notify" in wishes:
        wishes["notify"] = channels(wishes["notify"])
    given: Wishes = wishes  # type: ignore[assignment]
    return caller.app.prepare(wanted.task, wanted.args, wanted.kwargs, **given)


def _prepared_at(number: int, caller: Caller, wanted: JobRequest) -> NewJob:
    """Do the same for one of many, and say which if it is wrong."""
    try:
        return _prepared(caller, wanted)
    except MainspringError as error:
        error.args = (f"jobs.{number}: {error}",)
        raise


def _parents(caller: Caller, after: list[UUID | ParentRequest]) -> list[Parent]:
    """Return the jobs that another is to come after; those of other teams are not there."""
    parents = [Parent(one) if isinstance(one, UUID) else Parent(one.job, one.if_failed) for one in after]
    known = caller.app.client.find({parent.job for parent in parents})
    for parent in parents:
        if parent.job not in known:
            raise JobNotFound(parent.job)
    return parents


def _recorded(caller: Caller, job_id: UUID, why: ReasonRequest | None) -> tuple[JobHandle[Any], str | None]:
    """Return the job, which must be the team's, having it on record what is asked of it, and why."""
    job, reason = caller.app.job(job_id), None if why is None else why.reason
    caller.record(job_id, reason=reason)
    return job, reason


def _seen(caller: Caller, job_id: UUID) -> Job:
    return caller.app.client.get(job_id)


def _whole(caller: Caller, job: Job) -> dict[str, object]:
    """Return the document of a workflow, whose result is put together from those of its jobs."""
    return {**job_document(job, caller.keys), "result": result_of(caller.app.job(job.id))}


def _state(job: JobHandle[Any], state: JobState) -> Response:
    return answer({"id": job.id, "state": state})
