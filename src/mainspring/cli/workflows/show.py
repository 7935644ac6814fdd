"""`mainspring workflows show`: how a workflow stands, with a picture of its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import short
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, say, say_json, show
from mainspring.cli.times import ago, local, span
from mainspring.cli.workflows.find import WorkflowId, find_workflow, told_with_result
from mainspring.cli.workflows.look import line_of, standing_of
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldWorkflow, as_document
from mainspring.documents.workflows import node_document
from mainspring.errors import InvalidValue
from mainspring.model.picture import Picture
from mainspring.model.text import counted

AsMermaid = Annotated[bool, typer.Option("--mermaid", help="Print the picture only, as a flowchart for mermaid.")]

_MOST_LINES = 200
_MOST_FAILURES = 10


def show_workflow(
    workflow_id: WorkflowId,
    as_mermaid: AsMermaid = False,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show one workflow: how far it is, its jobs as a picture, and why some of them failed."""
    if as_mermaid and as_json:
        raise InvalidValue("expected --json or --mermaid, got both")
    with app_at(url, team=team) as app:
        workflow = find_workflow(app, workflow_id)
        job, picture = told_with_result(workflow), workflow.picture()
    if as_json:
        jobs = [node_document(node) for node in picture.nodes]
        say_json({**as_document(job), "jobs": jobs, "left_out": picture.left_out})
    elif as_mermaid:
        say(picture.mermaid())
    else:
        _show_facts(job, picture, SystemClock().now())
        _show_picture(picture)
        _show_failures(picture)


def _show_facts(job: ToldWorkflow, picture: Picture, now: datetime) -> None:
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(Text("Workflow", "bold"), cell(f"{job.task}, {job.id}"))
    facts.add_row(Text("State", "bold"), standing_of(job))
    for name, value in _facts(job, picture, now):
        facts.add_row(Text(name, "bold"), cell(value))
    show(facts)


def _facts(job: ToldWorkflow, picture: Picture, now: datetime) -> Iterator[tuple[str, str]]:
    if picture.counts:
        yield "Progress", picture.progress
    if job.key is not None:
        yield "Key", job.key
    if job.reason is not None:
        yield "Reason", job.reason
    if job.workflow is not None:
        yield "Within", f"workflow {job.workflow}"
    yield "Enqueued", f"{local(job.created_at)} ({ago(job.created_at, now)})"
    if job.finished_at is not None:
        yield "Finished", f"{local(job.finished_at)} (took {span(job.finished_at - job.created_at)})"


def _show_picture(picture: Picture) -> None:
    lines = picture.lines()
    if lines:
        say("")
    for line in lines[:_MOST_LINES]:
        show(line_of(line))
    if len(lines) > _MOST_LINES:
        say(f"There are {len(lines) - _MOST_LINES:,} lines more; --json has all jobs.", "dim")


def _show_failures(picture: Picture) -> None:
    failed = [node for node in picture.nodes if node.why is not None]
    if not failed:
        return
    say("")
    say("Failures", "bold")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for node in failed[:_MOST_FAILURES]:
        table.add_row(cell(short(node.id), "dim"), cell(f"{node.task}: {node.why}"))
    show(table, indent=2)
    if len(failed) > _MOST_FAILURES:
        say(f"  and {counted(len(failed) - _MOST_FAILURES, 'job')} more; --json has them all", "dim")
