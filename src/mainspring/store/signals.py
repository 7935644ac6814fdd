"""Signals: what is said to a job from outside, kept until it asks."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from mainspring.errors import JobNotFound, SignalRefused
from mainspring.model import lifecycle
from mainspring.model.duration import LONGEST
from mainspring.model.job import JobState, check_name
from mainspring.model.text import check_document
from mainspring.store import rows
from mainspring.store.database import Database, Runner
from mainspring.store.rows import to_job
from mainspring.store.settle import apply
from mainspring.store.steps import begin_within, lost, record_within

MOST = 1_000
"""Signals that a job may have which it has not taken."""

_TIMED_OUT = "null"


def send(db: Database, job_id: UUID, name: str, value: str, signal_id: UUID) -> None:
    """See `protocol.Signals.signal`."""
    check_name(name, "the name of a signal")
    check_document(value, "the value of a signal")
    db.wake(db.transact(lambda tx: _send(tx, job_id, name, value, signal_id)))


def _send(tx: Runner, job_id: UUID, name: str, value: str, signal_id: UUID) -> set[str]:
    # The row is locked before anybody looks: a job that is about to wait for this either does so before, and is seen
    # here to wait, or after, and sees the signal.
    live = [to_job(tuple(row)) for _, *row in tx.run("lock_live", ids=rows.ids([job_id]))]
    ((untaken, known),) = tx.run("look_at_signals", job_id=job_id, signal_id=signal_id)
    if known:
        return set()  # by an earlier try of this call, whose reply was lost; the job may have ended since
    if not live:
        raise _refusal(tx, job_id)
    if untaken >= MOST:
        raise SignalRefused(
            job_id, f"has {untaken:,} signals that it has not taken, the most that it may have; send more when it has"
        )
    tx.run("send_signal", job_id=job_id, name=name, signal_id=signal_id, value=value)
    answer = lifecycle.signalled(live[0], name)
    return set() if answer is None else apply(tx, [answer])[1]


def _refusal(tx: Runner, job_id: UUID) -> Exception:
    found = [to_job(row) for row in tx.run("get", ids=rows.ids([job_id]))]
    if not found:
        return JobNotFound(job_id)
    state = found[0].state
    instead = "enqueue another" if state is JobState.SUCCEEDED else "replay it first"
    return SignalRefused(job_id, f"has ended as {state} and takes no signals any more; {instead}")


def take(db: Database, job_id: UUID, fence: int, name: str, signal: str, timeout: timedelta | None) -> str | timedelta:
    """See `protocol.Signals.take_signal`."""

    def work(tx: Runner) -> str | timedelta | None:
        if not tx.run("lock_running", attempts=rows.document([(job_id, fence)])):
            return None
        known = tx.run("step_result", job_id=job_id, name=name)
        if known and known[0][0] is not None:
            return str(known[0][0])
        taken = tx.run("take_signal", job_id=job_id, fence=fence, signal=signal)
        if not taken:
            left = begin_within(tx, job_id, fence, name, LONGEST if timeout is None else timeout)
            if left is None or left > timedelta(0):
                return left
        value = str(taken[0][0]) if taken else _TIMED_OUT
        return value if record_within(tx, job_id, fence, name, value) else None

    found = db.transact(work)
    if found is None:
        raise lost(job_id, fence)
    return found
