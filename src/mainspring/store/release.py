"""Release: let jobs go on that waited for a limit, when slots become free or tokens come in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from mainspring.model.limits import Gate, Standing
from mainspring.store import rows
from mainspring.store.database import Row, Runner

Limits = Mapping[str, tuple[Standing, Gate]]
Moved = Mapping[str, tuple[datetime | None, datetime | None]]
"""For each limit, when its bucket is full, and when to look whether those that wait may go on."""


def free(tx: Runner, slots: Sequence[Row]) -> set[str]:
    """Give back *slots*, by limit and job, and let others have them; return the topics to wake."""
    if not slots:
        return set()
    keys = rows.document(sorted({key for key, _ in slots}))
    tx.run("lock_limits", keys=keys)
    return let_go_on(tx, _gates(tx.run("free", slots=rows.document(slots), keys=keys)))


def look(tx: Runner, keys: Collection[str]) -> Limits:
    """Return the limits with these keys as they stand; they are locked."""
    return _gates(tx.run("look_at_limits", keys=rows.document(keys)))


def _gates(found: Sequence[Row]) -> Limits:
    standing = {row[0]: (Standing(*row), now) for now, *row in found}
    return {key: (limit, Gate(limit, now)) for key, (limit, now) in standing.items()}


def let_go_on(tx: Runner, limits: Limits) -> set[str]:
    """Make jobs ready that wait for *limits* with room, the most urgent first; return the topics to wake."""
    topics: set[str] = set()
    for key, (standing, gate) in limits.items():
        if standing.waiting and gate.room:
            topics |= {queue for (queue,) in tx.run("release", key=key, room=gate.room)}
    return topics


def release_due(tx: Runner, limit: int) -> tuple[int, set[str]]:
    """Look at up to *limit* limits for which it is time; return how many there were, and the topics to wake."""
    keys = [key for (key,) in tx.run("lock_due_limits", limit=max(0, limit))]
    if not keys:
        return 0, set()
    limits = look(tx, keys)
    topics = let_go_on(tx, limits)
    moved: Moved = {
        key: (standing.full_at, gate.release_at if standing.waiting else None)
        for key, (standing, gate) in limits.items()
    }
    tx.run("move_limits", moved=rows.moved(moved))
    return len(keys), topics
