"""Schedules and ticks as programs are told of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mainspring.cli.schedules.look import state
from mainspring.model.payload import decode_call
from mainspring.model.schedule import Schedule
from mainspring.model.tick import TickRecord


def schedule_document(schedule: Schedule, now: datetime) -> dict[str, object]:
    definition, call = schedule.definition, decode_call(schedule.definition.payload)
    return {
        "id": schedule.id,
        "state": state(schedule, now),
        "task": definition.task,
        "args": call.args,
        "kwargs": call.kwargs,
        "trigger": {"text": str(definition.trigger), **msgspec.to_builtins(definition.trigger)},
        "queue": definition.queue,
        "priority": definition.priority,
        "overlap": definition.overlap,
        "misfire": definition.misfire,
        "grace_seconds": _seconds(definition.longest_delay),
        "jitter_seconds": _seconds(definition.jitter),
        "start": _instant(definition.start),
        "end": _instant(definition.end),
        "max_runs": definition.max_runs,
        "expect_success_within_seconds": _seconds(definition.expect_success_within),
        "notes": definition.notes,
        "team": definition.team,
        "origin": schedule.origin,
        "paused": bool(schedule.paused),
        "paused_by": schedule.paused_by,
        "paused_reason": schedule.reason,
        "paused_at": _instant(schedule.paused_at),
        "next_tick": _instant(schedule.tick_at),
        "runs": schedule.runs,
        "buffered_at": _instant(schedule.buffered_at),
        "expected_by": _instant(schedule.expected_by),
        "created_at": _instant(schedule.created_at),
        "changed_at": _instant(schedule.changed_at),
    }


def tick_document(tick: TickRecord) -> dict[str, object]:
    return {
        "at": _instant(tick.at),
        "until": _instant(tick.until),
        "count": tick.count,
        "verdict": tick.verdict,
        "reason": tick.reason,
        "job": None if tick.job_id is None else str(tick.job_id),
        "node": tick.node,
        "decided_at": _instant(tick.decided_at),
    }


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
