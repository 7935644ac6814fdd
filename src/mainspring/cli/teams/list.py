"""`mainspring teams list`: what they may have."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.times import span
from mainspring.documents.teams import team_document
from mainspring.model.team import Team


def list_teams(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the teams of which something was said."""
    with app_at(url) as app:
        found = app.teams.list()
    if as_json:
        say_json({"teams": [team_document(one) for one in found]})
    elif found:
        _show(found)
    else:
        say(f"Every team in {without_passwords(url)} may have as much as it likes.")


def told(team: Team) -> str:
    """Return in words what the team may have."""
    parts = [
        None if team.max_pending is None else f"{team.max_pending:,} unfinished jobs",
        None if team.max_schedules is None else f"{team.max_schedules:,} schedules",
        None if team.interval is None else f"a job every {span(team.interval)}, {team.burst:,} together",
    ]
    return "; ".join(filter(None, parts)) or "as much as it likes"


def _show(teams: Sequence[Team]) -> None:
    table = listing()
    table.add_column("Team", no_wrap=True)
    table.add_column("May have", overflow="fold")
    for one in teams:
        table.add_row(cell(one.name), cell(told(one)))
    show(table)
