"""Enqueue: store requests as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from uuid import UUID

from mainspring.errors import InvalidValue, StoreUnavailable
from mainspring.model.job import IfTaken, NewJob
from mainspring.store import idempotency, rows, turns
from mainspring.store.callers import driver_connection
from mainspring.store.chunks import chunks
from mainspring.store.database import DUE, Database, Runner
from mainspring.store.keys import Changed, changed_before, stand_ins
from mainspring.store.protocol import OWN
from mainspring.store.transaction import check_outside

_ROUNDS = 10

_LARGE = 50_000
"""Jobs that are written within a second or so: for no longer are others of their fair key to wait."""

Turns = Mapping[UUID, int]
"""By their ids, the turns of those jobs that have one."""

NONE: Turns = MappingProxyType({})


def enqueue(db: Database, jobs: Sequence[NewJob], conn: object = OWN) -> list[UUID]:
    """Store *jobs*, all or none. See `protocol.Enqueues.enqueue`."""
    if not jobs:
        return []
    _check_distinct(jobs)
    changed: Changed = {}
    keyed = any(job.key or job.idempotency_key for job in jobs)
    pieces = chunks(jobs, _characters)
    # In a transaction of the caller's, or for a key that another may have, nobody knows yet when or whether a job will
    # stand in its line; and to keep the line locked until then, or while a large batch is written, would hold up all
    # others who join it.
    line_up = conn is OWN and not keyed and len(jobs) <= _LARGE and any(job.fair for job in jobs)
    topics = {topic for job in jobs for topic in topics_of(job, has_turn=line_up)}

    def work(runner: Runner) -> dict[UUID, UUID]:
        if keyed:
            return _place_once(runner, jobs, changed)
        return _place(runner, pieces, changed, turns.take(runner, jobs) if line_up else NONE)

    if conn is not OWN:
        standing = db.join(driver_connection(conn), work, topics, steps=keyed or len(pieces) > 1)
    else:
        check_outside()
        alone = len(pieces) == 1 and not line_up and not (keyed and any(map(_writes_twice, jobs)))
        standing = (db.attempt if alone else db.transact)(work)
        db.wake(topics)
    return [standing.get(job.id, job.id) for job in jobs] if standing else [job.id for job in jobs]


def _writes_twice(job: NewJob) -> bool:
    return job.idempotency_key is not None or job.if_taken is not IfTaken.RETURN


def _place_once(tx: Runner, jobs: Sequence[NewJob], changed: Changed) -> dict[UUID, UUID]:
    """Store those of *jobs* that were not asked for before; return, for each other, the id that stands for it."""
    firsts: dict[str, NewJob] = {}
    for job in jobs:
        if job.idempotency_key:
            firsts.setdefault(job.idempotency_key, job)
    repeats, freed = idempotency.take(tx, firsts.values()) if firsts else ({}, set())
    standing = repeats | changed_before(tx, changed)
    first_of = {job.id: firsts[job.idempotency_key].id for job in jobs if job.idempotency_key}
    new = [job for job in jobs if job.id not in standing and first_of.get(job.id, job.id) == job.id]
    if new:
        standing |= _place(tx, chunks(new, _characters), changed)
    given = freed | {job_id for job_id, stand_in in standing.items() if stand_in != job_id} - repeats.keys()
    idempotency.keep(tx, [job for job in firsts.values() if job.id in given], standing)
    return standing | {job_id: standing.get(first, first) for job_id, first in first_of.items()}


def _place(
    runner: Runner, pieces: Sequence[Sequence[NewJob]], changed: Changed, turns: Turns = NONE
) -> dict[UUID, UUID]:
    """Store jobs; return, for each that was not stored anew, the id of the job that stands for it."""
    firsts = accumulate(map(len, pieces), initial=0)
    refused = [
        refused for piece, first in zip(pieces, firsts, strict=False) for refused in insert(runner, piece, first, turns)
    ]
    return _stand_ins(runner, refused, changed) if refused else {}


def insert(runner: Runner, jobs: Sequence[NewJob], first: int = 0, turns: Turns = NONE) -> list[NewJob]:
    """Store *jobs*, the first of which is number *first* of its batch; return those that were there or had no room."""
    if runner.in_doubt or any(job.key for job in jobs):
        return _insert_unless_taken(runner, jobs, first, turns)
    # Nothing can be in the way of new ids, so the database need not look before each row.
    runner.run("enqueue", jobs=rows.new_jobs(jobs, turns, {}), first=first)
    return []


def _insert_unless_taken(runner: Runner, jobs: Sequence[NewJob], first: int, turns: Turns) -> list[NewJob]:
    # After a lost reply the jobs may be stored, and may even have run and finished.
    stored = known(runner, (job.id for job in jobs)) if runner.in_doubt else set()
    missing = [job for job in jobs if job.id not in stored]
    stored |= {
        job_id for (job_id,) in runner.run("enqueue_unless_taken", jobs=rows.new_jobs(missing, turns, {}), first=first)
    }
    return [job for job in jobs if job.id not in stored]


def _characters(job: NewJob) -> int:
    return len(job.payload)


def known(runner: Runner, ids: Iterable[UUID]) -> set[UUID]:
    """Return those of *ids* that jobs have, unfinished or finished."""
    return {row[0] for row in runner.run("get", ids=rows.ids(ids))}


def _stand_ins(runner: Runner, refused: list[NewJob], changed: Changed) -> dict[UUID, UUID]:
    """Return, for each job that was not stored anew, the id of the job that stands for it.

    That is the unfinished job with its key, or the job itself when it was stored before. The holder of a key may
    finish between our two looks; then the key is free and we try again.
    """
    standing: dict[UUID, UUID] = {}
    for _ in range(_ROUNDS):
        standing |= {job_id: job_id for job_id in known(runner, (job.id for job in refused))}
        standing |= stand_ins(runner, [job for job in refused if job.id not in standing], changed)
        left = [job for job in refused if job.id not in standing]
        refused = insert(runner, left) if left else []
        if not refused:
            return standing
    raise StoreUnavailable(f"the key {refused[0].key!r} changed hands {_ROUNDS} times while we enqueued; try again")


def topics_of(job: NewJob, *, has_turn: bool = False) -> tuple[str, ...]:
    """Return who should hear that *job* is stored, with its turn already or not."""
    if job.run_at is not None or job.expires is not None or (job.fair is not None and not has_turn):
        return DUE, job.queue  # the database's clock says whether that time has come, and when it is over
    return (DUE,) if job.delay else (job.queue,)


def _check_distinct(jobs: Sequence[NewJob]) -> None:
    if len({job.id for job in jobs}) < len(jobs):
        raise InvalidValue("expected each job of a batch to have an id of its own, got one id twice")
