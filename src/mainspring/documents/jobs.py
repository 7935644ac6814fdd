"""A job as programs are told of it."""

from __future__ import annotations

from collections.abc import Callable

from mainspring.documents.values import instant, plain, seconds
from mainspring.errors import InvalidKey, KeyMissing, SealBroken
from mainspring.explain import Reason
from mainspring.keys import Keyring, open_payload, open_result, open_step
from mainspring.model.attempt import Attempt
from mainspring.model.job import Job
from mainspring.model.journal import FoundLine, LogEntry
from mainspring.model.payload import decode_call
from mainspring.model.sealed import is_closed
from mainspring.model.step import Step
from mainspring.model.team import DEFAULT_TEAM


def job_document(job: Job, keys: Keyring) -> dict[str, object]:
    """Return *job*; of one that is encrypted, what *keys* can't open is null."""
    payload = opened(lambda: open_payload(keys, job))
    call = None if payload is None else decode_call(payload)
    return {
        "id": str(job.id),
        "team": job.team or DEFAULT_TEAM,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state,
        "key": job.key,
        "args": None if call is None else call.args,
        "kwargs": None if call is None else call.kwargs,
        "encrypted": is_closed(job.payload),
        "created_at": instant(job.created_at),
        "run_at": instant(job.run_at),
        "expires_at": instant(job.expires_at),
        "started_at": instant(job.started_at),
        "finished_at": instant(job.finished_at),
        "attempt": job.attempt,
        "losses": job.losses,
        "fence": job.fence,
        "session": None if job.session is None else str(job.session),
        "wish": job.wish,
        "reason": job.reason,
        "signal": job.signal,
        "outcome": job.outcome,
        "result": None if job.result is None else plain(opened(lambda: open_result(keys, job))),
        "error": plain(job.error),
        "progress": plain(job.progress),
        "workflow": None if job.workflow is None else str(job.workflow),
        "parents": [{"id": str(edge.parent), "if_failed": edge.if_failed} for edge in job.beginnings.parents],
        "pending": job.pending,
    }


def opened(look: Callable[[], str | None]) -> str | None:
    """Return what *look* finds, or None if that can't be opened here: all else about a job can be seen without keys."""
    try:
        return look()
    except (KeyMissing, SealBroken, InvalidKey):
        return None


def attempt_document(attempt: Attempt) -> dict[str, object]:
    return {
        "number": attempt.number,
        "fence": attempt.fence,
        "session": str(attempt.session),
        "worker": attempt.worker,
        "started_at": instant(attempt.started_at),
        "finished_at": instant(attempt.finished_at),
        "duration_seconds": seconds(attempt.duration),
        "outcome": attempt.outcome,
        "error": plain(attempt.error),
        "details": attempt.facts,
    }


def step_document(job: Job, step: Step, keys: Keyring) -> dict[str, object]:
    return {
        "name": step.name,
        "at": instant(step.at),
        "until": instant(step.until),
        "pending": step.pending,
        "result": plain(opened(lambda: open_step(keys, job, step).result)),
    }


def line_document(entry: LogEntry) -> dict[str, object]:
    return {
        "at": instant(entry.at),
        "level": entry.level,
        "message": entry.message,
        "logger": entry.logger,
        "fence": entry.fence,
        "number": entry.number,
    }


def found_document(found: FoundLine) -> dict[str, object]:
    """Return a line that was searched for among those of all jobs."""
    line = LogEntry(found.fence, found.number, found.at, found.level, found.message, found.logger)
    return {"job": str(found.job_id), "task": found.task, **line_document(line)}


def reason_document(reason: Reason) -> dict[str, object]:
    return {
        "code": reason.code,
        "sentence": reason.sentence,
        "estimate_seconds": seconds(reason.estimate),
        "lift": reason.lift,
    }
