"""The overview: what runs, what waits, what failed, and who is there to do it."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.model.alert import AlertState
from mainspring.model.history import SCALES
from mainspring.model.job import JobState
from mainspring.model.token import Role
from mainspring.store.protocol import JobFilter
from mainspring.web.charts import draw, marks
from mainspring.web.pages import Pages, Visit
from mainspring.web.views.schedules import next_ticks

pages = Pages()

_FEW = 8
_MOST_DEAD = 100_000


@pages.get("/", needs(Role.VIEWER))
def overview(visit: Visit) -> Response:
    app, over = visit.app, visit.asked("over") or "1h"
    return visit.show(
        "overview.html",
        queues=app.queues.list(quick=True),
        over=over,
        scales=list(SCALES),
        charts=draw(app.history(over)),
        marks=marks(over),
        workers=app.workers(),
        of_fleet=app.client.of_fleet,
        failed=app.client.look(JobFilter(state=JobState.FAILED), None, _FEW),
        running=[job.snapshot for job in app.jobs(state=JobState.RUNNING, limit=_FEW)],
        coming=next_ticks(app.schedules.coming(_FEW)),
        dead=app.dead.look(_MOST_DEAD),
        firing=[alert for alert in visit.caller.reach.alerts.list() if alert.state is AlertState.FIRING],
    )
