"""How a job looks in a listing."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from mainspring.cli.output import cell
from mainspring.cli.times import ago, since, span, until
from mainspring.documents.told import ToldJob
from mainspring.explain import Reason
from mainspring.model.job import JobState
from mainspring.model.journal import Reached

COLOURS = {
    JobState.BLOCKED: "magenta",
    JobState.SCHEDULED: "blue",
    JobState.READY: "cyan",
    JobState.RUNNING: "bold cyan",
    JobState.RETRYING: "yellow",
    JobState.PAUSED: "magenta",
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "bold red",
    JobState.CANCELLED: "dim",
    JobState.EXPIRED: "dim",
}


def state_of(job: ToldJob) -> Text:
    return Text(job.state, COLOURS[job.state])


def when(job: ToldJob, now: datetime) -> str:
    """Return what time means to a job in its state: until it is due, since when it waits, runs or has ended."""
    if job.state in (JobState.SCHEDULED, JobState.RETRYING):
        return until(job.run_at, now)
    if job.state is JobState.RUNNING and job.started_at is not None:
        return since(job.started_at, now)
    return ago(job.finished_at or job.created_at, now)


def how_far(reached: Reached | None) -> str:
    """Return how far a job is, in as few letters as possible."""
    if reached is None:
        return ""
    if reached.total:
        return f"{max(0.0, min(1.0, reached.done / reached.total)):.0%}"
    return f"{reached.done:g}"


def reason_told(reason: Reason) -> Group:
    """Return a reason why a job does not run, with how long it may last, and what lifts it on a line of its own."""
    lasts = "" if reason.estimate is None else f" (about {span(reason.estimate)})"
    return Group(cell(f"{reason.sentence}{lasts}"), Padding(cell(reason.lift, "dim"), (0, 0, 0, 2), expand=False))
