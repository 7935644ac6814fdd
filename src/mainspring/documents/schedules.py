"""Schedules and ticks as programs are told of them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mainspring.documents.values import Told, instant, length, length_of, read
from mainspring.lint import is_overdue
from mainspring.model.payload import decode_call, encode_call
from mainspring.model.preview import Preview
from mainspring.model.schedule import Definition, Schedule
from mainspring.model.sealed import closed, is_closed
from mainspring.model.tick import TickRecord
from mainspring.model.trigger import After, Every, Trigger


def schedule_document(schedule: Schedule, now: datetime) -> dict[str, object]:
    definition = schedule.definition
    encrypted = is_closed(definition.payload)
    call = None if encrypted else decode_call(definition.payload)
    return {
        "id": schedule.id,
        "state": schedule_state(schedule, now),
        "task": definition.task,
        "args": None if call is None else call.args,
        "kwargs": None if call is None else call.kwargs,
        "encrypted": encrypted,
        "trigger": _trigger(definition.trigger),
        "queue": definition.queue,
        "priority": definition.priority,
        "overlap": definition.overlap,
        "misfire": definition.misfire,
        "grace": length(definition.grace),
        "jitter": length(definition.jitter),
        "start": instant(definition.start),
        "end": instant(definition.end),
        "max_runs": definition.max_runs,
        "expect_success_within": length(definition.expect_success_within),
        "notes": definition.notes,
        "team": definition.team,
        "origin": schedule.origin,
        "paused": bool(schedule.paused),
        "paused_by": schedule.paused_by,
        "paused_reason": schedule.reason,
        "paused_at": instant(schedule.paused_at),
        "next_tick": instant(schedule.tick_at),
        "runs": schedule.runs,
        "awaits": bool(schedule.awaits),
        "buffered_at": instant(schedule.buffered_at),
        "expected_by": instant(schedule.expected_by),
        "created_at": instant(schedule.created_at),
        "changed_at": instant(schedule.changed_at),
    }


def schedule_of(told: Told) -> Schedule:
    """Return the schedule that was told of, without what is not: when to look at it next, and who is told of it."""
    payload = closed("") if told["args"] is None else encode_call(told["args"], told["kwargs"])
    said = {name: length_of(told[name]) for name in ("grace", "jitter", "expect_success_within")}
    definition = read({**told, **said, "payload": payload, "trigger": _trigger_of(told["trigger"])}, Definition)
    stands = {"tick_at": told["next_tick"], "reason": told["paused_reason"], "overdue": told["state"] == "overdue"}
    unknown = {"due_at": None, "ended_at": None}
    return read({**told, **stands, **unknown, "definition": definition}, Schedule)


def _trigger_of(told: Told) -> Told:
    return {**told, "length": length_of(told["length"])} if "length" in told else told


def _trigger(trigger: Trigger) -> dict[str, object]:
    told: dict[str, object] = msgspec.to_builtins(trigger)
    if isinstance(trigger, Every | After):
        told["length"] = length(trigger.length)
    return {"text": str(trigger), **told}


def preview_document(tick: Preview) -> dict[str, object]:
    return {"at": tick.at.isoformat(), "local": tick.local.isoformat(), "remark": tick.remark}


def preview_of(told: Told) -> Preview:
    return read(told, Preview)


def tick_document(tick: TickRecord) -> dict[str, object]:
    return {
        "at": instant(tick.at),
        "until": instant(tick.until),
        "count": tick.count,
        "verdict": tick.verdict,
        "reason": tick.reason,
        "job": None if tick.job_id is None else str(tick.job_id),
        "node": tick.node,
        "decided_at": instant(tick.decided_at),
    }


def tick_of(told: Told, schedule: str) -> TickRecord:
    return read({**told, "job_id": told["job"], "schedule": schedule}, TickRecord)


def schedule_state(schedule: Schedule, now: datetime) -> str:
    """Return what *schedule* does at present, in words."""
    if schedule.paused:
        return "paused"
    if is_overdue(schedule, now):
        return "overdue"
    if schedule.ended:
        return "ended"
    return "waits for its job" if schedule.awaits else "active"
