"""Release: let jobs go on that waited for a limit, when slots become free or tokens come in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from mainspring.model.breaker import Rule, State
from mainspring.model.limits import LATEST, BreakerGate, Gate, Standing, gate
from mainspring.store import rows
from mainspring.store.database import RELEASE, Row, Runner

_BEYOND = 2 * LATEST
"""No look is put off for so long; what two processes take for now may differ, but not by as much as that."""

Limits = Mapping[str, tuple[Standing, Gate | BreakerGate]]
Moved = Mapping[str, tuple[datetime | None, datetime | None, State | None]]
"""For each limit, when its bucket is full, when to look whether those that wait may go on, and what the breaker is."""

Recorded = Mapping[str, tuple[State, Rule]]
"""For each breaker, what it is by the attempts that have ended, and the rule by which they were judged."""


def free(tx: Runner, slots: Sequence[Row], recorded: Recorded) -> set[str]:
    """Give back *slots*, by limit and job, and let others have them; return the topics to wake.

    Breakers become what is *recorded*, or closed, if those were the last of their probes.
    """
    if not slots and not recorded:
        return set()
    keys = rows.document(sorted({key for key, _ in slots} | recorded.keys()))
    tx.run("lock_limits", keys=keys)
    limits = dict(_gates(tx.run("free", slots=rows.document(slots), keys=keys)))
    for key, (state, rule) in recorded.items():
        standing, before = limits[key]
        after = state.settled(rule, before.now, held=standing.held, waiting=standing.waiting)
        limits[key] = become(standing, after, after.idle_at(rule), before.now)
    return keep(tx, {key: limits[key] for key in recorded}) | let_go_on(tx, limits)


def become(
    standing: Standing, state: State, idle_at: datetime | None, now: datetime
) -> tuple[Standing, Gate | BreakerGate]:
    """Return a breaker as it stands, and its gate, once it is *state*."""
    standing = replace(standing, breaker=state, full_at=idle_at)
    return standing, gate(standing, now)


def keep(tx: Runner, breakers: Limits) -> set[str]:
    """Store what *breakers* have become; return the topics to wake."""
    if not breakers:
        return set()
    moved: Moved = {
        key: (passed.full_at, passed.release_at if standing.waiting else None, passed.state)
        for key, (standing, passed) in breakers.items()
    }
    tx.run("move_limits", moved=rows.moved(moved))
    return {RELEASE} if any(standing.waiting for standing, _ in breakers.values()) else set()


def look(tx: Runner, keys: Collection[str]) -> Limits:
    """Return the limits with these keys as they stand; they are locked."""
    return _gates(tx.run("look_at_limits", keys=rows.document(keys)))


def _gates(found: Sequence[Row]) -> Limits:
    standing = {row[0]: (Standing(*row), now) for now, *row in found}
    return {key: (limit, gate(limit, now)) for key, (limit, now) in standing.items()}


def let_go_on(tx: Runner, limits: Limits) -> set[str]:
    """Make jobs ready that wait for *limits* with room, the most urgent first; return the topics to wake."""
    topics: set[str] = set()
    for key, (standing, passed) in limits.items():
        if standing.waiting and passed.room:
            topics |= set(_release(tx, key, passed.room))
    return topics


def _release(tx: Runner, key: str, room: int) -> list[str]:
    """Make up to *room* jobs ready that wait for a limit, the most urgent first; return the queue of each."""
    return [queue for (queue,) in tx.run("release", key=key, room=room)]


def release_due(tx: Runner, limit: int) -> tuple[int, set[str]]:
    """Look at up to *limit* limits for which it is time; return how many there were, and the topics to wake."""
    keys = [key for (key,) in tx.run("lock_due_limits", limit=max(0, limit), beyond=_BEYOND)]
    if not keys:
        return 0, set()
    topics: set[str] = set()
    moved: dict[str, tuple[datetime | None, datetime | None, State | None]] = {}
    for key, (standing, passed) in look(tx, keys).items():
        queues = _release(tx, key, passed.going) if standing.waiting and passed.going else []
        topics.update(queues)
        # When it is full is kept as the gate has it: what is too far ahead would be so again at the next look.
        moved[key] = passed.full_at, passed.look_again_at(len(queues)) if standing.waiting else None, None
    tx.run("move_limits", moved=rows.moved(moved))
    return len(keys), topics
