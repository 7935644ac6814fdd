"""`mainspring workflows cancel`, `pause`, `resume` and `replay`: act on all jobs of a workflow together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import App, app_at
from mainspring.cli.note import note, teams_of
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import complain, say, say_json
from mainspring.cli.workflows.find import Workflow, WorkflowIds, find_workflow, told_workflow
from mainspring.documents.told import ToldWorkflow
from mainspring.documents.workflows import counts_document
from mainspring.errors import JobNotFound, ReplayRefused
from mainspring.model.job import JobState, Wish
from mainspring.model.text import counted

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the jobs.")]

_MISSING = 1
_DEAD = (JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED)
_AT_WORK = (JobState.RUNNING, JobState.BLOCKED)
"""What jobs are that were asked: they run, or are workflows with jobs that do."""


@dataclass(frozen=True)
class _Action:
    """What can be done to a workflow.

    `fits` says whether it can be done to one; `changed` tells of how many jobs it was, by a look before and one after.
    """

    verb: str
    done: str
    fits: Callable[[ToldWorkflow], bool]
    act: Callable[[Workflow, str | None], object]
    changed: Callable[[ToldWorkflow, ToldWorkflow], int]
    asks: bool = False  # those of its jobs that run are asked, and go on for a while


_CANCEL = _Action(
    "cancel",
    "cancelled",
    lambda job: not job.state.final and job.wish is not Wish.CANCEL,
    lambda workflow, reason: workflow.cancel(reason),
    lambda before, after: _number(after, JobState.CANCELLED) - _number(before, JobState.CANCELLED),
    asks=True,
)
_PAUSE = _Action(
    "pause",
    "paused",
    lambda job: not job.state.final and job.state is not JobState.PAUSED and job.wish is None,
    lambda workflow, reason: workflow.pause(reason),
    lambda before, after: _number(after, JobState.PAUSED) - _number(before, JobState.PAUSED),
    asks=True,
)
_RESUME = _Action(
    "resume",
    "resumed",
    lambda job: job.state is JobState.PAUSED or job.wish is Wish.PAUSE,
    lambda workflow, _: workflow.resume(),
    lambda before, after: _number(before, JobState.PAUSED) - _number(after, JobState.PAUSED),
)
_REPLAY = _Action(
    "replay",
    "replayed",
    lambda job: job.state in _DEAD,
    lambda workflow, reason: workflow.replay(reason),
    lambda before, after: _number(before, *_DEAD) - _number(after, *_DEAD),
)


def cancel(
    ids: WorkflowIds, reason: Reason = None, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Cancel workflows with all their jobs: waiting ones at once, running ones by asking their worker."""
    _run(_CANCEL, ids, reason, team, url, as_json)


def pause(
    ids: WorkflowIds, reason: Reason = None, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Hold workflows with all their jobs until they are resumed; the workers of running ones are asked."""
    _run(_PAUSE, ids, reason, team, url, as_json)


def resume(ids: WorkflowIds, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let paused workflows go on, with all their jobs that are paused."""
    _run(_RESUME, ids, None, team, url, as_json)


def replay(
    ids: WorkflowIds, reason: Reason = None, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Run again what did not succeed of workflows that have ended; what has succeeded is kept."""
    _run(_REPLAY, ids, reason, team, url, as_json)


def _run(action: _Action, ids: Sequence[str], reason: str | None, team: str | None, url: str, as_json: bool) -> None:
    with app_at(url, team=team) as app:
        found, missing = _found(app, ids)
        before = [told_workflow(workflow) for workflow in found]
        if found:
            note(app, f"workflow.{action.verb}", teams_of(before), reason=reason)
        refused = [_refused(action, workflow, reason) for workflow in found]
        after = [_told_again(workflow, seen) for workflow, seen in zip(found, before, strict=True)]
    if as_json:
        say_json({"workflows": list(map(_change, before, after)), "missing": missing})
    else:
        for was, is_now, why in zip(before, after, refused, strict=True):
            say(f"{was.id} {_told(action, was, is_now, why)}")
    for text in missing:
        complain(str(JobNotFound(text)))
    if missing:
        raise typer.Exit(_MISSING)


def _found(app: App, ids: Sequence[str]) -> tuple[list[Workflow], list[str]]:
    """Return the workflows with these *ids*, each once, and the ids that no job has."""
    workflows: dict[UUID, Workflow] = {}
    missing: list[str] = []
    for text in ids:
        try:
            workflow = find_workflow(app, text)
        except JobNotFound:
            missing.append(text)
        else:
            workflows[workflow.id] = workflow
    return list(workflows.values()), missing


def _refused(action: _Action, workflow: Workflow, reason: str | None) -> str | None:
    """Act on *workflow*; return why it could not live again, if that was asked for and refused."""
    try:
        action.act(workflow, reason)
    except JobNotFound:
        pass  # gone in the meantime, with nothing left to act on
    except ReplayRefused as error:
        return str(error).partition(": ")[2]
    return None


def _told_again(workflow: Workflow, seen: ToldWorkflow) -> ToldWorkflow:
    """Return *workflow* as it is now; if it is gone, as it was *seen*."""
    try:
        workflow.refresh()
    except JobNotFound:
        return seen
    return told_workflow(workflow)


def _number(workflow: ToldWorkflow, *states: JobState) -> int:
    """Return how many of its jobs are in any of these *states*."""
    return sum(workflow.counts.get(state, 0) for state in states)


def _told(action: _Action, before: ToldWorkflow, after: ToldWorkflow, refused: str | None) -> str:
    """Return what became of a workflow, and of how many of its jobs."""
    if not action.fits(before):
        return f"{before.standing}, so it can't be {action.done}"
    if refused is not None:
        return f"{after.standing}, because {refused}"
    return "; ".join(filter(None, [after.standing, _of_its_jobs(action, before, after)]))


def _of_its_jobs(action: _Action, before: ToldWorkflow, after: ToldWorkflow) -> str:
    """Return how many of its jobs were acted on, and how many are left, which have been asked."""
    changed = max(0, action.changed(before, after))
    asked = _number(after, *_AT_WORK) if action.asks else 0
    of_all = f" of its {counted(sum(after.counts.values()), 'job')}"
    told = [f"{changed:,}{of_all} {action.done}"] if changed else []
    if asked:
        told.append(f"{asked:,}{'' if told else of_all} asked to stop")
    return ", ".join(told)


def _change(before: ToldWorkflow, after: ToldWorkflow) -> dict[str, object]:
    return {
        "id": str(before.id),
        "before": before.state,
        "state": after.state,
        "counts": counts_document(after.counts),
    }
