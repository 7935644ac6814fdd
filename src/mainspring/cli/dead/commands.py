"""The commands of `mainspring dead`."""

from __future__ import annotations

import typer

from mainspring.cli.dead.discard import discard
from mainspring.cli.dead.groups import groups
from mainspring.cli.dead.list import list_letters
from mainspring.cli.dead.replay import replay
from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.output import say

dead = typer.Typer(cls=Group)
dead.command()(groups)
dead.command("list")(list_letters)
dead.command()(replay)
dead.command()(discard)


@dead.callback(invoke_without_command=True)
def _dead(context: typer.Context) -> None:
    """Look at jobs that failed for good, by their cause, and replay or discard them."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)
