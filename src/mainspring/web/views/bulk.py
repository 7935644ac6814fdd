"""Many jobs put right at once: those that were chosen on a page, or all that fit what the page was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.errors import InvalidValue
from mainspring.job_handle import id_of
from mainspring.model.job import Job, JobState
from mainspring.model.text import counted
from mainspring.model.token import Role
from mainspring.service import said_by
from mainspring.store.protocol import JobFilter
from mainspring.web.pages import Pages, Visit
from mainspring.web.views.jobs import ALLOWED, DEEDS, DONE, wanted_of

pages = Pages()

MOST = 10_000
"""Jobs that are counted, and acted on, at once."""

_BATCH = 500
_CHOSEN = 1_000
_SHOWN = 20
_LOOKS = 20
"""How often it is looked for jobs in one state, each time among so many as can be looked at in no time."""

_USUAL = ALLOWED | {"replay": {JobState.FAILED}}
"""The states that are meant where the page was asked for none: whoever cancelled something has meant it."""


class Many(msgspec.Struct):
    """Jobs that something is to be done about: those that are in a state for it, and how many of the chosen are not."""

    deed: str
    back: str
    all: bool
    jobs: list[Job]
    left: int = 0
    more: bool = False  # whether there may be more than were looked for


@pages.post("/jobs/choose", needs(Role.SUBMITTER))
def choose_many(visit: Visit) -> Response:
    """Ask whether it is meant, saying of how many jobs."""
    many = _many(visit)
    if not many.all and not visit.form.all("job"):
        return visit.go(many.back, "Choose jobs first.")
    newest = max((job.id for job in many.jobs), default=None)
    return visit.show("bulk.html", many=many, newest=newest, shown=many.jobs[:_SHOWN] if many.all else many.jobs)


@pages.post("/jobs/bulk", needs(Role.SUBMITTER, records="job.bulk"))
def act_on_many(visit: Visit) -> Response:
    """Do something about many jobs: what can't be done about one is left."""
    many, reason = _many(visit), visit.form.words("reason")
    chosen = dict(parse_qsl(urlsplit(many.back).query)) if many.all else None
    visit.caller.record(f"{len(many.jobs)} jobs", deed=many.deed, reason=reason, match=chosen)
    done = sum(
        _acted(visit, many.deed, many.jobs[start : start + _BATCH], reason)
        for start in range(0, len(many.jobs), _BATCH)
    )
    left = len(many.jobs) + many.left - done
    words = f"{counted(done, 'job')} {DONE[many.deed]}." + (f" {left:,} could not be." if left else "")
    return visit.go(many.back, words + (" There are more that fit." if many.more else ""))


def _many(visit: Visit) -> Many:
    """Return what is to be done about which jobs, and where to go then."""
    deed, back = visit.form["deed"], visit.form["back"]
    if deed not in DEEDS:
        raise InvalidValue(f"expected one of {', '.join(DEEDS)}, got: {deed!r}")
    many = Many(deed, back if back.startswith("/jobs") else "/jobs", visit.form["all"] == "yes", [])
    if many.all:
        _find(visit, many)
    else:
        ids = [id_of(text) for text in visit.form.all("job")[:_CHOSEN]]
        many.jobs = [job for job in visit.app.client.find(ids).values() if job.state in ALLOWED[deed]]
        many.left = len(ids) - len(many.jobs)
    return many


def _find(visit: Visit, many: Many) -> None:
    """Look for all jobs that fit what the page was asked for, none of which is newer than when it was asked."""
    match = visit.app.client.match(wanted_of(dict(parse_qsl(urlsplit(many.back).query))))
    newest = visit.form["newest"]
    before = UUID(int=id_of(newest).int + 1) if newest else None
    states = _USUAL[many.deed] if match.state is None else {match.state} & ALLOWED[many.deed]
    for state in sorted(states):
        more = _look_for(visit, replace(match, state=state), before, many.jobs)
        many.more = many.more or more


def _look_for(visit: Visit, match: JobFilter, before: UUID | None, found: list[Job]) -> bool:
    """Add jobs to those that were *found*, and return whether there may be more."""
    for _ in range(_LOOKS):
        if len(found) >= MOST:
            return True
        seen = visit.app.client.look(match, before, min(_BATCH, MOST - len(found)))
        found += seen.jobs
        before = seen.before
        if before is None:
            return False
    return True


def _acted(visit: Visit, deed: str, jobs: Sequence[Job], reason: str | None) -> int:
    """Do it, and return about how many of *jobs* it was done, or their workers were asked."""
    store, ids = visit.app.client.store, [job.id for job in jobs]
    match deed:
        case "pause":
            after = store.pause(ids, said_by(visit.caller.actor, reason))
        case "resume":
            after = store.resume(ids)
        case "replay":
            after = store.replay(ids, reason)
        case _:
            after = store.cancel(ids, reason)
    return sum(state in _COMES_TO[deed] for state in after.values())


_UNFINISHED = {state for state in JobState if not state.final}
_COMES_TO: dict[str, Any] = {
    "cancel": {JobState.CANCELLED, JobState.RUNNING},
    "pause": {JobState.PAUSED, JobState.RUNNING},
    "resume": _UNFINISHED - {JobState.PAUSED},
    "replay": _UNFINISHED,
}
"""The states in which jobs are then; one that runs until its worker has heard of it."""
