"""`mainspring why`: what keeps a job from running."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import find
from mainspring.cli.jobs.look import reason_told, state_of
from mainspring.cli.jobs.told import told
from mainspring.cli.options import AsJson, JobId, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.documents.jobs import reason_document
from mainspring.documents.told import ToldJob
from mainspring.explain import Reason
from mainspring.model.job import JobState, Wish


def why(job_id: JobId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Say why a job is not running, for about how long, and what would let it."""
    with app_at(url, team=team) as app:
        found = find(app, job_id)
        reasons, job = found.explain(), told(found)
    if as_json:
        say_json({"id": str(job.id), "state": job.state, "reasons": [reason_document(reason) for reason in reasons]})
    elif reasons:
        _show(reasons)
    else:
        say(_nothing(job))


def _show(reasons: list[Reason]) -> None:
    table = listing("Reason", "What it is, and what lifts it")
    table.columns[0].no_wrap = True
    table.columns[1].overflow = "fold"
    for reason in reasons:
        table.add_row(cell(reason.code), reason_told(reason))
    show(table)


def _nothing(job: ToldJob) -> str:
    if job.state.final:
        return f"It has finished: {state_of(job)}."
    because = f" ({job.reason})" if job.reason else ""
    match job.wish:
        case Wish.CANCEL:
            return f"It was asked to cancel{because}, and ends as soon as its handler looks."
        case Wish.PAUSE:
            return (
                f"It was asked to pause{because}: it stands still, or stops as soon as its handler looks. "
                f"Let it go on with `mainspring jobs resume {job.id}`."
            )
    if job.state is JobState.RUNNING:
        return "It is running."
    return "Nothing keeps it from running: it is next in its queue, and goes to the first worker that has room."
