"""Inspect: the read side."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from msgspec.structs import asdict

from mainspring.model.attempt import Attempt
from mainspring.model.job import Job, JobState
from mainspring.model.limits import Standing
from mainspring.model.team import stored_team
from mainspring.store import rows
from mainspring.store.database import Database, Row
from mainspring.store.protocol import JobFilter, Lags
from mainspring.store.rows import to_job

_NEWEST = 1_000
"""Finished jobs at which to look for the pace of a queue, of whatever queue they are."""

_LATELY = timedelta(minutes=5)
_SAMPLE = 100
"""Jobs that make a pace: the last ones, so that it soon shows when an idle queue becomes busy."""

_ENOUGH = 5
"""Jobs without which there is no pace to tell."""


def get(db: Database, ids: Collection[UUID]) -> dict[UUID, Job]:
    """See `protocol.Inspects.get`."""
    return {row[0]: to_job(row) for row in db.read("get", ids=rows.ids(ids))}


def page(db: Database, match: JobFilter, before: UUID | None, limit: int) -> list[Job]:
    """See `protocol.Inspects.page`."""
    if limit < 1:
        return []
    given = asdict(match) | {"before": before, "limit": limit}
    team = given.pop("team")
    stored = stored_team(team)
    if stored is None:
        found = db.read("page", nobodys=team is not None, **given)
    else:
        found = db.read("page_of", team=stored, **given)
    return [to_job(row) for row in found]


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
