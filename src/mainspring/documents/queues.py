"""Queues, and what is paused, as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import Told, read, seconds, seconds_of
from mainspring.model.job import JobState
from mainspring.model.queue import Pausable, Pause, Queue


def queue_document(queue: Queue) -> dict[str, object]:
    return {
        "name": queue.name,
        "paused": None if queue.pause is None else pause_document(queue.pause),
        "jobs": {state: queue.jobs.get(state, 0) for state in JobState if not state.final},
        "more": sorted(queue.more),
        "ageing_seconds": seconds(queue.ageing),
        "oldest_ready_seconds": seconds(queue.oldest_ready),
        "workers": queue.workers,
        "team": queue.team,
    }


def queue_of(told: Told) -> Queue:
    return Queue(
        name=told["name"],
        pause=None if told["paused"] is None else pause_of(told["paused"], Pausable.QUEUE),
        ageing=seconds_of(told["ageing_seconds"]),
        jobs={JobState(state): count for state, count in told["jobs"].items() if count},
        oldest_ready=seconds_of(told["oldest_ready_seconds"]),
        workers=tuple(told["workers"]),
        more=frozenset(map(JobState, told["more"])),
        team=told["team"],
    )


def pause_document(pause: Pause) -> dict[str, object]:
    return {"name": pause.name, "by": pause.by, "reason": pause.reason, "since": pause.since.isoformat()}


def pause_of(told: Told, kind: Pausable) -> Pause:
    return read({**told, "kind": kind}, Pause)
