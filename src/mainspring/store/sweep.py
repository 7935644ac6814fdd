"""Sweeps: promote, reap and prune. Any number of nodes may run each at the same time."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model import lifecycle
from mainspring.model.duration import duration
from mainspring.model.outcome import Lost
from mainspring.store.database import Database, Runner
from mainspring.store.protocol import Promoted
from mainspring.store.rows import to_job
from mainspring.store.settle import apply

PRUNE_BATCH = 1_000
REAP_BATCH = 500


def promote(db: Database, limit: int) -> Promoted:
    """See `protocol.Sweeps.promote`."""
    queues = [queue for (queue,) in db.run("promote", limit=limit)]
    db.wake(set(queues))
    due = db.read("next_due")
    return Promoted(count=len(queues), next_due=timedelta(microseconds=max(0, due[0][0])) if due else None)


def reap(db: Database) -> int:
    """See `protocol.Sweeps.reap`."""
    total = 0
    while (reaped := db.transact(_reap_one)) is not None:
        count, topics = reaped
        db.wake(topics)
        total += count
    return total


def _reap_one(tx: Runner) -> tuple[int, set[str]] | None:
    """Take back one batch of what one dead session held; None when no session is dead."""
    dead = tx.run("dead_session")
    if not dead:
        return None
    session, name, lease = dead[0]
    outcome = Lost(f"worker {name} ({session}) did not renew its lease of {lease.total_seconds():g} s")
    held = [to_job(row) for row in tx.run("lock_held", session=session, limit=REAP_BATCH)]
    settled, topics = apply(tx, [lifecycle.settle(job, outcome) for job in held])
    if len(held) < REAP_BATCH:
        tx.run("drop_session", session=session)
    return len(settled), topics


def prune(db: Database, age: timedelta) -> int:
    """See `protocol.Sweeps.prune`."""
    duration(age, "age")
    # Jobs first: a replay brings back the attempt of its day, which must then still have its place.
    pruned = _prune(db, "prune_jobs", age)
    _prune(db, "prune_attempts", age)
    return pruned


def _prune(db: Database, query: str, age: timedelta) -> int:
    total = 0
    while (gone := db.run(query, age=age, limit=PRUNE_BATCH)) and gone[0][0] is not None:
        total += sum(row[0] for row in gone)
    return total
