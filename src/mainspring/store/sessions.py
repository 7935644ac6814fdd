"""Worker sessions: open, beat, close. One lease covers all the jobs that a session holds."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from mainspring.model.session import Beat, NewSession, Session
from mainspring.store import rows
from mainspring.store.database import Database, Runner


def open_session(db: Database, session: NewSession) -> None:
    """See `protocol.Sessions.open_session`."""
    db.run(
        "open_session",
        session=session.id,
        name=session.name,
        lease=session.lease,
        queues=rows.document(session.queues),
        tasks=rows.document(session.tasks),
    )


def beat(db: Database, session: UUID, holding: Mapping[UUID, int]) -> Beat:
    """See `protocol.Sessions.beat`."""
    if not db.run("beat", session=session):
        return Beat(alive=False, wishes={}, strays={}, lost=dict(holding))
    held = db.read("held", session=session)
    fences = {job_id: fence for job_id, fence, _ in held}
    return Beat(
        alive=True,
        wishes={job_id: wish for job_id, _, wish in held if wish is not None},
        strays={job_id: fence for job_id, fence in fences.items() if holding.get(job_id) != fence},
        lost={job_id: fence for job_id, fence in holding.items() if fences.get(job_id) != fence},
    )


def close_session(db: Database, session: UUID) -> bool:
    """See `protocol.Sessions.close_session`."""
    return db.transact(lambda tx: _close(tx, session))


def _close(tx: Runner, session: UUID) -> bool:
    # The lock waits for a claim that is under way, and only a statement that begins after it sees what was claimed.
    known = tx.run("lock_session", session=session)
    closed = tx.run("close_session", session=session)
    # After a lost reply the session may be gone because the first try closed it.
    return bool(closed) or (tx.in_doubt and not known)


def sessions(db: Database) -> list[Session]:
    """See `protocol.Sessions.sessions`."""
    return [Session(*row) for row in db.read("sessions")]
