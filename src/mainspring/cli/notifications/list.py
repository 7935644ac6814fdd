"""`mainspring notifications list`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.notifications.look import place, told_rule
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.documents.told import as_document


def list_notifications(team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List whom teams want to be told of what becomes of their jobs. Secrets are not shown."""
    with app_at(url, team=team) as app:
        found = [told_rule(one) for one in app.notifications.list()]
    if as_json:
        say_json({"notifications": [as_document(one) for one in found]})
        return
    if not found:
        add = "`mainspring notifications add ID --email ADDRESS`"
        say(f"No team in {without_passwords(url)} wants to be told of its jobs. Add a notification with {add}.")
        return
    table = listing("Team", "Id", "Tells", "On", "Signed")
    for one in found:
        signed = "yes" if one.secrets else ""
        table.add_row(cell(one.team), cell(one.id), cell(place(one)), cell(", ".join(one.on)), cell(signed))
    show(table)
