"""Sweeps: promote, expire, release, reap and prune. Any number of nodes may run each at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from msgspec.structs import replace

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model import lifecycle
from mainspring.model.duration import duration
from mainspring.model.fairness import FIRST, TURN
from mainspring.model.ids import first_id
from mainspring.model.job import Job, JobState
from mainspring.model.retention import day_of
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.follow import follow
from mainspring.store.inspect import now
from mainspring.store.parents import disown, look_at
from mainspring.store.protocol import Expired, Promoted, Released
from mainspring.store.release import release_due
from mainspring.store.retention import Tell, in_force, prune_ahead
from mainspring.store.rows import to_job
from mainspring.store.samples import add_failed
from mainspring.store.settle import apply
from mainspring.store.turns import line_up

PRUNE_BATCH = 1_000
REAP_BATCH = 500
_LONG = timedelta(days=400)
"""How long the names of workers are kept at least, since some attempts outlive the age that is asked for; and who was
told of trouble, since a schedule may recover a year later. Rows are few."""

_LOCKED = timedelta(milliseconds=50)


def promote(db: Database, limit: int, ahead: timedelta) -> Promoted:
    """See `protocol.Sweeps.promote`."""
    due = db.run("promote", limit=max(0, limit), ahead=ahead)
    db.wake({queue for queue, job_id in due if job_id is None})
    line_up(db, [job_id for _, job_id in due if job_id is not None], ahead)
    db.wake({queue for queue, job_id in due if job_id is not None})
    return Promoted(count=len(due), next_due=next_look(db.read("next_due"), ahead, found=bool(due)))


def expire(db: Database, limit: int) -> Expired:
    """See `protocol.Sweeps.expire`."""
    waits, count = db.read("next_expiry"), 0
    if waits and waits[0][0] <= 0:
        count, topics = db.transact(lambda tx: _expire(tx, max(0, limit)))
        db.wake(topics)
        waits = db.read("next_expiry")
    return Expired(count=count, next_due=next_look(waits, found=bool(count)))


def _expire(tx: Runner, limit: int) -> tuple[int, set[str]]:
    expired = [to_job(row) for row in tx.run("lock_expired", limit=limit)]
    settled, topics = apply(tx, [lifecycle.expire(job) for job in expired])
    return len(settled), topics


def next_look(waits: Sequence[Row], ahead: timedelta = timedelta(0), *, found: bool) -> timedelta | None:
    """Return how long until there is something to do, by what a query says of the next; None when there is no next."""
    if not waits:
        return None
    wait = max(timedelta(0), timedelta(microseconds=waits[0][0]) - ahead)
    # When nothing was found, what is due is in somebody else's hands; to look again at once would be to spin.
    return wait if wait or found else _LOCKED


def release(db: Database, limit: int) -> Released:
    """See `protocol.Sweeps.release`."""
    followed = follow(db)
    limits, topics = db.transact(lambda tx: release_due(tx, limit))
    db.wake(topics)
    next_due = next_look(db.read("next_release"), found=bool(limits))
    return Released(limits=limits, followed=followed, next_due=timedelta(0) if followed else next_due)


def reap(db: Database) -> int:
    """See `protocol.Sweeps.reap`."""
    total = 0
    problems: list[StoreError] = []
    for (session,) in db.read("dead_sessions"):
        try:
            total += _reap_session(db, session)
        except StoreError as error:
            # One session that can't be reaped must not keep the others' jobs from running again; but when the
            # database is away, each would take its whole deadline.
            problems.append(error)
            if sum(isinstance(problem, StoreUnavailable) for problem in problems) > 1:
                break
    if problems:
        raise problems[0]
    return total


def _reap_session(db: Database, session: UUID) -> int:
    total = 0
    while (reaped := db.transact(lambda tx: _reap_batch(tx, session))) is not None:
        count, topics = reaped
        db.wake(topics)
        total += count
    return total


def _reap_batch(tx: Runner, session: UUID) -> tuple[int, set[str]] | None:
    """Take back one batch of what *session* held; None when it is gone, alive, or in another reaper's hands."""
    dead = tx.run("lock_dead_session", session=session)
    if not dead:
        return None
    ((name, lease),) = dead
    why = f"worker {name} ({session}) did not renew its lease of {lease.total_seconds():g} s"
    held = [to_job(row) for row in tx.run("lock_held", session=session, limit=REAP_BATCH)]
    decided = [lifecycle.reap(job, why) for job in _with_slots(tx, held)]
    settled, topics = apply(tx, decided)
    # Not by how many were found: one that its late worker settles while we wait for its lock drops out of the batch.
    tx.run("close_session", session=session)
    failed = {one.job_id for one in decided if one.state is JobState.FAILED}
    add_failed(tx, (job for job in held if job.id in failed))
    return len(settled), topics


def _with_slots(tx: Runner, held: list[Job]) -> list[Job]:
    """Return locked jobs with the slots that they have now: one may have been admitted while we waited for it."""
    slots: dict[UUID, list[str]] = {}
    for key, job_id in tx.run("slots_of", ids=rows.ids(job.id for job in held)):
        slots.setdefault(job_id, []).append(key)
    return [replace(job, holds=tuple(slots.get(job.id, ()))) for job in held]


def prune(db: Database, age: timedelta, tell: Tell | None = None) -> int:
    """See `protocol.Sweeps.prune`."""
    duration(age, "age")
    kept = in_force(db, age)
    longest = max(rule.age for rule in kept)
    pruned: list[int] = []

    def gone(jobs: int) -> None:
        pruned.append(jobs)
        if tell is not None:
            tell(jobs)

    latest = prune_ahead(db, kept, day_of(now(db) - longest), gone)
    # Jobs first: a replay brings back the attempt of its day, which must then still have its place.
    _prune(db, "prune_jobs", gone, age=longest)
    _prune(db, "prune_attempts", age=longest)
    _prune(db, "prune_logs", age=longest)
    _prune(db, "prune_sessions", age=max(longest, _LONG))
    _prune(db, "prune_ticks", age=kept[-1].age)
    _prune(db, "prune_limits", age=kept[-1].age)
    _prune(db, "prune_troubles", age=max(longest, _LONG))
    _prune(db, "prune_lines", turn=TURN, first=FIRST)
    _prune(db, "prune_idempotency")
    made_before = first_id(now(db) - longest)
    _prune_orphans(db, "prune_steps", made_before)
    _prune_orphans(db, "prune_signals", made_before)
    _prune_edges(db, max(made_before, first_id(latest)))
    return sum(pruned)


def _prune_edges(db: Database, made_before: UUID) -> None:
    """Remove edges that nobody will look for, and end what waits for a parent that is not there any more."""
    _prune(db, "prune_edges", before=made_before)
    while orphans := [child for (child,) in db.read("orphans", before=made_before, limit=PRUNE_BATCH)]:
        ended, topics = db.transact(partial(_end_orphans, children=orphans))
        db.wake(topics)
        if not ended:
            return


def _end_orphans(tx: Runner, children: Sequence[UUID]) -> tuple[int, set[str]]:
    jobs = [to_job(row) for row in tx.run("get", ids=rows.ids(children))]
    outlook, _ = look_at(tx, {job.id: job.beginnings.parents for job in jobs if not job.state.final})
    settled, topics = apply(tx, disown(tx, outlook.broken))
    return len(settled), topics


def _prune_orphans(db: Database, query: str, made_before: UUID) -> None:
    """Remove what belongs to no job any more, going through what older jobs have left in the order of their ids."""
    after = UUID(int=0)
    while page := db.run(query, after=after, made_before=made_before, limit=PRUNE_BATCH):
        ((after,),) = page


def _prune(db: Database, query: str, tell: Tell = lambda _: None, /, **given: object) -> None:
    while (gone := db.run(query, limit=PRUNE_BATCH, **given)) and gone[0][0] is not None:
        tell(sum(row[0] for row in gone))
