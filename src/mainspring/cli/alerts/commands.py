"""The commands of `mainspring alerts`."""

from __future__ import annotations

import typer

from mainspring.cli.alerts.add import add
from mainspring.cli.alerts.control import remove
from mainspring.cli.alerts.list import list_alerts
from mainspring.cli.alerts.show import show_alert
from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.output import say

alerts = typer.Typer(cls=Group)
alerts.command("list")(list_alerts)
alerts.command("show")(show_alert)
alerts.command()(add)
alerts.command()(remove)


@alerts.callback(invoke_without_command=True)
def _alerts(context: typer.Context) -> None:
    """Say what people should be told of, and see what is wrong now."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)
