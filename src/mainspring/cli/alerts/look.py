"""How alerts look."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from mainspring.cli.times import since
from mainspring.documents.alerts import alert_document
from mainspring.documents.told import ToldAlert, as_told
from mainspring.model.alert import Alert, AlertState

_STYLES = {AlertState.OK: "green", AlertState.PENDING: "yellow", AlertState.FIRING: "bold red"}


def told_alert(alert: Alert | ToldAlert) -> ToldAlert:
    """Return *alert* as programs are told of it, without those that it tells."""
    return as_told(alert_document(alert), ToldAlert) if isinstance(alert, Alert) else alert


def state_of(alert: ToldAlert, now: datetime) -> Text:
    """Return how *alert* stands, and for how long."""
    if alert.evaluated_at is None:
        return Text("not looked at yet", "dim")
    return Text(f"{alert.state} {since(alert.since, now)}", _STYLES[alert.state])
