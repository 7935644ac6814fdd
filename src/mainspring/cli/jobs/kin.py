"""What a job has to do with others, as people are told of it."""

from __future__ import annotations

from collections.abc import Iterator

from mainspring.cli.apps import App
from mainspring.cli.jobs.told import told_of
from mainspring.documents.told import ToldJob, ToldParent
from mainspring.model.links import IfFailed
from mainspring.model.picture import Kind

_MOST = 5

_THEN = {
    IfFailed.CANCEL: "this one is cancelled",
    IfFailed.RUN: "this one runs all the same",
    IfFailed.WAIT: "this one waits until it was replayed",
}


def kin(app: App, job: ToldJob) -> Iterator[tuple[str, str]]:
    """Yield the workflow of *job*, those that it comes after, and what becomes of it if they fail."""
    shown = job.parents[:_MOST]
    known = told_of(app, {parent.id for parent in shown} | ({job.workflow} if job.workflow else set()))
    if job.workflow is not None:
        name = f"{known[job.workflow].task}, " if job.workflow in known else ""
        yield "Workflow", f"{name}{job.workflow}"
    for parent in shown:
        yield "After", _parent(parent, known.get(parent.id))
    if len(job.parents) > len(shown):
        yield "After", f"and {len(job.parents) - len(shown):,} more; --json has them all"
    if job.kind is Kind.WORKFLOW:
        yield "Made of", f"other jobs; see `mainspring workflows show {job.id}`"


def _parent(parent: ToldParent, job: ToldJob | None) -> str:
    known = "gone" if job is None else f"{job.task}, {job.standing}"
    return f"{parent.id} ({known}); if it fails, {_THEN[parent.if_failed]}"
