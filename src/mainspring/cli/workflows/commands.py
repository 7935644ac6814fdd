"""The commands of `mainspring workflows`."""

from __future__ import annotations

import typer

from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.output import say
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
def _workflows(context: typer.Context) -> None:
    """Look at workflows, and cancel, pause, resume or replay them as a whole."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)
