"""Alerts: what people want to be told of, and how each stands."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.errors import InvalidValue
from mainspring.model.alert import EVERY, Alert, AlertState, described
from mainspring.model.channel import Channel
from mainspring.model.duration import spelled
from mainspring.model.job import check_name
from mainspring.model.team import local_name
from mainspring.model.token import Role
from mainspring.web.channels import email, webhook
from mainspring.web.pages import Pages, Visit, is_there
from mainspring.web.rules import KINDS, fields_of, in_words, rule_of, value_of

pages = Pages()

_CHANGE = needs(Role.OPERATOR)
_ORDER = [AlertState.FIRING, AlertState.PENDING, AlertState.OK]


@pages.get("/alerts", needs(Role.VIEWER))
def list_alerts(visit: Visit) -> Response:
    """Show the alerts, those that fire first, and to who may see them the notifications of the team."""
    found = sorted(visit.caller.reach.alerts.list(), key=lambda one: _ORDER.index(one.state))
    ruled = _ruled_scope(visit)
    return visit.show(
        "alerts.html",
        alerts=[{**_shown(one), "ruled": visit.may("operator") and one.scope == ruled} for one in found],
        rules=visit.may("operator"),
        notifications=visit.app.notifications.list() if visit.may("admin") else None,
    )


@pages.get("/alerts/add", _CHANGE)
def alert_form(visit: Visit) -> Response:
    """Show the form for an alert of the kind that is asked for."""
    kind = visit.asked("kind") or next(iter(KINDS))
    return visit.show(
        "alert_add.html",
        kind=kind,
        kinds=KINDS,
        fields=fields_of(kind),
        every=spelled(EVERY),
        scope=_ruled_scope(visit),
    )


@pages.post("/alerts/add", needs(Role.OPERATOR, records="alert.put"))
def add_alert(visit: Visit) -> Response:
    form, alerts = visit.form, visit.caller.reach.alerts
    alert_id, rule, told = form["alert"], rule_of(form["kind"], form), _channels(visit)
    check_name(alert_id, "the id of an alert")
    if form["anew"] != "yes" and is_there(alerts.get, alert_id):
        raise InvalidValue(f"an alert {alert_id!r} is there already; give another id, or say that it is defined anew")
    visit.caller.record(alert_id, rule=described(rule), channels=len(told))
    alerts.add(alert_id, rule, every=form["every"] or EVERY, hold=form["hold"] or 0, notify=told)
    return visit.go("/alerts", f"Alert {alert_id} is looked at every {form['every'] or spelled(EVERY)}.")


@pages.get("/alerts/remove", _CHANGE)
def ask_to_remove(visit: Visit) -> Response:
    alert_id = visit.asked("alert")
    check_name(alert_id, "the id of an alert")
    return visit.show("alert_remove.html", alert=_shown(visit.caller.reach.alerts.get(alert_id)))


@pages.post("/alerts/remove", needs(Role.OPERATOR, records="alert.remove"))
def remove_alert(visit: Visit) -> Response:
    alert_id = visit.form["alert"]
    check_name(alert_id, "the id of an alert")
    visit.caller.reach.alerts.get(alert_id)
    visit.caller.record(alert_id)
    visit.caller.reach.alerts.remove(alert_id)
    return visit.go("/alerts", f"Alert {alert_id} is removed.")


def _shown(alert: Alert) -> dict[str, Any]:
    """Return *alert* by the name that its team has for it."""
    return {
        "id": local_name(alert.id),
        "rule": in_words(alert.definition.rule),
        "value": value_of(alert),
        "is": alert,
        "every": spelled(alert.definition.every),
        "hold": spelled(alert.definition.hold) if alert.definition.hold else None,
    }


def _ruled_scope(visit: Visit) -> str | None:
    """Return whose alerts he rules by the forms of this page; None stands for those that look at everybody's jobs."""
    caller = visit.caller
    everywhere = caller.everywhere is not None and caller.everywhere.allows(Role.OPERATOR) and not caller.named
    return None if everywhere else caller.team


def _channels(visit: Visit) -> list[Channel]:
    """Return whom the form wants to be told: a webhook, people by mail, both, or nobody."""
    told: list[Channel] = []
    if visit.form["url"]:
        told.append(webhook(visit.form))
    if visit.form["to"]:
        told.append(email(visit.form))
    return told
