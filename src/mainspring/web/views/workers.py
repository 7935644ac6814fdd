"""Workers: who works, and at what."""

from __future__ import annotations

from uuid import UUID

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.model.job import Job, JobState
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit

pages = Pages()

_MOST_RUNNING = 500
"""How many running jobs are looked at, the newest, to say what workers are at."""


@pages.get("/workers", needs(Role.VIEWER))
def list_workers(visit: Visit) -> Response:
    """Show the workers, which work for all teams, each with what it runs for this one."""
    return visit.show(
        "workers.html",
        workers=visit.app.workers(),
        running=_running(visit),
        of_fleet=visit.app.client.of_fleet,
    )


def _running(visit: Visit) -> dict[UUID, list[Job]]:
    """Return what each session runs now, as far as it is the team's."""
    found: dict[UUID, list[Job]] = {}
    for job in visit.app.jobs(state=JobState.RUNNING, limit=_MOST_RUNNING):
        if job.snapshot.session is not None:
            found.setdefault(job.snapshot.session, []).append(job.snapshot)
    return found
