"""Changes: what happened to jobs since an instant."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mainspring.model.change import Change, Kind
from mainspring.model.ids import first_id
from mainspring.store.database import Database


def changes(db: Database, since: datetime, until: datetime | None, limit: int) -> list[Change]:
    """See `protocol.Inspects.changes`."""
    last = UUID(int=(1 << 128) - 1) if until is None else first_id(until)
    found = db.read("changes", since=since, first=first_id(since), last=last, limit=limit)
    return sorted((Change(Kind(kind), *row) for kind, *row in found), key=lambda change: change.at)
