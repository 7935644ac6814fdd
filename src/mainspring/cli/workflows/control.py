"""`mainspring workflows cancel`, `pause`, `resume` and `replay`: act on all jobs of a workflow together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.database import client_at
from mainspring.cli.note import note, teams_of
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import complain, say, say_json
from mainspring.cli.workflows.find import WorkflowIds, find_workflow
from mainspring.client import Client
from mainspring.documents.workflows import counts_document
from mainspring.errors import JobNotFound
from mainspring.model.job import Job, JobState, Wish
from mainspring.model.picture import Counts
from mainspring.model.text import counted
from mainspring.model.workflow import plan_of, standing
from mainspring.service import said_by
from mainspring.store import Store

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the jobs.")]

_MISSING = 1
_DEAD = (JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED)
_AT_WORK = (JobState.RUNNING, JobState.BLOCKED)
"""What jobs are that were asked: they run, or are workflows with jobs that do."""


@dataclass(frozen=True)
class _View:
    """A workflow at one moment, and how many of its jobs are in which state."""

    job: Job
    counts: Counts

    def number(self, *states: JobState) -> int:
        return sum(self.counts.get(state, 0) for state in states)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class _Action:
    """What can be done to a workflow.

    `fits` says whether it can be done to one; `changed` tells of how many jobs it was, by a look before and one after.
    """

    verb: str
    done: str
    fits: Callable[[Job], bool]
    act: Callable[[Store, Sequence[UUID], str | None], object]
    changed: Callable[[_View, _View], int]
    asks: bool = False  # those of its jobs that run are asked, and go on for a while


_CANCEL = _Action(
    "cancel",
    "cancelled",
    lambda job: not job.state.final and job.wish is not Wish.CANCEL,
    lambda store, ids, reason: store.cancel(ids, reason),
    lambda before, after: after.number(JobState.CANCELLED) - before.number(JobState.CANCELLED),
    asks=True,
)
_PAUSE = _Action(
    "pause",
    "paused",
    lambda job: not job.state.final and job.state is not JobState.PAUSED and job.wish is None,
    lambda store, ids, reason: store.pause(ids, said_by(None, reason)),
    lambda before, after: after.number(JobState.PAUSED) - before.number(JobState.PAUSED),
    asks=True,
)
_RESUME = _Action(
    "resume",
    "resumed",
    lambda job: job.state is JobState.PAUSED or job.wish is Wish.PAUSE,
    lambda store, ids, _: store.resume(ids),
    lambda before, after: before.number(JobState.PAUSED) - after.number(JobState.PAUSED),
)
_REPLAY = _Action(
    "replay",
    "replayed",
    lambda job: job.state in _DEAD,
    lambda store, ids, reason: store.replay(ids, reason),
    lambda before, after: before.number(*_DEAD) - after.number(*_DEAD),
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
    with client_at(url, team) as client:
        store = client.store
        jobs, missing = _found(client, ids)
        before = _views(store, jobs)
        if jobs:
            note(store.record_audit, f"workflow.{action.verb}", teams_of(jobs.values()), reason=reason)
            action.act(store, list(jobs), reason)
        after = _views(store, store.get(jobs) if jobs else {})
    if as_json:
        changes = [_change(before[job_id], after.get(job_id, before[job_id])) for job_id in jobs]
        say_json({"workflows": changes, "missing": missing})
    else:
        for job_id in jobs:
            say(f"{job_id} {_told(action, before[job_id], after.get(job_id, before[job_id]))}")
    for text in missing:
        complain(str(JobNotFound(text)))
    if missing:
        raise typer.Exit(_MISSING)


def _found(client: Client, ids: Sequence[str]) -> tuple[dict[UUID, Job], list[str]]:
    """Return the workflows with these *ids*, each once, and the ids that no job has."""
    jobs: dict[UUID, Job] = {}
    missing: list[str] = []
    for text in ids:
        try:
            job = find_workflow(client, text)
        except JobNotFound:
            missing.append(text)
        else:
            jobs[job.id] = job
    return jobs, missing


def _views(store: Store, jobs: Mapping[UUID, Job]) -> dict[UUID, _View]:
    counts = store.member_counts(jobs)
    return {job_id: _View(job, counts[job_id]) for job_id, job in jobs.items()}


def _told(action: _Action, before: _View, after: _View) -> str:
    """Return what became of a workflow, and of how many of its jobs."""
    if not action.fits(before.job):
        return f"{standing(before.job)}, so it can't be {action.done}"
    if action is _REPLAY and after.job.finished_at == before.job.finished_at:
        return f"{standing(after.job)}, because {_why_dead(before.job)}"
    return "; ".join(filter(None, [standing(after.job), _of_its_jobs(action, before, after)]))


def _of_its_jobs(action: _Action, before: _View, after: _View) -> str:
    """Return how many of its jobs were acted on, and how many are left, which have been asked."""
    changed = max(0, action.changed(before, after))
    asked = after.number(*_AT_WORK) if action.asks else 0
    of_all = f" of its {counted(after.total, 'job')}"
    told = [f"{changed:,}{of_all} {action.done}"] if changed else []
    if asked:
        told.append(f"{asked:,}{'' if told else of_all} asked to stop")
    return ", ".join(told)


def _why_dead(job: Job) -> str:
    """Return why a replay left a workflow as it was."""
    plan = plan_of(job)
    if plan is not None and plan.undo:
        return "what it had done was undone; enqueue another"
    if job.key is not None:
        return "an unfinished job has the same key"
    return "the workflow of which it is a part can't be replayed"


def _change(before: _View, after: _View) -> dict[str, object]:
    return {
        "id": str(before.job.id),
        "before": before.job.state,
        "state": after.job.state,
        "counts": counts_document(after.counts),
    }
