"""A workflow as its caller sees it: a job that is made of others."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from mainspring.client import Client, check_limit
from mainspring.job_handle import JobHandle
from mainspring.model.job import Job, JobState
from mainspring.model.picture import Picture
from mainspring.model.task import Registry
from mainspring.store.workflows import DRAWN, draw
from mainspring.twin import twin

R_co = TypeVar("R_co", covariant=True)

_PAGE = 1_000


class WorkflowHandle(JobHandle[R_co]):
    """A workflow, seen from outside. What is done to it is done to its jobs: cancel, pause, resume.

    `replay` lets those live again that did not succeed; what has succeeded is kept.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<workflow {self.id}>"

    def jobs(self) -> list[JobHandle[Any]]:
        """Return its jobs, oldest first; of a workflow within it, that one only."""
        return [_made(self._client, job, Any) for job in self.members()]

    def members(self) -> list[Job]:
        """Return its jobs as they are now, oldest first, with all their fields."""
        store, found = self._store, list[Job]()
        while page := store.members(self.id, found[-1].id if found else None, _PAGE):
            found += map(self._client.shown, page)
        return found

    def page(self, after: UUID | None = None, limit: int = 50) -> list[Job]:
        """Return up to *limit* of its jobs, oldest first; pass the last one's id as *after* for more."""
        check_limit(limit)
        return [self._client.shown(job) for job in self._store.members(self.id, after, limit)]

    def progress(self) -> dict[JobState, int]:
        """Return how many of its jobs are in which state."""
        return self._store.member_counts([self.id])[self.id]

    def picture(self, most: int = DRAWN) -> Picture:
        """Return a picture of its jobs as they are now: print it, or have it as a flowchart by its `mermaid`.

        Of very many jobs it has those that were made first, up to *most*.
        """
        check_limit(most)
        return draw(self._client.store, self.refresh(), self._client.clock.now(), most)

    ajobs = twin(jobs)
    amembers = twin(members)
    aprogress = twin(progress)
    apicture = twin(picture)


def handle(client: Client, job_id: UUID, *, workflow: bool, result_type: Any = Any) -> JobHandle[Any]:
    """Return a handle of the job with this id."""
    return (WorkflowHandle if workflow else JobHandle)(client, job_id, result_type)


def handle_of(client: Client, tasks: Registry, job: Job) -> JobHandle[Any]:
    """Return a handle of *job*, which converts its result as its task says, if that is known."""
    known = tasks.get(job.task) if job.task in tasks else None
    if job.plan is None and (known is None or not known.makes_workflow):
        return JobHandle(client, job.id, Any if known is None else known.result_type, job)
    return _made(client, job, Any)


def _made(client: Client, job: Job, result_type: Any) -> JobHandle[Any]:
    kind = JobHandle if job.plan is None else WorkflowHandle
    return kind(client, job.id, result_type, job)
