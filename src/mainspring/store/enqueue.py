"""Enqueue: store requests as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from uuid import UUID

from mainspring.errors import InvalidValue, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.store import rows
from mainspring.store.callers import driver_connection
from mainspring.store.chunks import chunks
from mainspring.store.database import DUE, Database, Runner
from mainspring.store.protocol import OWN
from mainspring.store.transaction import check_outside

_ROUNDS = 10


def enqueue(db: Database, jobs: Sequence[NewJob], conn: object = OWN) -> list[UUID]:
    """Store *jobs*, all or none. See `protocol.Enqueues.enqueue`."""
    if not jobs:
        return []
    _check_distinct(jobs)
    pieces = chunks(jobs, _characters)
    topics = {topic for job in jobs for topic in _topics(job)}
    if conn is not OWN:
        steps = len(pieces) > 1 or any(job.key for job in jobs)
        standing = db.join(driver_connection(conn), lambda tx: _place(tx, pieces), topics, steps=steps)
    else:
        check_outside()
        standing = (db.attempt if len(pieces) == 1 else db.transact)(lambda runner: _place(runner, pieces))
        db.wake(topics)
    return [standing.get(job.id, job.id) for job in jobs] if standing else [job.id for job in jobs]


def _place(runner: Runner, pieces: Sequence[Sequence[NewJob]]) -> dict[UUID, UUID]:
    """Store jobs; return, for each that was not stored anew, the id of the job that stands for it."""
    firsts = accumulate(map(len, pieces), initial=0)
    refused = [
        refused for piece, first in zip(pieces, firsts, strict=False) for refused in insert(runner, piece, first)
    ]
    return _stand_ins(runner, refused) if refused else {}


def insert(runner: Runner, jobs: Sequence[NewJob], first: int = 0) -> list[NewJob]:
    """Store *jobs*, the first of which is number *first* of its batch; return those that were there or had no room."""
    if runner.in_doubt or any(job.key for job in jobs):
        return _insert_unless_taken(runner, jobs, first)
    # Nothing can be in the way of new ids, so the database need not look before each row.
    runner.run("enqueue", jobs=rows.new_jobs(jobs), first=first)
    return []


def _insert_unless_taken(runner: Runner, jobs: Sequence[NewJob], first: int) -> list[NewJob]:
    # After a lost reply the jobs may be stored, and may even have run and finished.
    stored = known(runner, (job.id for job in jobs)) if runner.in_doubt else set()
    missing = [job for job in jobs if job.id not in stored]
    stored |= {job_id for (job_id,) in runner.run("enqueue_unless_taken", jobs=rows.new_jobs(missing), first=first)}
    return [job for job in jobs if job.id not in stored]


def _characters(job: NewJob) -> int:
    return len(job.payload)


def known(runner: Runner, ids: Iterable[UUID]) -> set[UUID]:
    """Return those of *ids* that jobs have, unfinished or finished."""
    return {row[0] for row in runner.run("get", ids=rows.ids(ids))}


def _stand_ins(runner: Runner, refused: list[NewJob]) -> dict[UUID, UUID]:
    """Return, for each job that was not stored anew, the id of the job that stands for it.

    That is the unfinished job with its key, or the job itself when it was stored before. The holder of a key may
    finish between our two looks; then the key is free and we try again.
    """
    standing: dict[UUID, UUID] = {}
    for _ in range(_ROUNDS):
        stored = known(runner, (job.id for job in refused))
        holders: dict[str | None, UUID] = dict(runner.run("holders", keys=rows.document(job.key for job in refused)))
        standing |= {job.id: holders[job.key] for job in refused if job.key in holders}
        standing |= {job_id: job_id for job_id in stored}
        left = [job for job in refused if job.id not in standing]
        if not left:
            return standing
        refused = insert(runner, left)
    raise StoreUnavailable(f"the key {refused[0].key!r} changed hands {_ROUNDS} times while we enqueued; try again")


def _topics(job: NewJob) -> tuple[str, ...]:
    if job.run_at is not None:
        return DUE, job.queue  # the database's clock says whether that time has come
    return (DUE,) if job.delay else (job.queue,)


def _check_distinct(jobs: Sequence[NewJob]) -> None:
    if len({job.id for job in jobs}) < len(jobs):
        raise InvalidValue("expected each job of a batch to have an id of its own, got one id twice")
