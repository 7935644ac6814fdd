"""A change as programs are told of it."""

from __future__ import annotations

from mainspring.model.change import Change
from mainspring.model.team import DEFAULT_TEAM


def change_document(change: Change) -> dict[str, object]:
    return {
        "change": change.change,
        "job": str(change.id),
        "team": change.team or DEFAULT_TEAM,
        "task": change.task,
        "queue": change.queue,
        "state": change.state,
        "attempt": change.attempt,
        "at": change.at.isoformat(),
    }
