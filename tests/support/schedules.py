"""Schedules for tests, with as little said as the test needs."""

from __future__ import annotations

from typing import Any

from mainspring.model.schedule import Definition, NewSchedule
from mainspring.model.tick import Verdict
from mainspring.model.trigger import every
from mainspring.store.protocol import Fired
from mainspring.store.sql import SqlStore
from tests.support.factories import new_id

_OWN = ("id", "origin")


def new_schedule(schedule_id: str = "s", **changes: Any) -> NewSchedule:
    """Return a schedule of every minute, unless the test wants another."""
    own = {name: changes.pop(name) for name in _OWN if name in changes}
    given: dict[str, Any] = {"task": "greet", "payload": '{"args":[],"kwargs":{}}', "trigger": every("1m")}
    return NewSchedule(id=schedule_id, definition=Definition(**given | changes), **own)


def fire(store: SqlStore, node: str = "node", limit: int = 250) -> Fired:
    return store.fire(node, lambda count: [new_id() for _ in range(count)], limit)


def verdicts(store: SqlStore, schedule_id: str = "s") -> list[Verdict]:
    """Return what became of the ticks, the oldest first."""
    return [tick.verdict for tick in reversed(store.ticks(schedule_id, limit=10_000))]
