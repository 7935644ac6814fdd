"""Inspect: the read side."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from msgspec.structs import asdict

from mainspring.model.attempt import Attempt
from mainspring.model.ids import first_id
from mainspring.model.job import Job, JobState
from mainspring.model.limits import Standing
from mainspring.model.team import stored_team
from mainspring.store import rows
from mainspring.store.database import Database, Row
from mainspring.store.protocol import JobFilter, JobPage, Lags
from mainspring.store.rows import to_job

LOOKED = 25_000
"""Rows of either table that one look goes through: some 20 ms for either database."""

FEW = 5_000
"""Unfinished jobs in one state that are all looked at, wherever they are among others."""

_FIRST, _LAST = UUID(int=0), UUID(int=(1 << 128) - 1)

_NEWEST = 1_000
"""Finished jobs at which to look for the pace of a queue, of whatever queue they are."""

_LATELY = timedelta(minutes=5)
_SAMPLE = 100
"""Jobs that make a pace: the last ones, so that it soon shows when an idle queue becomes busy."""

_ENOUGH = 5
"""Jobs without which there is no pace to tell."""


def get(db: Database, ids: Collection[UUID]) -> dict[UUID, Job]:
    """See `protocol.Inspects.get`."""
    found = {row[0]: to_job(row) for row in db.read("get_unfinished", ids=rows.ids(ids))}
    rest = [job_id for job_id in ids if job_id not in found]
    if rest:
        # Where the finished ones are kept by day, to look at every day costs more than a second question. Again at
        # the unfinished as well: one that is replayed in between would be found neither here nor there.
        found |= {row[0]: to_job(row) for row in db.read("get", ids=rows.ids(rest))}
    return found


def page(db: Database, match: JobFilter, before: UUID | None, limit: int) -> list[Job]:
    """See `protocol.Inspects.page`."""
    found: list[Job] = []
    while len(found) < limit:
        seen = look(db, match, before, limit - len(found))
        found += seen.jobs
        before = seen.before
        if before is None:
            break
    return found


def look(db: Database, match: JobFilter, before: UUID | None, limit: int) -> JobPage:
    """See `protocol.Inspects.look`."""
    wanted, rest = _wanted(match, before), None
    if limit < 1 or not (wanted["unfinished"] or wanted["finished"]):
        return JobPage([], None)
    found = _all_of_few(db, match, wanted, limit)
    if found is None:
        way = _way(match)
        if match != JobFilter():
            rest = _look_back(db, way, wanted)
        found = db.read(f"page{way}", limit=limit, **wanted | ({} if rest is None else {"first": rest}))
    jobs = [to_job(row) for row in found]
    return JobPage(jobs, jobs[-1].id if len(jobs) == limit else rest)


def _wanted(match: JobFilter, before: UUID | None) -> dict[str, Any]:
    """Return what the queries ask for: from which id to which, in which tables, and what it is to be like."""
    ended = match.finished_since is not None or match.finished_until is not None
    return {
        **{name: value for name, value in asdict(match).items() if name not in ("since", "until")},
        "nobodys": match.team is not None,
        "first": _FIRST if match.since is None else first_id(match.since),
        # By ids only for when it was made: one that has ended by then may be as new by its id as clocks are wrong.
        "before": min(before or _LAST, _LAST if match.until is None else first_id(match.until)),
        "unfinished": not ended and (match.state is None or not match.state.final),
        "finished": match.state is None or match.state.final,
    }


def _all_of_few(db: Database, match: JobFilter, wanted: dict[str, Any], limit: int) -> list[Row] | None:
    """Look at all unfinished jobs in the wanted state, and return those that fit; None where these are too many."""
    if match.state is None or match.state.final:
        return None
    ((jobs,),) = db.read("few", state=match.state, most=FEW + 1)
    if jobs > FEW:
        return None
    found = db.read("page_few", limit=limit, most=FEW + 1, **wanted)
    # There may have come to be more since they were counted.
    return None if found[0][0] > FEW else [row[1:] for row in found if row[1] is not None]


def _way(match: JobFilter) -> str:
    """Return by which queries jobs are looked for, each of which walks another index from the newest on."""
    if stored_team(match.team) is not None:
        return "_of"
    return "_ended" if match.state in (JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED) else ""


def _look_back(db: Database, way: str, wanted: dict[str, Any]) -> UUID | None:
    """Return the id down to which a look goes; None when there is no more than it may look at."""
    for (last,) in db.read(f"look_back{way}", looked=LOOKED, **wanted):
        return cast("UUID", last)
    return None


def now(db: Database) -> datetime:
    """See `protocol.Inspects.now`."""
    ((told,),) = db.read("now")
    return cast("datetime", told)


def jobs_ahead(db: Database, job_id: UUID, most: int, tasks: Collection[str] | None) -> int:
    """See `protocol.Inspects.jobs_ahead`."""
    known = None if tasks is None else rows.document(tasks)
    ((ahead,),) = db.read("jobs_ahead", job_id=job_id, most=most, tasks=known)
    return int(ahead)


def waiting_ahead(db: Database, job_id: UUID, most: int) -> int:
    """See `protocol.Inspects.waiting_ahead`."""
    ((ahead,),) = db.read("waiting_ahead", job_id=job_id, most=most)
    return int(ahead)


def pace(db: Database, queue: str) -> timedelta | None:
    """See `protocol.Inspects.pace`."""
    ((finished, first, now),) = db.read("pace", queue=queue, newest=_NEWEST, lately=_LATELY, most=_SAMPLE)
    return cast("timedelta", (now - first) / finished) if finished >= _ENOUGH else None


def limit(db: Database, key: str) -> Standing | None:
    """See `protocol.Inspects.limit`."""
    for _, *row in db.read("look_at_limits", keys=rows.document([key])):
        return Standing(*row)
    return None


def slot_holders(db: Database, key: str, limit: int) -> list[UUID]:
    """See `protocol.Inspects.slot_holders`."""
    return [job_id for (job_id,) in db.read("slot_holders", key=key, limit=max(0, limit))]


def lags(db: Database) -> Lags:
    """See `protocol.Inspects.lags`."""
    return Lags(promote=_late(db.read("next_due")), fire=_late(db.read("next_fire")))


def _late(waits: Sequence[Row]) -> timedelta:
    """Return for how long something has been due, by what a query says of when the first will be."""
    return max(timedelta(0), timedelta(microseconds=-waits[0][0])) if waits else timedelta(0)


def counts(db: Database) -> dict[str, dict[JobState, int]]:
    """See `protocol.Inspects.counts`."""
    table: dict[str, dict[JobState, int]] = {}
    for queue, state, jobs in db.read("counts"):
        table.setdefault(queue, {})[state] = jobs
    return table


def attempts(db: Database, job_id: UUID) -> list[Attempt]:
    """See `protocol.Inspects.attempts`."""
    return [Attempt(*row) for row in db.read("attempts", ids=rows.ids([job_id]))]
