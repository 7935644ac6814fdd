"""Alerts: what people want to be told of, by rules that nodes look at in turn."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from starlette.responses import Response

from mainspring.api.callers import Asking, Caller
from mainspring.api.channels import channels
from mainspring.api.documents import Document, Duration, Notify, Request
from mainspring.api.pages import NameInPath
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer, nothing
from mainspring.api.rules import RuleRequest, rule
from mainspring.documents.alerts import alert_document
from mainspring.errors import AlertNotFound
from mainspring.model.alert import EVERY, Alert, AlertState, described
from mainspring.model.team import local_name
from mainspring.model.token import Role

routes = Routes("alerts")


class AlertRequest(Request):
    """An alert to define, or to define anew."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "rule": {"kind": "depth", "queue": "mail", "above": 10_000},
                    "hold": "5m",
                    "notify": [{"kind": "email", "to": "ops@example.org"}],
                },
                {"rule": {"kind": "missed_schedules"}, "every": "1m"},
            ]
        }
    )

    rule: RuleRequest
    every: Annotated[Duration | None, Field(description="How often to look: 30 s, unless told.")] = None
    hold: Annotated[Duration | None, Field(description="For how long the rule must hold before anybody is told.")] = (
        None
    )
    notify: Notify | None = None


class AlertRuleDocument(Document):
    """What an alert looks at, with its thresholds; lengths of time are as they are set, such as `1h30m`."""

    kind: str
    text: str


class AlertDocument(Document):
    """An alert, and what the last look has found."""

    id: str
    team: str | None = Field(description="Whose jobs it looks at; null for everybody's.")
    state: AlertState
    since: datetime
    rule: AlertRuleDocument
    every: str
    hold: str
    channels: int = Field(description="How many are told. Who they are is not shown.")
    value: float | None
    message: str | None
    evaluated_at: datetime | None
    evaluated_by: str | None
    created_at: datetime
    changed_at: datetime


class Alerts(Document):
    """Alerts, by id."""

    items: list[AlertDocument]


@routes.get("/alerts", needs(Role.VIEWER), gives=Alerts)
def list_alerts(caller: Asking) -> Response:
    """List the alerts of the team; all, for who has the role everywhere and names no team."""
    return answer({"items": [_document(one) for one in caller.reach.alerts.list()]})


@routes.get("/alerts/{alert_id:path}", needs(Role.VIEWER), gives=AlertDocument)
def get_alert(caller: Asking, alert_id: NameInPath) -> Response:
    """Show an alert, and what the last look has found."""
    return answer(_document(caller.reach.alerts.get(alert_id)))


@routes.put(
    "/alerts/{alert_id:path}",
    needs(Role.OPERATOR, records="alert.put"),
    gives=AlertDocument,
    also={201: AlertDocument},
    problems=(429,),
)
def put_alert(caller: Asking, alert_id: NameInPath, wanted: AlertRequest) -> Response:
    """Define an alert, or define it anew. 201 says that it is new.

    It looks at the jobs of the team; that of an operator everywhere who names no team, at everybody's. One that is
    known goes on as it stands, and tells whom it told unless `notify` is said, which is never shown.
    """
    known = _known(caller, alert_id)
    kept = () if known is None else known.definition.notify
    looks_at, told = rule(wanted.rule), kept if wanted.notify is None else channels(wanted.notify)
    caller.record(alert_id, rule=described(looks_at), channels=len(told))
    every, hold = EVERY if wanted.every is None else wanted.every, wanted.hold or 0
    stored = caller.reach.alerts.add(alert_id, looks_at, every=every, hold=hold, notify=told)
    return answer(_document(stored), 200 if known else 201)


@routes.delete("/alerts/{alert_id:path}", needs(Role.OPERATOR, records="alert.remove"), status=204)
def remove_alert(caller: Asking, alert_id: NameInPath) -> Response:
    """Remove an alert. Nobody is told of it any more, not even that it has resolved."""
    caller.reach.alerts.get(alert_id)
    caller.record(alert_id)
    caller.reach.alerts.remove(alert_id)
    return nothing()


def _known(caller: Caller, alert_id: str) -> Alert | None:
    try:
        return caller.reach.alerts.get(alert_id)
    except AlertNotFound:
        return None


def _document(alert: Alert) -> dict[str, Any]:
    """Return *alert* by the name that its team has for it: whose it is stands beside that."""
    return {**alert_document(alert), "id": local_name(alert.id)}
