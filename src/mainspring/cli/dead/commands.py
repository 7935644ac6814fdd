"""The commands of `mainspring dead`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.dead.discard import discard
from mainspring.cli.dead.groups import groups
from mainspring.cli.dead.list import list_letters
from mainspring.cli.dead.replay import replay
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow

dead = typer.Typer(cls=Group)
dead.command()(groups)
dead.command("list")(list_letters)
dead.command()(replay)
dead.command()(discard)


@dead.callback(invoke_without_command=True)
def _dead(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the jobs that failed for good, by their cause. Or replay or discard them."""
    if context.invoked_subcommand is None:
        groups(team=team, url=url, as_json=as_json)
    else:
        check_options_follow(context)
