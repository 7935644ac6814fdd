"""Why a job is not running."""

from __future__ import annotations

import msgspec

from mainspring.model.job import Job, JobState
from mainspring.model.queue import Pausable, Pause
from mainspring.store import Store

_NAMED = 3


class Reason(msgspec.Struct, frozen=True):
    """One reason: a code that stays the same, and a sentence with the facts and what would lift it."""

    code: str
    sentence: str


def explain(store: Store, job: Job) -> list[Reason]:
    """Return every reason why *job* does not run; none when it runs or has finished."""
    if job.state.final or job.state is JobState.RUNNING:
        return []
    reasons: list[Reason] = []
    if job.state in (JobState.SCHEDULED, JobState.RETRYING):
        reasons.append(Reason("not_due", f"it is due at {job.run_at.isoformat(timespec='seconds')}"))
    if job.waits_for is not None:
        reasons += _limit(store, job.waits_for)
    if job.state is JobState.PAUSED:
        why = f" ({job.reason})" if job.reason else ""
        reasons.append(Reason("paused", f"it was paused{why}; resume it"))
    reasons += _paused(store, job)
    reasons += _missing_worker(store, job)
    return reasons


def _limit(store: Store, key: str) -> list[Reason]:
    """Return how the limit stands for which a job waits."""
    standing = store.limit(key)
    if standing is None:
        return []
    if standing.concurrency is None:
        each = "" if standing.interval is None else f", which lets one start every {standing.interval}"
        return [Reason("rate", f"it waits for its turn at limit {key!r}{each}")]
    holders = ", ".join(map(str, store.slot_holders(key, _NAMED)))
    more = f" and {standing.held - _NAMED} more" if standing.held > _NAMED else ""
    held = f"; running now: {holders}{more}" if holders else ""
    return [Reason("limit", f"limit {key!r} lets {standing.concurrency} run at once, and it has to wait{held}")]


def _paused(store: Store, job: Job) -> list[Reason]:
    """Return what is paused of what *job* belongs to, with who did so, why and since when."""
    names = {Pausable.QUEUE: job.queue, Pausable.TASK: job.task}
    return [_pause(pause) for pause in store.pauses() if names[pause.kind] == pause.name]


def _pause(pause: Pause) -> Reason:
    said = f" ({pause.reason})" if pause.reason else ""
    since = pause.since.isoformat(timespec="seconds")
    return Reason(
        f"{pause.kind}_paused",
        f"{pause.kind} {pause.name!r} was paused by {pause.by} at {since}{said}; "
        f"resume it with `mainspring {pause.kind}s resume {pause.name}`",
    )


def _missing_worker(store: Store, job: Job) -> list[Reason]:
    """Return why no worker that is alive would take *job*, if none would."""
    alive = [session for session in store.sessions() if session.alive]
    if not alive:
        return [Reason("no_worker", "no worker is alive; start one with `mainspring worker`")]
    if not any(job.task in session.tasks for session in alive):
        known = "its code may not be deployed yet, or its name has changed"
        return [Reason("unknown_task", f"no worker that is alive has a task named {job.task!r}; {known}")]
    if not any(job.queue in session.queues for session in alive):
        return [
            Reason(
                "unserved_queue", f"no worker that is alive serves queue {job.queue!r}; start one with -q {job.queue}"
            )
        ]
    if not any(job.queue in session.queues and job.task in session.tasks for session in alive):
        return [Reason("no_fit", f"no worker that is alive both serves queue {job.queue!r} and has task {job.task!r}")]
    return []
