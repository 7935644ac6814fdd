"""Limits for people: how they stand, and letting go on what waits for one that was removed or changed."""

from __future__ import annotations

from msgspec.structs import replace

from mainspring.model.limits import LimitStatus, shown_key, stored_key
from mainspring.store.database import Database

RELEASE_BATCH = 500


def limits(db: Database, name: str | None = None) -> list[LimitStatus]:
    """See `protocol.Limits.limits`."""
    found = [LimitStatus(*row) for row in db.read("limits", key=None if name is None else stored_key(name))]
    return [replace(one, key=shown_key(one.key)) for one in found]


def release(db: Database, name: str) -> int:
    """See `protocol.Limits.release_limit`."""
    # No more than wait now: those that the limit still holds back when they are claimed come to wait again.
    left = sum(one.waiting for one in limits(db, name))
    released = 0
    while left > 0 and (batch := db.run("release", key=stored_key(name), room=min(left, RELEASE_BATCH))):
        db.wake({queue for (queue,) in batch})
        released += len(batch)
        left -= len(batch)
    return released
