"""Workers: who works."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import Workers
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.workers import worker_document
from mainspring.model.token import Role

routes = Routes("workers")


@routes.get("/workers", needs(Role.VIEWER), gives=Workers)
def list_workers(caller: Asking) -> Response:
    """List the workers, which work for all teams, and whether each is alive."""
    items = [worker_document(session) for session in caller.app.workers()]
    return answer({"items": items, "of_fleet": caller.app.of_fleet()})
