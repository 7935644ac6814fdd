"""What a job has to do with others, as people are told of it."""

from __future__ import annotations

from collections.abc import Iterator

from mainspring.model.job import Job
from mainspring.model.links import Edge, IfFailed
from mainspring.model.workflow import standing
from mainspring.store import Store

_MOST = 5

_THEN = {
    IfFailed.CANCEL: "this one is cancelled",
    IfFailed.RUN: "this one runs all the same",
    IfFailed.WAIT: "this one waits until it was replayed",
}


def kin(store: Store, job: Job) -> Iterator[tuple[str, str]]:
    """Yield the workflow of *job*, those that it comes after, and what becomes of it if they fail."""
    edges = job.beginnings.parents
    shown = edges[:_MOST]
    wanted = {edge.parent for edge in shown} | ({job.workflow} if job.workflow else set())
    known = store.get(wanted) if wanted else {}
    if job.workflow is not None:
        name = f"{known[job.workflow].task}, " if job.workflow in known else ""
        yield "Workflow", f"{name}{job.workflow}"
    for edge in shown:
        yield "After", _parent(edge, known.get(edge.parent))
    if len(edges) > len(shown):
        yield "After", f"and {len(edges) - len(shown):,} more; --json has them all"
    if job.plan is not None:
        yield "Made of", f"other jobs; see `mainspring workflows show {job.id}`"


def _parent(edge: Edge, parent: Job | None) -> str:
    known = "gone" if parent is None else f"{parent.task}, {standing(parent)}"
    return f"{edge.parent} ({known}); if it fails, {_THEN[edge.if_failed]}"
