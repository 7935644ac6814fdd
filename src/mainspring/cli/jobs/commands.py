"""The commands of `mainspring jobs`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.jobs.control import cancel, pause, replay, resume
from mainspring.cli.jobs.list import list_jobs
from mainspring.cli.jobs.logs import logs
from mainspring.cli.jobs.show import show_job
from mainspring.cli.jobs.signal import signal
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow

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
def _jobs(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the jobs, newest first. Or cancel, pause, resume or replay them, or send them signals."""
    if context.invoked_subcommand is None:
        list_jobs(team=team, url=url, as_json=as_json)
    else:
        check_options_follow(context)
