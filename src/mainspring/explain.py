"""Why a job is not running."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mainspring.model.breaker import PREFIX, Phase, State
from mainspring.model.job import Job, JobState
from mainspring.model.queue import Pausable, Pause
from mainspring.model.text import counted
from mainspring.store import Store

_NAMED = 3
_COUNTED = 10_000
"""Jobs ahead of one that are counted: further on, a number would tell no more."""


class Reason(msgspec.Struct, frozen=True):
    """One reason: a code that stays the same, and a sentence with the facts and what would lift it."""

    code: str
    sentence: str


def explain(store: Store, job: Job, now: datetime) -> list[Reason]:
    """Return every reason why *job* does not run, the first to lift first; none when it runs or has finished.

    That others are ahead of it is only said where nothing else keeps it from running.
    """
    if job.state.final or job.state is JobState.RUNNING:
        return []
    reasons: list[Reason] = []
    if job.expires_at is not None and job.expires_at <= now:
        reasons.append(Reason("expired", f"it could have started until {_at(job.expires_at)}, and will not any more"))
    if job.state in (JobState.SCHEDULED, JobState.RETRYING):
        reasons.append(Reason("not_due", f"it is due at {_at(job.run_at)}"))
    if job.waits_for is not None:
        reasons += _limit(store, job.waits_for, now)
    if job.state is JobState.PAUSED:
        why = f" ({job.reason})" if job.reason else ""
        reasons.append(Reason("paused", f"it was paused{why}; resume it"))
    reasons += _paused(store, job)
    reasons += _missing_worker(store, job)
    return reasons or _behind(store, job)


def _behind(store: Store, job: Job) -> list[Reason]:
    ahead = store.jobs_ahead(job.id, _COUNTED)
    if not ahead:
        return []
    number = f"{ahead:,} or more jobs are" if ahead == _COUNTED else "1 job is" if ahead == 1 else f"{ahead:,} jobs are"
    return [Reason("behind", f"{number} ahead of it in queue {job.queue!r}; it runs when its turn comes")]


def _at(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")


def _limit(store: Store, key: str, now: datetime) -> list[Reason]:
    """Return how the limit stands for which a job waits."""
    standing = store.limit(key)
    if standing is None:
        return []
    if standing.breaker is not None:
        return [_breaker(key.removeprefix(PREFIX), standing.breaker, now)]
    if standing.concurrency is None:
        each = "" if standing.interval is None else f", which lets one start every {standing.interval}"
        return [Reason("rate", f"it waits for its turn at limit {key!r}{each}")]
    holders = ", ".join(map(str, store.slot_holders(key, _NAMED)))
    more = f" and {standing.held - _NAMED} more" if standing.held > _NAMED else ""
    held = f"; running now: {holders}{more}" if holders else ""
    return [Reason("limit", f"limit {key!r} lets {standing.concurrency} run at once, and it has to wait{held}")]


def _breaker(key: str, state: State, now: datetime) -> Reason:
    """Return how the breaker stands for which a job waits."""
    if state.phase(now) is Phase.OPEN and state.until is not None:
        stands = f"is open until {_at(state.until)}, because {state.why}; then a probe goes first"
    else:
        stands = f"was open, because {state.why}, and lets only some start now, as probes"
    return Reason("breaker_open", f"breaker {key!r} {stands}, and the others go on as probes succeed")


def _paused(store: Store, job: Job) -> list[Reason]:
    """Return what is paused of what *job* belongs to, with who did so, why and since when."""
    names = {Pausable.QUEUE: job.queue, Pausable.TASK: job.task}
    return [_pause(pause) for pause in store.pauses() if names[pause.kind] == pause.name]


def _pause(pause: Pause) -> Reason:
    said = f" ({pause.reason})" if pause.reason else ""
    since = _at(pause.since)
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
    serving = [session for session in alive if job.queue in session.queues]
    if not serving:
        return [Reason("no_worker", f"no worker serves queue {job.queue!r}; start one with -q {job.queue}")]
    if not any(job.task in session.tasks for session in serving):
        workers = f"0 of {counted(len(serving), 'worker')} that serve queue {job.queue!r} know task {job.task!r}"
        return [Reason("no_handler", f"{workers}; its code may not be deployed yet, or its name has changed")]
    return []
