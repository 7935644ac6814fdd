"""Many jobs put right at once: those that were chosen on a page, or all that fit what the page was asked for."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.errors import InvalidValue
from mainspring.job_handle import id_of
from mainspring.model.job import UNFINISHED, Job, JobState
from mainspring.model.text import counted, shortened
from mainspring.model.token import Role
from mainspring.service import said_by
from mainspring.store.protocol import JobFilter
from mainspring.web.forms import check_plain
from mainspring.web.pages import Pages, Visit
from mainspring.web.views.jobs import ALLOWED, DEEDS, DONE, wanted_of

pages = Pages()

MOST = 10_000
"""Jobs that are counted, and acted on, at once: their ids must fit into a form."""

_BATCH = 500
_CHOSEN = 1_000
_SHOWN = 20
_LOOKS = 20
"""How often it is looked for jobs in one state, each time among so many as can be looked at in no time."""

_ID = 16
"""Bytes of an id."""

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
    deed, back = _asked_for(visit)
    many = Many(deed, back, visit.form["all"] == "yes", [])
    if many.all:
        _find(visit, many)
    elif ids := [id_of(text) for text in visit.form.all("job")[:_CHOSEN]]:
        many.jobs = _still(visit, ids, ALLOWED[deed])
        many.left = len(ids) - len(many.jobs)
    else:
        return visit.go(back, "Choose jobs first.")
    shown = many.jobs[:_SHOWN] if many.all else many.jobs
    return visit.show("bulk.html", many=many, ids=_packed(job.id for job in many.jobs), shown=shown)


@pages.post("/jobs/bulk", needs(Role.SUBMITTER, records="job.bulk"))
def act_on_many(visit: Visit) -> Response:
    """Do something about the jobs that were counted, and no other, whatever has happened since.

    What can't be done about one is left.
    """
    (deed, back), ids, reason = _asked_for(visit), _unpacked(visit.form["jobs"]), visit.form.words("reason")
    by_match = visit.form["all"] == "yes"
    states = _states(deed, _match(visit, back)) if by_match else ALLOWED[deed]
    visit.caller.record(
        counted(len(ids), "job"),
        deed=deed,
        reason=reason,
        match=dict(parse_qsl(urlsplit(back).query)) if by_match else None,
        jobs=None if by_match else [str(job_id) for job_id in ids],
    )
    done = 0
    for start in range(0, len(ids), _BATCH):
        jobs = _still(visit, ids[start : start + _BATCH], states)
        done += _acted(visit, deed, [job.id for job in jobs], reason)
    left = len(ids) - done
    words = f"{counted(done, 'job')} {DONE[deed]}." + (f" {left:,} could not be." if left else "")
    return visit.go(back, words + (" There are more that fit." if visit.form["more"] else ""))


def _asked_for(visit: Visit) -> tuple[str, str]:
    """Return what is to be done, and where to go then."""
    deed, back = visit.form["deed"], visit.form["back"]
    if deed not in DEEDS:
        raise InvalidValue(f"expected one of {', '.join(DEEDS)}, got: {deed!r}")
    return deed, back if back.startswith("/jobs") else "/jobs"


def _find(visit: Visit, many: Many) -> None:
    """Look for all jobs that fit what the page was asked for."""
    match = _match(visit, many.back)
    for state in sorted(_states(many.deed, match)):
        more = _look_for(visit, replace(match, state=state), many.jobs)
        many.more = many.more or more


def _match(visit: Visit, back: str) -> JobFilter:
    asked = dict(parse_qsl(urlsplit(back).query))
    check_plain(asked.values())
    return visit.app.client.match(wanted_of(asked))


def _states(deed: str, match: JobFilter) -> set[JobState]:
    return _USUAL[deed] if match.state is None else {match.state} & ALLOWED[deed]


def _still(visit: Visit, ids: Collection[UUID], states: Collection[JobState]) -> list[Job]:
    """Return those with these *ids* that are there for him, and in one of *states*."""
    return [job for job in visit.app.client.find(ids).values() if job.state in states]


def _look_for(visit: Visit, match: JobFilter, found: list[Job]) -> bool:
    """Add jobs to those that were *found*, and return whether there may be more."""
    before = None
    for _ in range(_LOOKS):
        if len(found) >= MOST:
            return True
        seen = visit.app.client.look(match, before, min(_BATCH, MOST - len(found)))
        found += seen.jobs
        before = seen.before
        if before is None:
            return False
    return True


def _packed(ids: Iterable[UUID]) -> str:
    """Return *ids* as a form carries them: as text each, so many would be larger than any form that is taken."""
    return urlsafe_b64encode(b"".join(job_id.bytes for job_id in ids)).decode()


def _unpacked(text: str) -> list[UUID]:
    """Return the ids that a form carries, each once."""
    try:
        given = urlsafe_b64decode(text)
        starts = range(0, len(given), _ID)
        return list(dict.fromkeys(UUID(bytes=given[start : start + _ID]) for start in starts))[:MOST]
    except ValueError:
        raise InvalidValue(f"expected the ids of jobs as our pages write them, got: {shortened(text)}") from None


def _acted(visit: Visit, deed: str, ids: Collection[UUID], reason: str | None) -> int:
    """Do it, and return about how many of the jobs it was done, or their workers were asked."""
    store = visit.app.client.store
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


_COMES_TO: dict[str, Any] = {
    "cancel": {JobState.CANCELLED, JobState.RUNNING},
    "pause": {JobState.PAUSED, JobState.RUNNING},
    "resume": set(UNFINISHED) - {JobState.PAUSED},
    "replay": set(UNFINISHED),
}
"""The states in which jobs are then; one that runs until its worker has heard of it."""
