"""The commands of `mainspring teams`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.teams.control import remove, set_team
from mainspring.cli.teams.list import list_teams

teams = typer.Typer(cls=Group)
teams.command("list")(list_teams)
teams.command("set")(set_team)
teams.command()(remove)


@teams.callback(invoke_without_command=True)
def _teams(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List what teams may have: jobs, schedules, and how fast. Or say so."""
    if context.invoked_subcommand is None:
        list_teams(url, as_json)
    else:
        check_options_follow(context)
