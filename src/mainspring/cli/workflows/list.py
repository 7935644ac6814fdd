"""`mainspring workflows list`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import find, short, whole
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, width, without_passwords
from mainspring.cli.times import ago
from mainspring.cli.workflows.find import told_workflow
from mainspring.cli.workflows.look import standing_of
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldWorkflow, as_document
from mainspring.model.job import JobState

Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="How many workflows to list.")
]
Before = Annotated[
    str | None, typer.Option("--before", metavar="ID", help="Only workflows older than this one, for the next page.")
]

_WIDE = 110
"""Columns from which there is room for whole ids."""


def list_workflows(
    limit: Limit = 20, before: Before = None, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """List workflows, newest first; those within others are shown with these."""
    with app_at(url, team=team) as app:
        # A whole id will do even if its job was pruned meanwhile.
        start = None if before is None else whole(before) or find(app, before).id
        found = [told_workflow(one) for one in app.workflows(start, limit)]
    more = found[-1] if len(found) == limit else None
    if as_json:
        documents = [as_document(one) for one in found]
        say_json({"workflows": documents, "before": None if more is None else str(more.id)})
    elif found:
        _show(found)
        if more is not None:
            say(f"There may be more: add --before {short(more.id)}", "dim")
    else:
        say(f"No {'older ' if before else ''}workflows in {without_passwords(url)}.")


def _show(found: Sequence[ToldWorkflow]) -> None:
    now, wide = SystemClock().now(), width() >= _WIDE
    table = listing()
    table.add_column("Workflow", overflow="fold", min_width=10)
    table.add_column("Id", no_wrap=True)
    table.add_column("State", no_wrap=True)
    table.add_column("Jobs ended", overflow="fold")
    table.add_column("Enqueued", no_wrap=True)
    for job in found:
        table.add_row(
            cell(job.task),
            cell(job.id if wide else short(job.id)),
            standing_of(job),
            cell(_ended(job.counts)),
            cell(ago(job.created_at, now)),
        )
    show(table)


def _ended(counts: Mapping[JobState, int]) -> str:
    """Return how many jobs of a workflow have ended, and how many of them badly."""
    ended = sum(count for state, count in counts.items() if state.final)
    failed = counts.get(JobState.FAILED, 0) + counts.get(JobState.EXPIRED, 0)
    total = sum(counts.values())
    return f"{ended:,} of {total:,}{f', {failed:,} failed' if failed else ''}" if total else ""
