"""To read changes nothing: whatever is asked for by GET, the database is as it was."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Context, Email, Mainspring, every
from mainspring.alerts import dead
from mainspring.api.app import make_api
from mainspring.api.routing import Guarded
from mainspring.server import Server
from mainspring.testing import drain
from tests.support.databases import dump

ENDLESS = "/events"
READ = sorted(
    route.path
    for route in make_api(Mainspring("sqlite:///nowhere.db")).routes
    if isinstance(route, Guarded) and "GET" in (route.methods or ()) and not route.path.endswith(ENDLESS)
)


@pytest.fixture
def furnished(app: Mainspring) -> dict[str, str]:
    """One of everything; returned is what paths call it."""

    @app.task
    def order(ctx: Context) -> int:
        ctx.log.info("charged")
        return ctx.step("charge", abs, -1)  # type: ignore[no-any-return]

    job = order.enqueue()
    app.enqueue("fail")
    with app.workflow("w") as workflow:
        workflow.add("greet", "Ada")
    flow = workflow.enqueue()
    drain(app)
    app.schedules.add("known", "fail", every("1h"))
    app.notifications.add("known", Email("ops@example.org"))
    app.alerts.add("known", dead())
    app.secrets.set("known", "hunter2 hunter2")
    app.teams.set("known", max_pending=10)
    app.queues.pause("known")
    return {"/jobs/{job_id}": f"/jobs/{job.id}", "/workflows/{job_id}": f"/workflows/{flow.id}"}


@pytest.mark.parametrize("path", READ)
def test_to_read_changes_nothing(app: Mainspring, furnished: dict[str, str], path: str) -> None:
    for name, found in furnished.items():
        path = path.replace(name, found)
    for name in ("schedule_id:path", "rule_id:path", "alert_id:path", "alert_id", "name"):
        path = path.replace(f"{{{name}}}", "known")
    path = path.replace("{token_id}", "a" * 12)
    server = Server(app, "127.0.0.1", 0)
    server.start()
    try:
        before = dump(app.client.url)
        answer = httpx.get(f"{server.url}{path}", trust_env=False)
        after = dump(app.client.url)
    finally:
        server.stop()

    assert answer.status_code in (200, 404)
    assert after == before
