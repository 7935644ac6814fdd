"""Worker sessions: open, beat, close. One lease covers all the jobs that a session holds."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from mainspring.model.session import Beat, NewSession, Session
from mainspring.store.database import Database


def open_session(db: Database, session: NewSession) -> None:
    """See `protocol.Sessions.open_session`."""
    db.run("open_session", session=session.id, name=session.name, lease=session.lease)


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
    return bool(db.run("close_session", session=session))


def sessions(db: Database) -> list[Session]:
    """See `protocol.Sessions.sessions`."""
    return [Session(*row) for row in db.read("sessions")]
