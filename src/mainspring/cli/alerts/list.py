"""`mainspring alerts list`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.app import DEFAULT_URL
from mainspring.cli.alerts.look import state_of, told_alert
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldAlert, as_document
from mainspring.model.alert import AlertState


def list_alerts(team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List all alerts, those that fire first, each with what the last look has found."""
    with app_at(url, team=team) as app:
        told = [told_alert(one) for one in app.alerts.list()]
    found = sorted(told, key=lambda one: one.state is not AlertState.FIRING)
    if as_json:
        say_json({"alerts": [as_document(one) for one in found]})
    elif found:
        _show(found, SystemClock().now())
    else:
        say(f"No alerts in {without_passwords(url)}. Add one with `mainspring alerts add ID dead`.")


def _show(alerts: Sequence[ToldAlert], now: datetime) -> None:
    table = listing()
    table.add_column("Alert", overflow="fold")
    table.add_column("State", no_wrap=True)
    table.add_column("Found", overflow="fold")
    for one in alerts:
        table.add_row(cell(one.id), state_of(one, now), cell(one.message or ""))
    show(table)
