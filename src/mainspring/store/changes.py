"""Changes: what happened to jobs since an instant."""

from __future__ import annotations

from datetime import datetime

from mainspring.clock import microseconds
from mainspring.model.change import Change, Kind
from mainspring.model.ids import uuid7
from mainspring.store.database import Database


def changes(db: Database, since: datetime, limit: int) -> list[Change]:
    """See `protocol.Inspects.changes`."""
    first = uuid7(max(0, microseconds(since) // 1000), 0)  # ids begin with the time at which they were made
    found = db.read("changes", since=since, first=first, limit=limit)
    return sorted((Change(Kind(kind), *row) for kind, *row in found), key=lambda change: change.at)
