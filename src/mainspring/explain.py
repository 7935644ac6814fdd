"""Why a job is not running."""

from __future__ import annotations

import msgspec

from mainspring.model.job import Job, JobState
from mainspring.store import Store


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
    if job.state is JobState.PAUSED:
        why = f" ({job.reason})" if job.reason else ""
        reasons.append(Reason("paused", f"it was paused{why}; resume it"))
    if not any(session.alive for session in store.sessions()):
        reasons.append(Reason("no_worker", "no worker is alive; start one with `mainspring worker`"))
    return reasons
