"""Notifications of a team: whom to tell of what becomes of all its jobs and schedules.

Where exactly a webhook leads is shown to nobody, not even to whoever has set it: where a chat gives out addresses, the
path is the secret.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from anyio import to_thread
from fastapi import Request
from pydantic import ConfigDict, Field, RootModel
from starlette.responses import Response

from mainspring.api.callers import Asking, Caller
from mainspring.api.channels import channel
from mainspring.api.documents import ChannelRequest, Document
from mainspring.api.pages import NameInPath
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer, nothing
from mainspring.documents.notifications import rule_document
from mainspring.errors import NotificationNotFound, Undelivered
from mainspring.model.token import Role

routes = Routes("notifications")


class NotificationRequest(RootModel[ChannelRequest]):
    """Whom to tell, and of what."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "webhook",
                    "url": "https://example.org/hooks/jobs",
                    "on": ["failure"],
                    "secret": "secret://hook",
                },
                {"kind": "email", "to": ["ops@example.org"], "on": ["failure", "missed", "recovered"]},
            ]
        }
    )


class NotificationDocument(Document):
    """Whom a team wants to be told, and of what."""

    team: str
    id: str
    kind: str
    to: list[str] | None = Field(None, description="Of an e-mail: its recipients.")
    place: str | None = Field(None, description="Of a webhook: scheme and host, but not where it leads there.")
    secrets: int | None = Field(None, description="Of a webhook: how many secrets it signs with.")
    on: list[str]
    created_at: datetime
    changed_at: datetime


class Notifications(Document):
    """The notifications of a team, by id."""

    items: list[NotificationDocument]


class TrialDocument(Document):
    """What came of a word that was sent to try a channel."""

    delivered: bool
    error: str | None
    details: dict[str, Any] = Field(description="What is kept of the answer.")


@routes.get("/notifications", needs(Role.ADMIN), gives=Notifications)
def list_notifications(caller: Asking) -> Response:
    """List whom the team wants to be told of all its jobs and schedules, by id."""
    return answer({"items": [rule_document(one) for one in caller.app.notifications.list()]})


@routes.get("/notifications/{rule_id:path}", needs(Role.ADMIN), gives=NotificationDocument)
def get_notification(caller: Asking, rule_id: NameInPath) -> Response:
    """Show a notification."""
    return answer(rule_document(caller.app.notifications.get(rule_id)))


@routes.put(
    "/notifications/{rule_id:path}",
    needs(Role.ADMIN, records="notification.put"),
    gives=NotificationDocument,
    also={201: NotificationDocument},
    problems=(429,),
    veiled=True,
)
def put_notification(caller: Asking, rule_id: NameInPath, wanted: NotificationRequest) -> Response:
    """Have somebody told of all jobs and schedules of the team, or change that. 201 says that it is new.

    A webhook that names no secret keeps the one that it had, as long as it leads to the same host.
    """
    told = channel(wanted.root)
    caller.record(rule_id, kind=wanted.root.kind, to=told.place, on=list(told.on))
    known = _is_known(caller, rule_id)
    return answer(rule_document(caller.app.notifications.add(rule_id, told)), 200 if known else 201)


@routes.delete("/notifications/{rule_id:path}", needs(Role.ADMIN, records="notification.remove"), status=204)
def remove_notification(caller: Asking, rule_id: NameInPath) -> Response:
    """Remove a notification. What is under way goes out."""
    caller.app.notifications.get(rule_id)
    caller.record(rule_id)
    caller.app.notifications.remove(rule_id)
    return nothing()


@routes.post(
    "/notifications/{rule_id:path}/test",
    needs(Role.ADMIN, records="notification.test"),
    gives=TrialDocument,
    problems=(429,),
)
async def test_notification(request: Request, caller: Asking, rule_id: NameInPath) -> Response:
    """Send a word to try a channel, from the server and at once, and say what came of it. One at a time for a team."""
    with request.app.state.trials.joined(caller.team):
        # Not on the threads of all requests: whoever has it sent to where nobody answers would hold them up.
        return answer(await to_thread.run_sync(_trial, caller, rule_id, limiter=request.app.state.trial_threads))


def _trial(caller: Caller, rule_id: str) -> dict[str, object]:
    caller.app.notifications.get(rule_id)
    caller.record(rule_id)
    try:
        return {"delivered": True, "error": None, "details": caller.app.notifications.test(rule_id)}
    except Undelivered as error:
        return {"delivered": False, "error": str(error), "details": {}}


def _is_known(caller: Caller, rule_id: str) -> bool:
    try:
        caller.app.notifications.get(rule_id)
    except NotificationNotFound:
        return False
    return True
