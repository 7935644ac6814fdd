"""What became of a job: its attempts, its steps, and why it does not run."""

from __future__ import annotations

from uuid import UUID

from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import Attempts, Reasons, Steps
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.jobs import attempt_document, opened_step, reason_document, step_document
from mainspring.model.token import Role

routes = Routes("jobs")


@routes.get("/jobs/{job_id}/attempts", needs(Role.VIEWER), gives=Attempts)
def list_attempts(caller: Asking, job_id: UUID) -> Response:
    """List the attempts of a job, oldest first."""
    return answer({"items": [attempt_document(one) for one in caller.app.job(job_id).attempts()]})


@routes.get("/jobs/{job_id}/explain", needs(Role.VIEWER), gives=Reasons)
def explain_job(caller: Asking, job_id: UUID) -> Response:
    """Say why a job does not run, the first reason to lift first."""
    return answer({"items": [reason_document(one) for one in caller.app.job(job_id).explain()]})


@routes.get("/jobs/{job_id}/steps", needs(Role.VIEWER), gives=Steps)
def list_steps(caller: Asking, job_id: UUID) -> Response:
    """List the steps that a job has done, and the sleep or signal that it waits for."""
    job = caller.app.job(job_id)
    return answer({"items": [step_document(opened_step(job.snapshot, one, caller.keys)) for one in job.stored_steps()]})
