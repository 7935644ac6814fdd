"""Workflows by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from msgspec.structs import replace

from mainspring.app import Mainspring
from mainspring.cli.apps import App
from mainspring.cli.ids import find
from mainspring.cli.jobs.told import told
from mainspring.documents.results import result_of
from mainspring.documents.told import ToldWorkflow, as_told
from mainspring.documents.workflows import workflow_document
from mainspring.errors import InvalidValue
from mainspring.model.picture import Kind
from mainspring.workflow_handle import WorkflowHandle

if TYPE_CHECKING:
    from mainspring.remote import RemoteWorkflow

Workflow: TypeAlias = "WorkflowHandle[Any] | RemoteWorkflow"

WorkflowId = Annotated[str, typer.Argument(metavar="ID", help="The workflow's id, whole or as a listing shows it.")]
WorkflowIds = Annotated[
    list[str], typer.Argument(metavar="ID", help="Ids of workflows, whole or as a listing shows them.")
]


def find_workflow(app: App, text: str) -> Workflow:
    """Return the workflow with the id *text*, which may be short."""
    found = find(app, text)
    job = told(found)
    if job.kind is not Kind.WORKFLOW:
        raise InvalidValue(
            f"job {job.id} of task {job.task!r} is no workflow; look at it with `mainspring jobs show {job.id}`"
        )
    if isinstance(app, Mainspring):
        assert isinstance(found, WorkflowHandle)
        return found
    return app.get_workflow(job.id)


def told_workflow(workflow: Workflow) -> ToldWorkflow:
    """Return *workflow* as it was when it was last looked at, without a result, which is put together."""
    if isinstance(workflow, WorkflowHandle):
        return as_told(workflow_document(workflow.snapshot, workflow.keys, workflow.progress()), ToldWorkflow)
    return workflow.snapshot


def told_with_result(workflow: Workflow) -> ToldWorkflow:
    """Return the same with its result, if it has one."""
    if isinstance(workflow, WorkflowHandle):
        return replace(told_workflow(workflow), result=result_of(workflow))
    return workflow.snapshot
