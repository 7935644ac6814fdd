"""Admit: of jobs that were claimed and have limits, let those start for which there is room. The others wait.

Between claim and admit a job is held and has not started, so a limit holds at every instant; and a job without limits
never comes here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from mainspring.errors import StoreUnavailable
from mainspring.model import lifecycle
from mainspring.model.job import Job, JobState
from mainspring.model.limits import Want
from mainspring.model.limits import admit as decide
from mainspring.store import rows
from mainspring.store.breakers import closed
from mainspring.store.database import RELEASE, Database, Runner
from mainspring.store.release import let_go_on, look
from mainspring.store.settle import apply

_ROUNDS = 10

Asking = Sequence[tuple[Job, Sequence[Want]]]


def admit(db: Database, asking: Asking) -> set[UUID]:
    """See `protocol.Claims.admit`."""
    asking = _past_closed_breakers(db, asking)
    free = {job.id for job, wants in asking if not wants}
    asking = [(job, wants) for job, wants in asking if wants]
    if not asking:
        return free
    wanted = {want.key: want for _, wants in asking for want in wants}
    for _ in range(_ROUNDS):
        admitted, topics = db.transact(lambda tx: _admit(tx, asking, wanted))
        if admitted is not None:
            db.wake(topics)
            return free | admitted
        # In a transaction of its own: together with those that are locked already, they would be locked in no order.
        if any(waiting for (waiting,) in db.run("put_limits", limits=rows.limits(wanted.values()))):
            db.wake({RELEASE})
    raise StoreUnavailable(f"the limits {sorted(wanted)} changed {_ROUNDS} times while we asked; try again")


def _past_closed_breakers(db: Database, asking: Asking) -> Asking:
    """Return *asking* without the wants that a closed breaker grants to all: its row need not be locked."""
    breakers = {want.key for _, wants in asking for want in wants if want.rule is not None}
    if not breakers:
        return asking
    granted = closed(db, breakers)
    return [(job, [want for want in wants if want.key not in granted]) for job, wants in asking]


def _admit(tx: Runner, asking: Asking, wanted: Mapping[str, Want]) -> tuple[set[UUID] | None, set[str]]:
    """Return the jobs that may start, and the topics to wake; None when the database has other limits than the code."""
    left, before = _ours(tx, asking)
    if not left:
        return before, set()
    keys = rows.document(sorted(wanted))
    stored = {key: Want(key, *numbers) for key, *numbers in tx.run("lock_limits", keys=keys)}
    if stored != {key: replace(want, rule=None) for key, want in wanted.items()}:
        return None, set()
    limits = look(tx, wanted)
    answers = decide(left, {key: gate for key, (_, gate) in limits.items()})
    waiting = {limit for _, limit in answers if limit is not None}
    started = {job.id for job, limit in answers if limit is None}
    holds = {key for key, (_, gate) in limits.items() if gate.holds}
    # Not for a want of rate, whatever another task has made of its key: nobody would ever give that slot back.
    slots = [
        (want.key, job.id)
        for job, wants in left
        if job.id in started
        for want in wants
        if want.key in holds and want.interval is None
    ]
    if slots:
        tx.run("hold", slots=rows.document(slots))
    _, topics = apply(tx, [lifecycle.wait(job, limit) for job, limit in answers if limit is not None])
    if waiting:
        # One that waits for a limit leaves the others that it has; somebody else may be waiting for those.
        topics |= {RELEASE} | let_go_on(tx, {key: limit for key, limit in limits.items() if key not in waiting})
    moved = {
        key: (gate.full_at, gate.release_at if key in waiting or standing.waiting else None, gate.state)
        for key, (standing, gate) in limits.items()
        if key in waiting or standing.interval is not None or gate.state != standing.breaker
    }
    if moved:
        tx.run("move_limits", moved=rows.moved(moved))
    return before | started, topics


def _ours(tx: Runner, asking: Asking) -> tuple[Asking, set[UUID]]:
    """Lock those that are still held; return them, and apart from them those that an earlier try has let through.

    One that has no slot, for its limits are all of rate, is asked for again, and pays twice.
    """
    ids = rows.ids(job.id for job, _ in asking)
    running = {job_id: fence for job_id, state, fence in tx.run("lock_claimed", ids=ids) if state is JobState.RUNNING}
    before = {job_id for _, job_id in tx.run("slots_of", ids=ids)} if tx.in_doubt else set()
    ours = [(job, wants) for job, wants in asking if running.get(job.id) == job.fence]
    return [(job, wants) for job, wants in ours if job.id not in before], before & {job.id for job, _ in ours}
