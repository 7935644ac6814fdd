"""The commands of `mainspring jobs`."""

from __future__ import annotations

import typer

from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.jobs.control import cancel, pause, replay, resume
from mainspring.cli.jobs.list import list_jobs
from mainspring.cli.jobs.logs import logs
from mainspring.cli.jobs.show import show_job
from mainspring.cli.jobs.signal import signal
from mainspring.cli.output import say

jobs = typer.Typer(cls=Group)
jobs.command("list")(list_jobs)
jobs.command("show")(show_job)
jobs.command()(logs)
jobs.command()(cancel)
jobs.command()(pause)
jobs.command()(resume)
jobs.command()(replay)
jobs.command()(signal)


@jobs.callback(invoke_without_command=True)
def _jobs(context: typer.Context) -> None:
    """Look at jobs, cancel, pause, resume or replay them, and send them signals."""
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)
