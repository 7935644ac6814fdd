"""`mainspring alerts show`: all that is known of one alert."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rich.table import Table
from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.alerts.look import state_of, told_alert
from mainspring.cli.alerts.options import AlertId
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, say_json, show
from mainspring.cli.times import ago, local
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldAlert, as_document
from mainspring.model.duration import duration
from mainspring.model.text import counted


def show_alert(alert_id: AlertId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one alert: what it looks for, how it stands, and what the last look has found."""
    with app_at(url, team=team) as app:
        alert = told_alert(app.alerts.get(alert_id))
    if as_json:
        say_json(as_document(alert))
        return
    now = SystemClock().now()
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(Text("Alert", "bold"), cell(alert.id))
    facts.add_row(Text("State", "bold"), state_of(alert, now))
    for name, value in _facts(alert, now):
        facts.add_row(Text(name, "bold"), cell(value))
    show(facts)


def _facts(alert: ToldAlert, now: datetime) -> Iterator[tuple[str, str]]:
    if alert.message is not None:
        yield "Found", alert.message
    yield "Rule", alert.rule["text"]
    yield "Looks at", "all jobs" if alert.team is None else f"jobs of team {alert.team}"
    yield "Every", alert.every
    if duration(alert.hold):
        yield "Fires", f"when it has held for {alert.hold}"
    told = counted(alert.channels, "channel") if alert.channels else "nobody; what it finds is logged"
    yield "Tells", told
    if alert.evaluated_at is not None:
        yield "Last look", f"{local(alert.evaluated_at)} ({ago(alert.evaluated_at, now)}) by {alert.evaluated_by}"
    yield "Created", f"{local(alert.created_at)} ({ago(alert.created_at, now)})"
    if alert.changed_at != alert.created_at:
        yield "Changed", f"{local(alert.changed_at)} ({ago(alert.changed_at, now)})"
