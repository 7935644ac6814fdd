"""The commands of `mainspring schedules`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.schedules.add import add
from mainspring.cli.schedules.backfill import backfill
from mainspring.cli.schedules.control import pause, remove, resume, trigger
from mainspring.cli.schedules.history import history
from mainspring.cli.schedules.lint import lint_schedules
from mainspring.cli.schedules.list import list_schedules
from mainspring.cli.schedules.preview import preview
from mainspring.cli.schedules.show import show_schedule

schedules = typer.Typer(cls=Group)
schedules.command("list")(list_schedules)
schedules.command("show")(show_schedule)
schedules.command()(add)
schedules.command()(pause)
schedules.command()(resume)
schedules.command()(remove)
schedules.command()(trigger)
schedules.command()(preview)
schedules.command()(backfill)
schedules.command()(history)
schedules.command("lint")(lint_schedules)


@schedules.callback(invoke_without_command=True)
def _schedules(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the schedules. Or make some, see what they did and will do, and pause, trigger or remove them."""
    if context.invoked_subcommand is None:
        list_schedules(team=team, url=url, as_json=as_json)
    else:
        check_options_follow(context)
