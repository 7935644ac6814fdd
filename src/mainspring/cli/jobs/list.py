"""`mainspring jobs list`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import find, short, whole
from mainspring.cli.jobs.look import how_far, state_of, when
from mainspring.cli.jobs.match import chosen_by, matching
from mainspring.cli.jobs.told import told
from mainspring.cli.options import (
    AsJson,
    Before,
    Error,
    FinishedSince,
    FinishedUntil,
    Key,
    Limit,
    Queue,
    Since,
    State,
    TaskName,
    Team,
    Until,
    Url,
)
from mainspring.cli.output import cell, listing, say, say_json, show, width, without_passwords
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldJob, as_document
from mainspring.model.team import DEFAULT_TEAM

_WIDE = 110
"""Columns from which there is room for whole ids."""


def list_jobs(  # noqa: PLR0913 - one parameter for each option
    state: State = None,
    queue: Queue = None,
    task: TaskName = None,
    key: Key = None,
    since: Since = None,
    until: Until = None,
    finished_since: FinishedSince = None,
    finished_until: FinishedUntil = None,
    error: Error = None,
    limit: Limit = 20,
    before: Before = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    match = chosen_by(
        matching(
            state=state,
            queue=queue,
            task=task,
            key=key,
            since=since,
            until=until,
            finished_since=finished_since,
            finished_until=finished_until,
            error=error,
        )
    )
    with app_at(url, team=team) as app:
        # A whole id will do even if its job was pruned meanwhile.
        start = None if before is None else whole(before) or find(app, before).id
        found = app.jobs(**match, before=start, limit=limit)
        jobs = [told(job) for job in found]
    more = jobs[-1] if len(jobs) == limit else None
    if as_json:
        say_json({"jobs": [as_document(job) for job in jobs], "before": None if more is None else str(more.id)})
    elif jobs:
        _show(jobs, teams=team is None and any(job.team != DEFAULT_TEAM for job in jobs))
        if more is not None:
            say(f"There may be more: add --before {short(more.id)}", "dim")
    elif not match and before is None:
        whose = "" if team is None else f" of team {team}"
        say(f"No jobs{whose} in {without_passwords(url)}. Enqueue one with `mainspring enqueue TASK`.")
    else:
        say("No job is like that.")


def _show(jobs: list[ToldJob], *, teams: bool) -> None:
    now, wide = SystemClock().now(), width() >= _WIDE
    progress = any(job.progress for job in jobs)
    table = listing()
    table.add_column("Id", no_wrap=True)
    if teams:
        table.add_column("Team", overflow="fold")
    table.add_column("Task", overflow="fold")
    table.add_column("Queue", overflow="fold")
    table.add_column("State", no_wrap=True)
    table.add_column("Att.", no_wrap=True, justify="right")
    table.add_column("When", no_wrap=True)
    if progress:
        table.add_column("Done", no_wrap=True, justify="right")
    for job in jobs:
        row = [cell(job.id if wide else short(job.id)), *([cell(job.team)] if teams else [])]
        row += [cell(job.task), cell(job.queue), state_of(job), cell(job.attempt), cell(when(job, now))]
        table.add_row(*row, *([cell(how_far(job.progress))] if progress else []))
    show(table)
