"""Workflows: created from a graph in JSON, looked at, and ruled as a whole."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from mainspring.api.callers import Asking, Caller
from mainspring.api.documents import (
    JobPage,
    PictureDocument,
    ReasonRequest,
    StateDocument,
    WorkflowDocument,
    WorkflowPage,
    WorkflowRequest,
)
from mainspring.api.graphs import built
from mainspring.api.pages import Limit, page
from mainspring.api.policy import needs
from mainspring.api.problems import Problem
from mainspring.api.routing import Routes, answer
from mainspring.documents.jobs import job_document
from mainspring.documents.results import result_of
from mainspring.documents.workflows import picture_document, workflow_document
from mainspring.model.job import JobState
from mainspring.model.token import Role
from mainspring.workflow_handle import WorkflowHandle

routes = Routes("workflows")


@routes.post(
    "/workflows",
    needs(Role.SUBMITTER, records="workflow.enqueue"),
    gives=WorkflowDocument,
    status=201,
    also={200: WorkflowDocument},
    problems=(409, 429),
)
def create_workflow(caller: Asking, wanted: WorkflowRequest) -> Response:
    """Create a workflow with all its jobs, all or none.

    An argument `{"$result": "node"}` is the result of another node, after which the job comes; `map` makes one job for
    each item of a list, or of such a result. 200 says that an unfinished one with its key stands for it.
    """
    workflow = built(caller.app, wanted)
    caller.record(workflow.id, name=wanted.name, jobs=len(wanted.nodes), key=wanted.key)
    items = [len(node.map) if isinstance(node.map, list) else 0 for node in wanted.nodes]
    caller.app.admit_prepared([workflow.request], 1 + len(wanted.nodes) + sum(items))
    stored = caller.app.job(workflow.enqueue().id)
    if not isinstance(stored, WorkflowHandle):
        raise Problem(
            409,
            "key-taken",
            f"expected a key that no unfinished job has, got {wanted.key!r}, which job {stored.id} has; let that end "
            "first, or give the workflow another key",
        )
    return answer(_whole(caller, stored), 201 if stored.id == workflow.id else 200)


@routes.get("/workflows", needs(Role.VIEWER), gives=WorkflowPage)
def list_workflows(
    caller: Asking,
    before: Annotated[UUID | None, Query(description="Only those older than this one, for the next page.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many to list.")] = 20,
) -> Response:
    """List workflows that are part of none, newest first."""
    found = caller.app.workflows(before, limit)
    return answer(page(found, limit, lambda one: _document(caller, one), lambda one: one.id))


@routes.get("/workflows/{job_id}", needs(Role.VIEWER), gives=WorkflowDocument)
def get_workflow(caller: Asking, job_id: UUID) -> Response:
    """Show a workflow: how far it is, and its result when it has one."""
    return answer(_whole(caller, _found(caller, job_id)))


@routes.get("/workflows/{job_id}/jobs", needs(Role.VIEWER), gives=JobPage)
def list_members(
    caller: Asking,
    job_id: UUID,
    after: Annotated[UUID | None, Query(description="Only those younger than this one, for the next page.")] = None,
    limit: Limit = 50,
) -> Response:
    """List the jobs of a workflow, oldest first."""
    found = _found(caller, job_id).page(after, limit)
    return answer(page(found, limit, lambda job: job_document(job, caller.keys), lambda job: job.id))


@routes.get("/workflows/{job_id}/picture", needs(Role.VIEWER), gives=PictureDocument)
def draw_workflow(caller: Asking, job_id: UUID) -> Response:
    """Show how the jobs of a workflow stand, and which come after which: up to 10,000 of them."""
    return answer(picture_document(_found(caller, job_id).picture()))


@routes.post("/workflows/{job_id}/cancel", needs(Role.SUBMITTER, records="workflow.cancel"), gives=StateDocument)
def cancel_workflow(caller: Asking, job_id: UUID, why: ReasonRequest | None = None) -> Response:
    """Cancel a workflow with all its jobs: waiting ones at once, running ones by asking their worker."""
    workflow, reason = _recorded(caller, job_id, why)
    return _state(workflow, workflow.cancel(reason))


@routes.post("/workflows/{job_id}/pause", needs(Role.SUBMITTER, records="workflow.pause"), gives=StateDocument)
def pause_workflow(caller: Asking, job_id: UUID, why: ReasonRequest | None = None) -> Response:
    """Hold a workflow with all its jobs until it is resumed."""
    workflow, reason = _recorded(caller, job_id, why)
    return _state(workflow, workflow.pause(reason, by=caller.actor))


@routes.post("/workflows/{job_id}/resume", needs(Role.SUBMITTER, records="workflow.resume"), gives=StateDocument)
def resume_workflow(caller: Asking, job_id: UUID) -> Response:
    """Let a paused workflow go on, with all its jobs that are paused."""
    workflow, _ = _recorded(caller, job_id, None)
    return _state(workflow, workflow.resume())


@routes.post(
    "/workflows/{job_id}/replay", needs(Role.SUBMITTER, records="workflow.replay"), gives=StateDocument, problems=(409,)
)
def replay_workflow(caller: Asking, job_id: UUID, why: ReasonRequest | None = None) -> Response:
    """Run again what did not succeed of a workflow that has ended; what has succeeded is kept."""
    workflow, reason = _recorded(caller, job_id, why)
    return _state(workflow, workflow.replay(reason))


def _found(caller: Caller, job_id: UUID) -> WorkflowHandle[Any]:
    """Return the workflow with this id; a job that is none is not there, but to be found among the jobs."""
    found = caller.app.job(job_id)
    if not isinstance(found, WorkflowHandle):
        raise Problem(404, "workflow-not-found", f"job {job_id} is no workflow; look for it under /api/v1/jobs")
    return found


def _recorded(caller: Caller, job_id: UUID, why: ReasonRequest | None) -> tuple[WorkflowHandle[Any], str | None]:
    workflow, reason = _found(caller, job_id), None if why is None else why.reason
    caller.record(job_id, reason=reason)
    return workflow, reason


def _document(caller: Caller, workflow: WorkflowHandle[Any]) -> dict[str, object]:
    """Return the document of a workflow, without a result: that is put together, and may be large."""
    return workflow_document(workflow.snapshot, caller.keys, workflow.progress())


def _whole(caller: Caller, workflow: WorkflowHandle[Any]) -> dict[str, object]:
    return {**_document(caller, workflow), "result": result_of(workflow)}


def _state(workflow: WorkflowHandle[Any], state: JobState) -> Response:
    return answer({"id": workflow.id, "state": state})
