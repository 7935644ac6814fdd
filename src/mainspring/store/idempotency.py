"""Idempotency keys: a request that is repeated gets the job of the first, until some time after that has finished."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from mainspring.model.job import NewJob
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import Runner


def take(tx: Runner, jobs: Collection[NewJob]) -> tuple[dict[UUID, UUID], set[UUID]]:
    """Take the idempotency keys of *jobs*, each of which has another, until the end of the transaction.

    Return, for each that repeats an earlier request, the id of the job that stands for it; and the ids of those whose
    key still names a job that counts no longer.
    """
    own = {job.idempotency_key: job.id for job in jobs}
    holders: dict[str | None, UUID] = {}
    for piece in chunks(list(jobs), _characters):
        holders |= dict(tx.run("take_idempotency", asked=rows.idempotency((job, job.id) for job in piece)))
    others = [key for key, holder in holders.items() if holder != own[key]]
    found = tx.run("find_idempotency", keys=rows.document(others)) if others else []
    in_force = {key for (key,) in found}
    repeats = {own[key]: holders[key] for key in in_force}
    return repeats, {own[key] for key in others if key not in in_force}


def keep(tx: Runner, jobs: Collection[NewJob], standing: Mapping[UUID, UUID]) -> None:
    """Give the keys of *jobs* to those jobs, or to the ones that are *standing* for them."""
    for piece in chunks(list(jobs), _characters) if jobs else []:
        tx.run("keep_idempotency", asked=rows.idempotency((job, standing.get(job.id, job.id)) for job in piece))


def _characters(job: NewJob) -> int:
    return len(job.idempotency_key or "")
