"""`mainspring alerts remove`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.alerts.options import AlertId
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import say, say_json


def remove(alert_id: AlertId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove an alert. Nobody is told of it any more, not even that it has resolved."""
    with app_at(url, team=team) as app:
        app.alerts.get(alert_id)  # which says so if there is no such alert
        note(app, "alert.remove", [alert_id])
        app.alerts.remove(alert_id)
    if as_json:
        say_json({"removed": alert_id})
    else:
        say(f"{alert_id} removed")
