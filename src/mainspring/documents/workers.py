"""A worker as programs are told of it."""

from __future__ import annotations

from mainspring.documents.values import Told, read, seconds_of
from mainspring.model.session import Session


def worker_document(session: Session) -> dict[str, object]:
    return {
        "id": str(session.id),
        "name": session.name,
        "alive": bool(session.alive),
        "lease_seconds": session.lease.total_seconds(),
        "started_at": session.started_at.isoformat(),
        "beat_at": session.beat_at.isoformat(),
        "queues": session.queues,
        "tasks": session.tasks,
    }


def worker_of(told: Told) -> Session:
    return read({**told, "lease": seconds_of(told["lease_seconds"])}, Session)
