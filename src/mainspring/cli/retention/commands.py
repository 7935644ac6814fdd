"""The commands of `mainspring retention`."""

from __future__ import annotations

import typer

from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.output import say
from mainspring.cli.retention.control import remove_rule, set_rule
from mainspring.cli.retention.list import list_rules

retention = typer.Typer(cls=Group)
retention.command("list")(list_rules)
retention.command("set")(set_rule)
retention.command("remove")(remove_rule)


@retention.callback(invoke_without_command=True)
def _retention(context: typer.Context) -> None:
    """Say how long finished jobs are kept, by team, queue and state."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)
