"""Workflows by their ids."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.cli.ids import find
from mainspring.client import Client
from mainspring.errors import InvalidValue
from mainspring.model.job import Job

WorkflowId = Annotated[str, typer.Argument(metavar="ID", help="The workflow's id, whole or as a listing shows it.")]
WorkflowIds = Annotated[
    list[str], typer.Argument(metavar="ID", help="Ids of workflows, whole or as a listing shows them.")
]


def find_workflow(client: Client, text: str) -> Job:
    """Return the workflow with the id *text*, which may be short."""
    job = find(client, text)
    if job.plan is None:
        raise InvalidValue(
            f"job {job.id} of task {job.task!r} is no workflow; look at it with `mainspring jobs show {job.id}`"
        )
    return job
