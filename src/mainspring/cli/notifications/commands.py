"""The commands of `mainspring notifications`."""

from __future__ import annotations

import typer

from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.notifications.control import add, remove, send_test
from mainspring.cli.notifications.list import list_notifications
from mainspring.cli.output import say

notifications = typer.Typer(cls=Group)
notifications.command("list")(list_notifications)
notifications.command()(add)
notifications.command()(remove)
notifications.command("test")(send_test)


@notifications.callback(invoke_without_command=True)
def _notifications(context: typer.Context) -> None:
    """Say whom to tell of what becomes of the jobs of a team, by mail or by webhook."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)
