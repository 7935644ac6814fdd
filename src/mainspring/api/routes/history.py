"""What became of jobs and what waited, over time."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import HistoryDocument
from mainspring.api.pages import QueueName
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.history import history_document
from mainspring.model.token import Role

routes = Routes("history")


@routes.get("/history", needs(Role.VIEWER), gives=HistoryDocument)
def show_history(
    caller: Asking,
    over: Annotated[Literal["1h", "24h", "7d"], Query(description="How far to look back.")] = "1h",
    queue: QueueName = None,
) -> Response:
    """Tell how many jobs succeeded, failed and waited, and for how long, in equal spans of time until now."""
    return answer(history_document(caller.app.history(over, queue=queue)))
