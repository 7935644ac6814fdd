"""`mainspring notifications list`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.documents.notifications import rule_document
from mainspring.model.channel import Webhook


def list_notifications(team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List whom teams want to be told of what becomes of their jobs. Secrets are not shown."""
    with app_at(url, team=team) as app:
        found = app.notifications.list(team=team)
    if as_json:
        say_json({"notifications": [rule_document(one) for one in found]})
        return
    if not found:
        add = "`mainspring notifications add ID --email ADDRESS`"
        say(f"No team in {without_passwords(url)} wants to be told of its jobs. Add a notification with {add}.")
        return
    table = listing("Team", "Id", "Tells", "On", "Signed")
    for one in found:
        signed = "yes" if isinstance(one.channel, Webhook) and one.channel.secrets else ""
        table.add_row(
            cell(one.team), cell(one.id), cell(one.channel.place), cell(", ".join(one.channel.on)), cell(signed)
        )
    show(table)
