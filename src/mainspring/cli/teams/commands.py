"""The commands of `mainspring teams`."""

from __future__ import annotations

import typer

from mainspring.cli.group import Group
from mainspring.cli.teams.control import remove, set_team
from mainspring.cli.teams.list import list_teams

teams = typer.Typer(cls=Group, no_args_is_help=True, help="Say what teams may have: jobs, schedules, and how fast.")
teams.command("list")(list_teams)
teams.command("set")(set_team)
teams.command()(remove)
