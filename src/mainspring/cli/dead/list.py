"""`mainspring dead list`."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.dead.groups import error_in_short
from mainspring.cli.dead.options import GroupName
from mainspring.cli.ids import find, short, whole
from mainspring.cli.jobs.told import told
from mainspring.cli.options import AsJson, Before, Limit, Queue, TaskName, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.times import ago
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldJob, as_document


def list_letters(  # noqa: PLR0913 - one parameter for each option
    group: GroupName = None,
    queue: Queue = None,
    task: TaskName = None,
    limit: Limit = 20,
    before: Before = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest job first."""
    with app_at(url, team=team) as app:
        start = None if before is None else whole(before) or find(app, before).id
        found = app.dead.list(group=group, queue=queue, task=task, before=start, limit=limit)
        jobs = [told(job) for job in found]
    more = jobs[-1] if len(jobs) == limit else None
    if as_json:
        say_json({"jobs": [as_document(job) for job in jobs], "before": None if more is None else str(more.id)})
    elif jobs:
        _show(jobs)
        if more is not None:
            say(f"There may be more: add --before {short(more.id)}", "dim")
    else:
        say("No dead letter is like that." if group or queue or task or before else "No dead letters.")


def _show(jobs: Sequence[ToldJob]) -> None:
    now = SystemClock().now()
    table = listing()
    table.add_column("Id", no_wrap=True)
    table.add_column("Task", overflow="fold")
    table.add_column("Queue", overflow="fold")
    table.add_column("Error", overflow="fold")
    table.add_column("Failed", no_wrap=True)
    for job in jobs:
        error = error_in_short(job.error.type, job.error.message) if job.error else ""
        failed = ago(job.finished_at or job.created_at, now)
        table.add_row(cell(short(job.id)), cell(job.task), cell(job.queue), cell(error), cell(failed))
    show(table)
