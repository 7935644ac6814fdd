"""Enqueue: store requests as jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from uuid import UUID

from mainspring.errors import InvalidValue, KeyTaken, StoreUnavailable
from mainspring.model.audit import Entry
from mainspring.model.job import IfTaken, NewJob
from mainspring.store import idempotency, rows
from mainspring.store.audit import append, named, of_standing
from mainspring.store.callers import driver_connection
from mainspring.store.chunks import chunks
from mainspring.store.database import Database, Runner
from mainspring.store.insert import NONE, Turns, Waiting, insert, known, topics_of
from mainspring.store.keys import Changed, changed_before, stand_ins
from mainspring.store.members import plant, plant_unlinked
from mainspring.store.parents import Outlook, link, look, look_later, marked
from mainspring.store.protocol import OWN
from mainspring.store.settle import apply
from mainspring.store.tell import LINK, leave
from mainspring.store.transaction import check_outside
from mainspring.store.turns import take as take_turns

_ROUNDS = 10

_LARGE = 50_000
"""Jobs that are written within a second or so: for no longer are others of their fair key to wait."""


def enqueue(
    db: Database,
    jobs: Sequence[NewJob],
    conn: object = OWN,
    members: Sequence[NewJob] = (),
    entries: Sequence[Entry] = (),
) -> list[UUID]:
    """Store *jobs*, all or none. See `protocol.Enqueues.enqueue`.

    *members* are those of the first, which is a workflow: they are stored if that is.
    """
    if not jobs:
        return []
    _check_distinct([*jobs, *members])
    batch = _Batch(jobs, members, entries, own=conn is OWN)
    if conn is OWN:
        check_outside()
        standing = (db.transact if batch.writes_often() else db.attempt)(batch.store)
        db.wake(batch.topics)
    else:
        standing = db.join(driver_connection(conn), batch.store, batch.topics, steps=batch.has_steps())
    return [standing.get(job.id, job.id) for job in jobs] if standing else [job.id for job in jobs]


class _Batch:
    """Jobs that are stored together, in a transaction of our *own* or of the caller's."""

    def __init__(self, jobs: Sequence[NewJob], members: Sequence[NewJob], entries: Sequence[Entry], own: bool) -> None:
        self._keyed = any(job.key or job.idempotency_key for job in jobs)
        self._related = bool(members) or any(job.parents for job in jobs)
        self._jobs = marked(jobs) if self._related else jobs
        self._members = members
        self._own = own
        self._pieces = chunks(self._jobs, _characters)
        self._entries = named(entries)
        self._changed: Changed = {}
        # In a transaction of the caller's, or for a key that another may have, nobody knows yet when or whether a job
        # will stand in its line; and to keep the line locked until then, or while a large batch is written, would hold
        # up all others who join it.
        self._lines_up = own and not self._keyed and len(jobs) <= _LARGE and any(job.fair for job in jobs)
        has_turn = self._lines_up
        self.topics = {topic for job in self._jobs if not job.members for topic in topics_of(job, has_turn=has_turn)}

    def has_steps(self) -> bool:
        """Return whether to store it takes more than one statement."""
        return self._keyed or self._related or len(self._pieces) > 1

    def writes_often(self) -> bool:
        """Return whether more than one of its statements write something."""
        if len(self._pieces) > 1 or self._lines_up or self._related or self._entries:
            return True
        return self._keyed and any(map(_writes_twice, self._jobs))

    def store(self, runner: Runner) -> dict[UUID, UUID]:
        """Store it, and return the id of the job that stands for each that was not stored anew."""
        standing, outlook = self._put(runner)
        if self._related:
            self._tie(runner, outlook, standing)
        if self._entries:
            append(runner, of_standing(self._entries, standing))
        return standing

    def _put(self, runner: Runner) -> tuple[dict[UUID, UUID], Outlook]:
        together = {job.id for job in self._jobs}
        find = partial(look if self._own else look_later, runner, together=together)
        if self._keyed:
            return _place_once(runner, self._jobs, self._changed, find)
        outlook = find(self._jobs)
        turns = take_turns(runner, self._jobs) if self._lines_up else NONE
        return _place(runner, self._pieces, self._changed, turns, outlook.waiting), outlook

    def _tie(self, runner: Runner, outlook: Outlook, standing: Mapping[UUID, UUID]) -> None:
        stored = {job.id for job in self._jobs if job.id not in standing}
        _check_parents_stored(self._jobs, stored, standing)
        members = self._members if self._jobs[0].id in stored else ()
        self.topics.update(_relate(runner, outlook.of(stored), members, self._own))


def repeats(db: Database, jobs: Sequence[NewJob]) -> set[UUID]:
    """See `protocol.Enqueues.repeats`."""
    held = {key for key, _ in db.read("holders", keys=rows.document(job.key for job in jobs if job.key))}
    asked = [job.idempotency_key for job in jobs if job.idempotency_key]
    known = {key for (key,) in db.read("find_idempotency", keys=rows.document(asked))}
    return {job.id for job in jobs if job.key in held or job.idempotency_key in known}


def _relate(tx: Runner, outlook: Outlook, members: Sequence[NewJob], own: bool) -> set[str]:
    """Link the jobs that were stored with their parents, and store *members*; return the topics to wake.

    What has to lock others is left for later where the transaction is not our *own*.
    """
    topics, ended = plant(tx, members) if own else plant_unlinked(tx, members)
    if not own:
        return topics | leave(tx, LINK, list(outlook.waiting))
    _, wakes = apply(tx, [*link(tx, outlook), *ended])
    return topics | wakes


def _check_parents_stored(jobs: Sequence[NewJob], stored: set[UUID], standing: Mapping[UUID, UUID]) -> None:
    """Refuse a child whose parent, of the same call, is not stored: it would wait for it for ever."""
    missing = {job.id: job for job in jobs if standing.get(job.id, job.id) != job.id}
    for job in jobs:
        if job.id in stored:
            for edge in job.parents:
                if edge.parent in missing:
                    parent = missing[edge.parent]
                    raise KeyTaken(parent.task, parent.key or parent.idempotency_key)


def _writes_twice(job: NewJob) -> bool:
    return job.idempotency_key is not None or job.if_taken is not IfTaken.RETURN


def _place_once(
    tx: Runner, jobs: Sequence[NewJob], changed: Changed, find: Callable[[Sequence[NewJob]], Outlook]
) -> tuple[dict[UUID, UUID], Outlook]:
    """Store those of *jobs* that were not asked for before; return, for each other, the id that stands for it.

    Only of what is new are the parents of interest, which *find* looks at: those of a request that is repeated may be
    long gone.
    """
    firsts: dict[str, NewJob] = {}
    for job in jobs:
        if job.idempotency_key:
            firsts.setdefault(job.idempotency_key, job)
    repeats, freed = idempotency.take(tx, firsts.values()) if firsts else ({}, set())
    standing = repeats | changed_before(tx, changed)
    first_of = {job.id: firsts[job.idempotency_key].id for job in jobs if job.idempotency_key}
    new = [job for job in jobs if job.id not in standing and first_of.get(job.id, job.id) == job.id]
    outlook = find(new)
    if new:
        standing |= _place(tx, chunks(new, _characters), changed, NONE, outlook.waiting)
    given = freed | {job_id for job_id, stand_in in standing.items() if stand_in != job_id} - repeats.keys()
    idempotency.keep(tx, [job for job in firsts.values() if job.id in given], standing)
    repeated = {job_id: first for job_id, first in first_of.items() if job_id != first}
    return standing | {job_id: standing.get(first, first) for job_id, first in repeated.items()}, outlook


def _place(
    runner: Runner, pieces: Sequence[Sequence[NewJob]], changed: Changed, turns: Turns, waiting: Waiting
) -> dict[UUID, UUID]:
    """Store jobs; return, for each that was not stored anew, the id of the job that stands for it."""
    firsts = accumulate(map(len, pieces), initial=0)
    refused = [
        refused
        for piece, first in zip(pieces, firsts, strict=False)
        for refused in insert(runner, piece, first, turns, waiting)
    ]
    return _stand_ins(runner, refused, changed, waiting) if refused else {}


def _characters(job: NewJob) -> int:
    return len(job.payload)


def _stand_ins(runner: Runner, refused: list[NewJob], changed: Changed, waiting: Waiting) -> dict[UUID, UUID]:
    """Return, for each job that was not stored anew, the id of the job that stands for it.

    That is the unfinished job with its key, or the job itself when it was stored before. The holder of a key may
    finish between our two looks; then the key is free and we try again.
    """
    standing: dict[UUID, UUID] = {}
    for _ in range(_ROUNDS):
        standing |= {job_id: job_id for job_id in known(runner, (job.id for job in refused))}
        standing |= stand_ins(runner, [job for job in refused if job.id not in standing], changed)
        left = [job for job in refused if job.id not in standing]
        refused = insert(runner, left, waiting=waiting) if left else []
        if not refused:
            return standing
    raise StoreUnavailable(f"the key {refused[0].key!r} changed hands {_ROUNDS} times while we enqueued; try again")


def _check_distinct(jobs: Sequence[NewJob]) -> None:
    if len({job.id for job in jobs}) < len(jobs):
        raise InvalidValue("expected each job of a batch to have an id of its own, got one id twice")
