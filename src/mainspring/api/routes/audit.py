"""The audit log, as it is read."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import Records
from mainspring.api.pages import Limit, page
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.audit import record_document
from mainspring.model.token import Role

routes = Routes("audit")


@routes.get("/audit", needs(Role.ADMIN), gives=Records)
def list_records(
    caller: Asking,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only those before this one.")] = None,
    limit: Limit = 50,
) -> Response:
    """List what was asked for and by whom, the last first: for the team, or for all by an admin everywhere."""
    found = caller.reach.audit.list(before=before, limit=limit)
    return answer(page(found, limit, record_document, lambda record: record.seq))
