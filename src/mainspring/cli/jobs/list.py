"""`mainspring jobs list`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.database import client_at
from mainspring.cli.ids import find, short, whole
from mainspring.cli.jobs.look import how_far, state_of, when
from mainspring.cli.options import AsJson, Before, Key, Limit, Queue, State, TaskName, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, width, without_passwords
from mainspring.cli.values import job_state
from mainspring.clock import SystemClock
from mainspring.documents.jobs import job_document
from mainspring.model.job import Job
from mainspring.model.team import DEFAULT_TEAM
from mainspring.store.open import keyring
from mainspring.store.protocol import JobFilter

_WIDE = 110
"""Columns from which there is room for whole ids."""


def list_jobs(  # noqa: PLR0913 - one parameter for each option
    state: State = None,
    queue: Queue = None,
    task: TaskName = None,
    key: Key = None,
    limit: Limit = 20,
    before: Before = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    match = JobFilter(state=None if state is None else job_state(state), queue=queue, task=task, key=key)
    with client_at(url, team) as client:
        # A whole id will do even if its job was pruned meanwhile.
        start = None if before is None else whole(before) or find(client, before).id
        jobs = client.page(match, start, limit)
    more = jobs[-1] if len(jobs) == limit else None
    if as_json:
        keys = keyring(url)
        say_json({"jobs": [job_document(job, keys) for job in jobs], "before": None if more is None else str(more.id)})
    elif jobs:
        _show(jobs, teams=team is None and any(job.team for job in jobs))
        if more is not None:
            say(f"There may be more: add --before {short(more.id)}", "dim")
    elif match == JobFilter() and before is None:
        whose = "" if team is None else f" of team {team}"
        say(f"No jobs{whose} in {without_passwords(url)}. Enqueue one with `mainspring enqueue TASK`.")
    else:
        say("No job is like that.")


def _show(jobs: list[Job], *, teams: bool) -> None:
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
        row = [cell(job.id if wide else short(job.id)), *([cell(job.team or DEFAULT_TEAM)] if teams else [])]
        row += [cell(job.task), cell(job.queue), state_of(job), cell(job.attempt), cell(when(job, now))]
        table.add_row(*row, *([cell(how_far(job.reached))] if progress else []))
    show(table)
