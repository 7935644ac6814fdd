"""Jobs as programs are told of them: by a server, or by ourselves where the database is at hand."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from uuid import UUID

from mainspring.app import Mainspring
from mainspring.cli.apps import App
from mainspring.cli.ids import Handle
from mainspring.documents.jobs import job_document, opened_step
from mainspring.documents.results import result_of
from mainspring.documents.told import ToldJob, as_told
from mainspring.errors import JobNotFound
from mainspring.job_handle import JobHandle
from mainspring.model.step import Step


def told(job: Handle) -> ToldJob:
    """Return *job* as it was when it was last looked at."""
    if isinstance(job, JobHandle):
        return as_told(job_document(job.snapshot, job.keys), ToldJob)
    return job.snapshot


def told_whole(job: Handle) -> ToldJob:
    """Return the same; of a workflow also the result, which is put together."""
    if isinstance(job, JobHandle) and job.snapshot.plan is not None:
        return as_told({**job_document(job.snapshot, job.keys), "result": result_of(job)}, ToldJob)
    return told(job)


def told_again(job: Handle) -> ToldJob:
    """Return *job* as it is now."""
    job.refresh()
    return told(job)


def steps_of(job: Handle) -> list[Step]:
    """Return the steps of *job*; what can't be opened of an encrypted one has no result."""
    if isinstance(job, JobHandle):
        return [opened_step(job.snapshot, step, job.keys) for step in job.stored_steps()]
    return job.steps()


def told_of(app: App, ids: Collection[UUID]) -> dict[UUID, ToldJob]:
    """Return those of the jobs with these *ids* that are there, as they are now: in one look, or one by one afar."""
    if isinstance(app, Mainspring):
        keys = app.client.keys
        return {job.id: as_told(job_document(job, keys), ToldJob) for job in app.client.find(ids).values()}
    found: dict[UUID, ToldJob] = {}
    for job_id in ids:
        with suppress(JobNotFound):
            found[job_id] = app.job(job_id).snapshot
    return found
