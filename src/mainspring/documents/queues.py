"""Queues, and what is paused, as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import seconds
from mainspring.model.job import JobState
from mainspring.model.queue import Pause, Queue


def queue_document(queue: Queue) -> dict[str, object]:
    return {
        "name": queue.name,
        "paused": None if queue.pause is None else pause_document(queue.pause),
        "jobs": {state: queue.jobs.get(state, 0) for state in JobState if not state.final},
        "ageing_seconds": seconds(queue.ageing),
        "oldest_ready_seconds": seconds(queue.oldest_ready),
        "workers": queue.workers,
        "team": queue.team,
    }


def pause_document(pause: Pause) -> dict[str, object]:
    return {"name": pause.name, "by": pause.by, "reason": pause.reason, "since": pause.since.isoformat()}
