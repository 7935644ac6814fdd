"""The commands of `mainspring workflows`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.workflows.control import cancel, pause, replay, resume
from mainspring.cli.workflows.list import list_workflows
from mainspring.cli.workflows.show import show_workflow

workflows = typer.Typer(cls=Group)
workflows.command("list")(list_workflows)
workflows.command("show")(show_workflow)
workflows.command()(cancel)
workflows.command()(pause)
workflows.command()(resume)
workflows.command()(replay)


@workflows.callback(invoke_without_command=True)
def _workflows(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the workflows, newest first. Or cancel, pause, resume or replay them as a whole."""
    if context.invoked_subcommand is None:
        list_workflows(team=team, url=url, as_json=as_json)
    else:
        check_options_follow(context)
