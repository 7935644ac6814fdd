"""The overview: what runs, what waits, what failed, and who is there to do it."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.model.alert import AlertState
from mainspring.model.job import JobState
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit
from mainspring.web.views.schedules import next_ticks

pages = Pages()

_FEW = 8


@pages.get("/", needs(Role.VIEWER))
def overview(visit: Visit) -> Response:
    app = visit.app
    queues = app.queues.list()
    return visit.show(
        "overview.html",
        queues=queues,
        totals={state: sum(queue.jobs.get(state, 0) for queue in queues) for state in JobState if not state.final},
        workers=app.workers(),
        failed=[job.snapshot for job in app.jobs(state=JobState.FAILED, limit=_FEW)],
        running=[job.snapshot for job in app.jobs(state=JobState.RUNNING, limit=_FEW)],
        coming=next_ticks(app.schedules.coming(_FEW)),
        dead=app.dead.count(),
        firing=[alert for alert in visit.caller.reach.alerts.list() if alert.state is AlertState.FIRING],
    )
