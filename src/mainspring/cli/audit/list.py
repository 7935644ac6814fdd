"""`mainspring audit list`: who asked for what, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.times import ago
from mainspring.clock import SystemClock
from mainspring.documents.audit import record_document
from mainspring.model.audit import Record

TeamName = Annotated[str | None, typer.Option("--team", metavar="TEAM", help="Only what was asked for of this team's.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="How many entries to list.")]
Before = Annotated[
    int | None,
    typer.Option(
        "--before", min=1, max=2**63 - 1, metavar="NUMBER", help="Only entries before this one, for the next page."
    ),
]


def list_audit(
    team: TeamName = None, limit: Limit = 20, before: Before = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """List what was asked for, the last first."""
    with app_at(url, team=team) as app:
        found = app.audit.list(before=before, limit=limit)
    more = found[-1].seq if len(found) == limit and found[-1].seq > 1 else None
    if as_json:
        say_json({"entries": [record_document(one) for one in found], "before": more})
    elif found:
        _show(found)
        if more is not None:
            say(f"There may be more: add --before {more}", "dim")
    else:
        say(f"Nothing {'earlier ' if before else ''}is on record in {without_passwords(url)}.")


def _show(records: Sequence[Record]) -> None:
    now = SystemClock().now()
    table = listing()
    table.add_column("Nr", no_wrap=True, justify="right")
    table.add_column("When", no_wrap=True)
    for title in ("Who", "What", "Of what", "Team"):
        table.add_column(title, overflow="fold")
    for one in records:
        when = ago(one.at, now)
        words = (one.actor, one.action, one.target or "", one.team or "")
        table.add_row(cell(one.seq), cell(when), *(cell(word) for word in words))
    show(table)
