"""The commands of `mainspring notifications`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.notifications.control import add, remove, send_test
from mainspring.cli.notifications.list import list_notifications
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow

notifications = typer.Typer(cls=Group)
notifications.command("list")(list_notifications)
notifications.command()(add)
notifications.command()(remove)
notifications.command("test")(send_test)


@notifications.callback(invoke_without_command=True)
def _notifications(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List whom teams want to be told of what becomes of their jobs. Or say whom to tell, by mail or by webhook."""
    if context.invoked_subcommand is None:
        list_notifications(team, url, as_json)
    else:
        check_options_follow(context)
