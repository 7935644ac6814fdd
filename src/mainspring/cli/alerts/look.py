"""How alerts look."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from mainspring.cli.times import since
from mainspring.model.alert import Alert, AlertState

_STYLES = {AlertState.OK: "green", AlertState.PENDING: "yellow", AlertState.FIRING: "bold red"}


def state_of(alert: Alert, now: datetime) -> Text:
    """Return how *alert* stands, and for how long."""
    if alert.evaluated_at is None:
        return Text("not looked at yet", "dim")
    return Text(f"{alert.state} {since(alert.since, now)}", _STYLES[alert.state])
