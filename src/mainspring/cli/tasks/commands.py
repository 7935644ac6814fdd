"""The commands of `mainspring tasks`."""

from __future__ import annotations

import typer

from mainspring.cli.group import Group
from mainspring.cli.options import AppName, AppUrl, AsJson
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.tasks.control import list_paused, pause, resume

tasks = typer.Typer(cls=Group)
tasks.command()(pause)
tasks.command()(resume)


@tasks.callback(invoke_without_command=True)
def _tasks(context: typer.Context, app: AppName = None, url: AppUrl = None, as_json: AsJson = False) -> None:
    """List the tasks that are paused. Or pause and resume tasks."""
    if context.invoked_subcommand is None:
        list_paused(app, url, as_json)
    else:
        check_options_follow(context)
