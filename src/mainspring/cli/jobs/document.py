"""A job as programs are told of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from mainspring.explain import Reason
from mainspring.model.attempt import Attempt
from mainspring.model.job import Job
from mainspring.model.journal import LogEntry
from mainspring.model.payload import decode_call
from mainspring.model.step import Step


def job_document(job: Job) -> dict[str, object]:
    call = decode_call(job.payload)
    return {
        "id": str(job.id),
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state,
        "key": job.key,
        "args": call.args,
        "kwargs": call.kwargs,
        "created_at": _instant(job.created_at),
        "run_at": _instant(job.run_at),
        "expires_at": _instant(job.expires_at),
        "started_at": _instant(job.started_at),
        "finished_at": _instant(job.finished_at),
        "attempt": job.attempt,
        "losses": job.losses,
        "fence": job.fence,
        "session": None if job.session is None else str(job.session),
        "wish": job.wish,
        "reason": job.reason,
        "signal": job.signal,
        "outcome": job.outcome,
        "result": _json(job.result),
        "error": _json(job.error),
        "progress": _json(job.progress),
        "workflow": None if job.workflow is None else str(job.workflow),
        "parents": [{"id": str(edge.parent), "if_failed": edge.if_failed} for edge in job.beginnings.parents],
        "pending": job.pending,
    }


def attempt_document(attempt: Attempt) -> dict[str, object]:
    return {
        "number": attempt.number,
        "fence": attempt.fence,
        "session": str(attempt.session),
        "started_at": _instant(attempt.started_at),
        "finished_at": _instant(attempt.finished_at),
        "outcome": attempt.outcome,
        "error": _json(attempt.error),
    }


def step_document(step: Step) -> dict[str, object]:
    return {
        "name": step.name,
        "at": _instant(step.at),
        "until": _instant(step.until),
        "pending": step.pending,
        "result": _json(step.result),
    }


def line_document(entry: LogEntry) -> dict[str, object]:
    return {
        "at": _instant(entry.at),
        "level": entry.level,
        "message": entry.message,
        "fence": entry.fence,
        "number": entry.number,
    }


def reason_document(reason: Reason) -> dict[str, object]:
    estimate = reason.estimate
    return {
        "code": reason.code,
        "sentence": reason.sentence,
        "estimate_seconds": None if estimate is None else estimate.total_seconds(),
        "lift": reason.lift,
    }


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
