"""Jobs: found, looked at, and put right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from starlette.responses import Response

from mainspring.api.policy import Where, needs
from mainspring.api.problems import Problem
from mainspring.client import Match
from mainspring.documents.jobs import attempt_document, job_document, opened_step, step_document
from mainspring.errors import InvalidValue
from mainspring.job_handle import JobHandle, id_of
from mainspring.model.duration import instant_or_ago
from mainspring.model.ids import made_at
from mainspring.model.job import UNFINISHED, Job, JobState
from mainspring.model.lifecycle import REPLAYABLE
from mainspring.model.token import ALL_TEAMS, Role
from mainspring.store.protocol import JobFilter
from mainspring.web.look import picked
from mainspring.web.pages import Pages, Visit, address_of

pages = Pages()

_PAGE = 50
_LAST_LINES = 500
_TIMES = {"since", "until", "finished_since", "finished_until"}
_LOOK = needs(Role.VIEWER)

DEEDS = ("cancel", "pause", "resume", "replay")
DONE = {"cancel": "cancelled", "pause": "paused", "resume": "resumed", "replay": "replayed"}
ALLOWED = {
    "cancel": set(UNFINISHED),
    "pause": set(UNFINISHED) - {JobState.PAUSED},
    "resume": {JobState.PAUSED},
    "replay": set(REPLAYABLE),
}
"""In which states a page offers what; the model decides what comes of it."""


@pages.get("/jobs", _LOOK)
def list_jobs(visit: Visit) -> Response:
    """Show jobs, newest first, by what is asked for; of all teams to who may see what is anybody's."""
    whole, sees_all = visit.asked("team") == ALL_TEAMS, visit.may("viewer", Where.EVERYWHERE)
    if whole and not sees_all:
        raise Problem(403, "role-too-small", "expected the role viewer in team *, got: none")
    app = visit.caller.whole if whole else visit.app
    asked, before = visit.request.query_params, visit.asked("before")
    form: dict[str, Any] = {"whole": whole, "sees_all": sees_all, "states": list(JobState)}
    try:
        match = app.client.match(wanted_of(asked))
    except InvalidValue as error:
        return visit.show("jobs.html", 422, wrong=str(error), typed=_typed(asked), chosen=True, **form)
    found = app.client.look(match, id_of(before) if before else None, _PAGE + 1)
    shown = found.jobs[:_PAGE]
    rest = shown[-1].id if len(found.jobs) > _PAGE else found.before
    return visit.show(
        "jobs.html",
        wrong=None,
        jobs=shown,
        typed=_typed(asked) | {name: picked(getattr(match, name)) for name in _TIMES},
        chosen=match != JobFilter(),
        older=None if rest is None else address_of(visit.request.url.include_query_params(before=rest)),
        looked=made_at(rest) if rest is not None and rest == found.before else None,
        newest=not before,
        deeds=list(DEEDS) if visit.may("submitter") and not whole else [],
        here=address_of(visit.request.url),
        **form,
    )


def wanted_of(asked: Mapping[str, str]) -> Match:
    """Return which jobs an address asks for. A time without a zone is one of UTC, as pages show them."""
    wanted: dict[str, Any] = {name: text for name in Match.__annotations__ if (text := asked.get(name, "").strip())}
    wanted |= {name: instant_or_ago(wanted[name], name, UTC) for name in _TIMES & wanted.keys()}
    given: Match = wanted  # type: ignore[assignment]
    return given


def _typed(asked: Mapping[str, str]) -> dict[str, str]:
    """Return what the form was filled with, sense or not."""
    return {name: asked.get(name, "").strip() for name in Match.__annotations__}


@pages.get("/jobs/{job_id:uuid}", _LOOK)
def show_job(visit: Visit) -> Response:
    """Show all that is known of a job."""
    job = visit.app.job(visit.path["job_id"])
    seen = job.snapshot
    kin = visit.app.client.find([edge.parent for edge in seen.beginnings.parents])
    return visit.show(
        "job.html",
        job=seen,
        document=job_document(seen, visit.caller.keys),
        failure=seen.failure,
        reached=seen.reached,
        attempts=[attempt_document(one) | {"failure": one.failure, "at": one} for one in job.attempts()],
        steps=[step_document(opened_step(seen, one, job.keys)) | {"is": one} for one in job.stored_steps()],
        lines=_last_lines(job, seen),
        reasons=[] if seen.state.final else job.explain(),
        parents=[kin[edge.parent] for edge in seen.beginnings.parents if edge.parent in kin],
        deeds=[deed for deed, states in ALLOWED.items() if seen.state in states] if visit.may("submitter") else [],
    )


def _last_lines(job: JobHandle[Any], seen: Job) -> list[Any]:
    """Return what the last attempt has said last."""
    found: list[Any] = []
    after = (seen.fence, 0) if seen.fence else (0, 0)
    while page := job.log_page(after, 1_000):
        found = [*found, *page][-_LAST_LINES:]
        after = page[-1].fence, page[-1].number
        if len(page) < 1_000:
            break
    return found


def _acts(deed: str) -> None:
    """Make the page that a button of one job leads to."""

    @pages.post(f"/jobs/{{job_id:uuid}}/{deed}", needs(Role.SUBMITTER, records=f"job.{deed}"))
    def act(visit: Visit) -> Response:
        job, reason = visit.app.job(visit.path["job_id"]), visit.form.words("reason")
        visit.caller.record(job.id, reason=reason)
        state = _do(deed, job, visit, reason)
        return visit.go(f"/jobs/{job.id}", _told(deed, state))


def _do(deed: str, job: JobHandle[Any], visit: Visit, reason: str | None) -> JobState:
    match deed:
        case "pause":
            return job.pause(reason, by=visit.caller.actor)
        case "resume":
            return job.resume()
        case "replay":
            return job.replay(reason)
        case _:
            return job.cancel(reason)


def _told(deed: str, state: JobState) -> str:
    if state is JobState.RUNNING and deed in ("cancel", "pause"):
        return f"Its worker is asked to {deed} it."
    return f"It is {DONE[deed]}, and now {state}."


for _deed in DEEDS:
    _acts(_deed)
