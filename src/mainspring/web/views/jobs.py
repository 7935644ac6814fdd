"""Jobs: found, looked at, and put right, one by one or many at once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.datastructures import URL
from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.documents.jobs import attempt_document, job_document, step_document
from mainspring.errors import InvalidValue, MainspringError
from mainspring.job_handle import JobHandle
from mainspring.model.job import Job, JobState
from mainspring.model.text import counted
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit

pages = Pages()

_PAGE = 50
_LAST_LINES = 500
_MOST_AT_ONCE = 1_000
_LOOK = needs(Role.VIEWER)

DEEDS = ("cancel", "pause", "resume", "replay")
_DONE = {"cancel": "cancelled", "pause": "paused", "resume": "resumed", "replay": "replayed"}
_UNFINISHED = {state for state in JobState if not state.final}
_ALLOWED = {
    "cancel": _UNFINISHED,
    "pause": _UNFINISHED - {JobState.PAUSED},
    "resume": {JobState.PAUSED},
    "replay": {JobState.FAILED, JobState.EXPIRED, JobState.CANCELLED},
}
"""In which states a page offers what; the model decides what comes of it."""


@pages.get("/jobs", _LOOK)
def list_jobs(visit: Visit) -> Response:
    """Show jobs, newest first, by what is asked for."""
    wanted = {name: visit.asked(name) for name in ("state", "queue", "task", "key")}
    before = visit.asked("before")
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value}
    found = [one.snapshot for one in visit.app.jobs(**given, before=before or None, limit=_PAGE + 1)]
    shown = found[:_PAGE]
    older = None
    if len(found) > _PAGE:
        older = str(visit.request.url.include_query_params(before=shown[-1].id).replace(scheme="", netloc=""))
    return visit.show(
        "jobs.html",
        jobs=shown,
        wanted=wanted,
        older=older,
        newest=not before,
        states=list(JobState),
        deeds=list(DEEDS) if visit.may("submitter") else [],
        here=_here(visit.request.url),
    )


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
        steps=[step_document(seen, one, visit.caller.keys) | {"at": one.at} for one in job.stored_steps()],
        lines=_last_lines(job, seen),
        reasons=[] if seen.state.final else job.explain(),
        parents=[kin[edge.parent] for edge in seen.beginnings.parents if edge.parent in kin],
        deeds=[deed for deed, states in _ALLOWED.items() if seen.state in states] if visit.may("submitter") else [],
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
        job, reason = visit.app.job(visit.path["job_id"]), visit.form["reason"] or None
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
    return f"It is {_DONE[deed]}, and now {state}."


for _deed in DEEDS:
    _acts(_deed)


@pages.post("/jobs/choose", needs(Role.SUBMITTER))
def choose_many(visit: Visit) -> Response:
    """Ask whether it is meant, saying of how many jobs."""
    deed, ids, back = _many(visit)
    if not ids:
        return visit.go(back, "Choose jobs first.")
    fitting = [job for job in visit.app.client.find(ids).values() if job.state in _ALLOWED[deed]]
    return visit.show("bulk.html", deed=deed, jobs=fitting, left=len(ids) - len(fitting), back=back)


@pages.post("/jobs/bulk", needs(Role.SUBMITTER, records="job.bulk"))
def act_on_many(visit: Visit) -> Response:
    """Do something about many jobs, one after the other: what can't be done about one is left."""
    deed, ids, back = _many(visit)
    reason = visit.form["reason"] or None
    visit.caller.record(f"{len(ids)} jobs", deed=deed, reason=reason)
    done = sum(_does(deed, visit, job_id, reason) for job_id in visit.app.client.find(ids))
    left = f" {len(ids) - done:,} could not be." if done < len(ids) else ""
    return visit.go(back, f"{counted(done, 'job')} {_DONE[deed]}.{left}")


def _many(visit: Visit) -> tuple[str, list[UUID], str]:
    """Return what is to be done about which jobs, and where to go then."""
    deed, back = visit.form["deed"], visit.form["back"]
    if deed not in DEEDS:
        raise InvalidValue(f"expected one of {', '.join(DEEDS)}, got: {deed!r}")
    ids = [_id(text) for text in visit.form.all("job")[:_MOST_AT_ONCE]]
    return deed, ids, back if back.startswith("/jobs") else "/jobs"


def _does(deed: str, visit: Visit, job_id: UUID, reason: str | None) -> bool:
    try:
        _do(deed, visit.app.job(job_id), visit, reason)
    except MainspringError:
        return False
    return True


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidValue(f"expected the id of a job, got: {text[:50]!r}") from None


def _here(url: URL) -> str:
    return f"{url.path}?{url.query}" if url.query else url.path
