"""Workflows: how far each is, its jobs as a graph and along time, and what is done to it as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.errors import JobNotFound
from mainspring.job_handle import id_of
from mainspring.model.job import Job, JobState, Wish
from mainspring.model.lifecycle import REPLAYABLE
from mainspring.model.picture import Box, Counts, Kind, Node, Picture, tally
from mainspring.model.text import counted
from mainspring.model.token import Role
from mainspring.model.workflow import standing
from mainspring.web.gantt import Times, chart
from mainspring.web.graph import lay_out
from mainspring.web.look import lasting
from mainspring.web.pages import Pages, Visit
from mainspring.web.views.jobs import DONE
from mainspring.workflow_handle import WorkflowHandle

pages = Pages()

_PAGE = 25
_JOBS = 50
_SEEN = 1_000
"""Jobs that are looked at for a picture; of more, the first."""

_DRAWN = 200
"""Nodes that anybody can make sense of, and a browser draws again every second."""

_FAILURES = 10
_LOOK = needs(Role.VIEWER)


class Far(NamedTuple):
    """How far a workflow is."""

    ended: int
    total: int
    failed: int


class Part(NamedTuple):
    """What is drawn of a box: where it leads, and the words in it."""

    box: Box
    address: str
    second: str
    whole: str


@pages.get("/workflows", _LOOK)
def list_workflows(visit: Visit) -> Response:
    """Show workflows that are part of none, newest first."""
    before = visit.asked("before")
    found = visit.app.workflows(before or None, _PAGE + 1)
    shown = found[:_PAGE]
    return visit.show(
        "workflows.html",
        workflows=[(one.snapshot, standing(one.snapshot), _far(one.progress())) for one in shown],
        older=f"/workflows?before={shown[-1].id}" if len(found) > _PAGE else None,
        newest=not before,
    )


@pages.get("/workflows/{job_id:uuid}", _LOOK)
def show_workflow(visit: Visit) -> Response:
    """Show a workflow, and its jobs drawn in several ways."""
    workflow, after = _found(visit), visit.asked("after")
    picture, now = workflow.picture(_SEEN), visit.app.client.clock.now()
    seen, boxes = workflow.snapshot, picture.boxes()
    drawn = boxes if len(boxes) <= _DRAWN else []
    times = [_times(box, drawn) for box in drawn]
    jobs = workflow.page(id_of(after) if after else None, _JOBS + 1)
    acts = visit.may("submitter")
    return visit.show(
        "workflow.html",
        job=seen,
        standing=picture.standing,
        far=_far(picture.counts),
        tally=tally(picture.counts),
        picture=picture,
        drawing=lay_out([box.parents for box in drawn]),
        parts=[_part(*one, now) for one in zip(drawn, times, strict=True)],
        gantt=chart(times, now) if len(drawn) > 1 else None,
        failures=[node for node in picture.nodes if node.why is not None][:_FAILURES],
        jobs=jobs[:_JOBS],
        more=f"/workflows/{seen.id}?after={jobs[_JOBS - 1].id}#jobs" if len(jobs) > _JOBS else None,
        first=not after,
        deeds=_offered(seen, picture) if acts else [],
        replays=acts and not _undoes(picture),
        dead=REPLAYABLE,
    )


@pages.get("/workflows/{job_id:uuid}/cancel", needs(Role.SUBMITTER))
def ask_cancel(visit: Visit) -> Response:
    """Ask whether it is meant, saying of how many jobs."""
    workflow = _found(visit)
    far = _far(workflow.progress())
    left = counted(far.total - far.ended, "job")
    return visit.show(
        "ask_why.html",
        question=f"Cancel {workflow.snapshot.task} with {left}?",
        sentence="Those that wait are cancelled at once; the workers of those that run are asked.",
        address=f"/workflows/{workflow.id}/cancel",
        label=f"Cancel {left}",
        back=f"/workflows/{workflow.id}",
    )


def _acts(deed: str) -> None:
    """Make the page that a button of a workflow leads to."""

    @pages.post(f"/workflows/{{job_id:uuid}}/{deed}", needs(Role.SUBMITTER, records=f"workflow.{deed}"))
    def act(visit: Visit) -> Response:
        workflow, reason = _found(visit), visit.form.words("reason")
        visit.caller.record(workflow.id, reason=reason)
        _do(deed, workflow, reason, visit.caller.actor)
        now = standing(workflow.refresh())
        return visit.go(f"/workflows/{workflow.id}", f"It is {DONE[deed]}, and now {now}.")


def _do(deed: str, workflow: WorkflowHandle[Any], reason: str | None, actor: str) -> JobState:
    match deed:
        case "pause":
            return workflow.pause(reason, by=actor)
        case "resume":
            return workflow.resume()
        case "replay":
            return workflow.replay(reason)
        case _:
            return workflow.cancel(reason)


for _deed in DONE:
    _acts(_deed)


@pages.post("/workflows/{job_id:uuid}/jobs/{member:uuid}/replay", needs(Role.SUBMITTER, records="job.replay"))
def replay_from(visit: Visit) -> Response:
    """Run one of its jobs again, those after it that were cancelled, and so the workflow."""
    workflow, job = _found(visit), visit.app.job(visit.path["member"])
    if job.snapshot.workflow != workflow.id:
        raise JobNotFound(job.id)
    reason = visit.form.words("reason")
    visit.caller.record(job.id, reason=reason)
    state = job.replay(reason)
    return visit.go(f"/workflows/{workflow.id}", f"{job.snapshot.task} is replayed, and now {state}.")


def _found(visit: Visit) -> WorkflowHandle[Any]:
    """Return the workflow; a job that is none is not there."""
    found = visit.app.job(visit.path["job_id"])
    if not isinstance(found, WorkflowHandle):
        raise JobNotFound(found.id)
    return found


def _offered(job: Job, picture: Picture) -> list[str]:
    """Return what can be done about it as it stands."""
    if job.state.final:
        return ["replay"] if job.state in REPLAYABLE and not _undoes(picture) else []
    held = job.state is JobState.PAUSED or job.wish is Wish.PAUSE
    return [*(["resume"] if held else []), *(["pause"] if not held and job.wish is None else []), "cancel"]


def _undoes(picture: Picture) -> bool:
    """Return whether it undoes what was done, or has: then nothing of it can be replayed."""
    return any(node.kind is Kind.UNDO for node in picture.nodes)


def _far(counts: Counts) -> Far:
    ended = sum(count for state, count in counts.items() if state.final)
    failed = counts.get(JobState.FAILED, 0) + counts.get(JobState.EXPIRED, 0)
    return Far(ended, sum(counts.values()), failed)


def _part(box: Box, times: Times, now: datetime) -> Part:
    one = box.nodes[0] if len(box.nodes) == 1 else None
    if one is None:
        address = "#jobs"
    else:
        address = f"/jobs/{one.id}" if one.kind in (Kind.JOB, Kind.UNDO) else f"/workflows/{one.id}"
    took = lasting((times.ended or now) - times.started) if times.started else ""
    if box.counts:
        far = _far(box.counts)
        words = [f"{far.ended:,} of {far.total:,}", f"{far.failed:,} failed" if far.failed else "", took]
    else:
        words = [one.standing if one else box.looks, took, "to undo" if box.kind is Kind.UNDO else ""]
    told = [box.title, ", ".join(box.told)]
    return Part(box, address, ", ".join(filter(None, words)), "\n".join(filter(None, told)))


def _times(box: Box, boxes: Sequence[Box]) -> Times:
    """Return when a box waited and ran. It does not wait before those have ended that it comes after."""
    made = [node.created_at for node in box.nodes if node.created_at]
    before = [node.finished_at for parent in box.parents for node in boxes[parent].nodes]
    since = max([*made[:1], *filter(None, before)], default=None) if all(before) else None
    ended = [node.finished_at for node in box.nodes if node.finished_at]
    over = bool(ended) and len(ended) == len(box.nodes)
    started = min(filter(None, (_started(node, since) for node in box.nodes)), default=None)
    if over and started is None:
        since = None  # it was cancelled before its turn came
    return Times(since, started, max(ended) if over else None)


def _started(node: Node, since: datetime | None) -> datetime | None:
    """Return when *node* began to be at work, if it is or was; one that has jobs of its own begins with them."""
    if not node.state.final and node.looks is not JobState.RUNNING:
        return None
    return node.started_at or (since if node.counts else None)
