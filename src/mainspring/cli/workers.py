"""`mainspring workers`: who works."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import short
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.times import ago, span
from mainspring.clock import SystemClock
from mainspring.documents.workers import worker_document
from mainspring.model.session import Session


def workers(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the workers, and whether each is alive."""
    with app_at(url) as app:
        sessions, of_fleet = app.workers(), app.of_fleet()
    if as_json:
        say_json({"workers": [worker_document(session) for session in sessions], "of_fleet": of_fleet})
    elif sessions:
        _show(sessions, SystemClock().now())
    elif not of_fleet:
        say("Workers are not shown here: they work for all teams, and are shown to team default.")
    else:
        say("No worker is there. Start one with `mainspring worker --app module:name`.")


def _show(sessions: list[Session], now: datetime) -> None:
    table = listing("Worker", "State", "Queues", "Started", "Last beat", "Lease", "Session")
    table.columns[0].overflow = "fold"
    for column in table.columns[1:2] + table.columns[3:]:
        column.no_wrap = True
    for session in sessions:
        table.add_row(
            cell(session.name),
            Text("alive", "green") if session.alive else Text("lost", "bold red"),
            cell(", ".join(session.queues)),
            cell(ago(session.started_at, now)),
            cell(ago(session.beat_at, now)),
            cell(span(session.lease)),
            cell(short(session.id), "dim"),
        )
    show(table)
