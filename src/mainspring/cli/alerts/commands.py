"""The commands of `mainspring alerts`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.alerts.add import add
from mainspring.cli.alerts.control import remove
from mainspring.cli.alerts.list import list_alerts
from mainspring.cli.alerts.show import show_alert
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow

alerts = typer.Typer(cls=Group)
alerts.command("list")(list_alerts)
alerts.command("show")(show_alert)
alerts.command()(add)
alerts.command()(remove)


@alerts.callback(invoke_without_command=True)
def _alerts(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the alerts, those that fire first. Or say what people should be told of."""
    if context.invoked_subcommand is None:
        list_alerts(team, url, as_json)
    else:
        check_options_follow(context)
