"""A job as programs are told of it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msgspec.structs import replace

from mainspring.documents.values import Told, instant, plain, read, seconds, seconds_of, stored
from mainspring.errors import InvalidKey, KeyMissing, SealBroken
from mainspring.explain import Reason
from mainspring.keys import Keyring, open_payload, open_result, open_step
from mainspring.model.attempt import Attempt
from mainspring.model.job import Job
from mainspring.model.journal import FoundLine, LogEntry
from mainspring.model.payload import decode_call
from mainspring.model.picture import Kind
from mainspring.model.sealed import is_closed
from mainspring.model.step import Step
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.workflow import standing


def job_document(job: Job, keys: Keyring) -> dict[str, object]:
    """Return *job*; of one that is encrypted, what *keys* can't open is null."""
    payload = opened(lambda: open_payload(keys, job))
    call = None if payload is None else decode_call(payload)
    return {
        "id": str(job.id),
        "kind": Kind.JOB if job.plan is None else Kind.WORKFLOW,
        "team": job.team or DEFAULT_TEAM,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state,
        "standing": standing(job),
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


def attempt_of(told: Told, job_id: UUID) -> Attempt:
    texts = {name: stored(told[name]) for name in ("error", "details")}
    return read({**told, **texts, "job_id": job_id}, Attempt)


def opened_step(job: Job, step: Step, keys: Keyring) -> Step:
    """Return *step* of *job*, without a result if *keys* can't open it."""
    return replace(step, result=opened(lambda: open_step(keys, job, step).result), passed=not step.pending)


def step_document(step: Step) -> dict[str, object]:
    return {
        "name": step.name,
        "at": instant(step.at),
        "until": instant(step.until),
        "pending": step.pending,
        "result": plain(step.result),
    }


def step_of(told: Told) -> Step:
    return read({**told, "result": stored(told["result"]), "passed": not told["pending"]}, Step)


def line_document(entry: LogEntry) -> dict[str, object]:
    return {
        "at": instant(entry.at),
        "level": entry.level,
        "message": entry.message,
        "logger": entry.logger,
        "fence": entry.fence,
        "number": entry.number,
    }


def line_of(told: Told) -> LogEntry:
    return read(told, LogEntry)


def found_document(found: FoundLine) -> dict[str, object]:
    """Return a line that was searched for among those of all jobs."""
    line = LogEntry(found.fence, found.number, found.at, found.level, found.message, found.logger)
    return {"job": str(found.job_id), "task": found.task, **line_document(line)}


def found_of(told: Told) -> FoundLine:
    return read({**told, "job_id": told["job"]}, FoundLine)


def reason_document(reason: Reason) -> dict[str, object]:
    return {
        "code": reason.code,
        "sentence": reason.sentence,
        "estimate_seconds": seconds(reason.estimate),
        "lift": reason.lift,
    }


def reason_of(told: Told) -> Reason:
    return read({**told, "estimate": seconds_of(told["estimate_seconds"])}, Reason)
