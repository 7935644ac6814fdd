"""The commands of `mainspring queues`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.queues.control import give, pause, resume, set_queue
from mainspring.cli.queues.list import list_queues

queues = typer.Typer(cls=Group)
queues.command()(pause)
queues.command()(resume)
queues.command("set")(set_queue)
queues.command()(give)


@queues.callback(invoke_without_command=True)
def _queues(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the queues: what waits there, who serves them, what is paused. Or rule them."""
    if context.invoked_subcommand is None:
        list_queues(team, url, as_json)
    else:
        check_options_follow(context)
