"""Why a job is not running."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from mainspring.model.breaker import PREFIX, Phase, State
from mainspring.model.duration import LONGEST
from mainspring.model.job import Job, JobState
from mainspring.model.limits import Gate, Standing
from mainspring.model.links import Edge, IfFailed
from mainspring.model.queue import Pausable, Pause
from mainspring.model.session import Session
from mainspring.model.step import SLEEP
from mainspring.model.text import counted
from mainspring.model.workflow import has_begun, standing
from mainspring.store import Store

_NAMED = 3
_FOR_EVER = LONGEST / 2
"""More is left only to those who wait without a limit, for the longest time that there is."""
_NAMED_JOBS = 2
_LOOKED_AT = 500
"""Parents that are looked at together, of which a job may have thousands."""

_COUNTED = 10_000
"""Jobs ahead of one that are counted: further on, a number would tell no more."""


Sees = Callable[[str | None], bool]
"""Whether what is of a team, as that is stored, is there for whoever asks."""


class Reason(msgspec.Struct, frozen=True):
    """One reason: a code that stays the same, a sentence with the facts, and what lifts it.

    That is what a person can do, or what comes by itself. `estimate` is how long it will probably last, where that
    can be told.
    """

    code: str
    sentence: str
    lift: str
    estimate: timedelta | None = None


def explain(store: Store, job: Job, now: datetime, sees: Sees | None = None) -> list[Reason]:
    """Return every reason why *job* does not run, the first to lift first; none when it runs or has finished.

    *now* is the store's. That others are ahead of it is only said where nothing else keeps it from running. If it is
    told whom one *sees* who asks, jobs of other teams are not named.
    """
    if job.state.final or job.state is JobState.RUNNING:
        return []
    if has_begun(job):
        return [*_members(store, job), *_held(job)]  # it is made of others, and no worker takes it itself
    alive = [session for session in store.sessions() if session.alive]
    reasons = [
        *_expired(job, now),
        *_not_due(store, job, now),
        *_signal(job, now),
        *_limit(store, job, now, sees),
        *_dependency(store, job),
        *_held(job),
        *_paused(store, job),
        *_missing_worker(alive, job),
    ]
    return reasons or _behind(store, job, alive)


def _expired(job: Job, now: datetime) -> list[Reason]:
    if job.expires_at is None or job.expires_at > now:
        return []
    sentence = f"it could have started until {_at(job.expires_at)}, and will not any more"
    return [Reason("expired", sentence, f"run it after all with `mainspring jobs replay {job.id}`, once it has ended")]


def _not_due(store: Store, job: Job, now: datetime) -> list[Reason]:
    if job.state not in (JobState.SCHEDULED, JobState.RETRYING):
        return []
    again = "due again" if job.state is JobState.RETRYING else "due"
    if job.run_at <= now:
        sentence = f"it was {again} at {_at(job.run_at)}, and no scheduler has made it ready yet"
        return [Reason("not_promoted", sentence, "any live worker or `mainspring scheduler` does it by itself")]
    lift = "it is made ready by itself at that time"
    due = f"it sleeps until {_at(job.run_at)}" if _sleeps(store, job) else f"it is {again} at {_at(job.run_at)}"
    return [Reason("not_due", due, lift, job.run_at - now)]


def _sleeps(store: Store, job: Job) -> bool:
    if job.state is not JobState.SCHEDULED or not job.fence:
        return False
    return any(step.pending and step.name.startswith(SLEEP) for step in store.steps(job.id))


def _signal(job: Job, now: datetime) -> list[Reason]:
    """Return for which signal *job* waits, and until when unless that is for ever."""
    if job.state is not JobState.BLOCKED or job.signal is None:
        return []
    left = job.run_at - now
    if left <= timedelta(0):
        sentence = (
            f"it waited for signal {job.signal!r} until {_at(job.run_at)}, and no scheduler has made it ready yet"
        )
        return [Reason("not_promoted", sentence, "any live worker or `mainspring scheduler` does it by itself")]
    until = f" until {_at(job.run_at)}" if left < _FOR_EVER else ""
    return [
        Reason(
            "signal",
            f"it waits for signal {job.signal!r}{until}, and nobody has sent it",
            f"send it with `mainspring jobs signal {job.id} {shlex.quote(job.signal)}`",
            left if until else None,
        )
    ]


def _limit(store: Store, job: Job, now: datetime, sees: Sees | None) -> list[Reason]:
    """Return how the limit stands for which *job* waits."""
    standing = None if job.waits_for is None else store.limit(job.waits_for)
    if standing is None:
        return []
    if standing.breaker is not None:
        return [_breaker(standing.key.removeprefix(PREFIX), standing.breaker, now)]
    ahead = store.waiting_ahead(job.id, _COUNTED)
    before = f", and {_number(ahead)} before it" if ahead else ""
    if standing.interval is not None:
        opens_at = Gate(standing, now).opens_at(ahead)
        each = f"limit {standing.key!r} lets one start every {standing.interval.total_seconds():g} s"
        estimate = None if opens_at is None else max(opens_at - now, timedelta(0))
        return [Reason("rate", each + before, "it goes on by itself when its turn comes", estimate)]
    sentence = (
        f"limit {standing.key!r} lets {standing.concurrency} run at once{_holders(store, standing, sees)}{before}"
    )
    # The pace of its queue would tell of all its jobs, and not of those few that share this key.
    return [Reason("limit", sentence, "it goes on by itself when a slot is free and its turn has come")]


def _holders(store: Store, standing: Standing, sees: Sees | None) -> str:
    holders = store.slot_holders(standing.key, _NAMED)
    if sees is not None:
        found = store.get(holders)
        holders = [job_id for job_id in holders if job_id in found and sees(found[job_id].team)]
    others = standing.held - len(holders)
    more = f" and {others:,} more" if others > 0 else ""
    return f", held by {', '.join(map(str, holders))}{more}" if holders else ""


def _dependency(store: Store, job: Job) -> list[Reason]:
    """Return which of its parents *job* waits for."""
    if not job.pending or job.state not in (JobState.BLOCKED, JobState.PAUSED):
        return []
    edges = job.beginnings.parents
    waiting = _unmet(store, edges)
    told = ", ".join(_parent(parent) for parent in waiting)
    more = f" and {job.pending - len(waiting):,} more" if waiting and job.pending > len(waiting) else ""
    number = f"{job.pending:,} of {len(edges):,} jobs" if len(edges) > 1 else "the job"
    come = "comes" if len(edges) == 1 else "come"
    sentence = f"it waits for {number} that {come} before it{f': {told}{more}' if told else ''}"
    dead = next((parent for parent in waiting if parent.state.final), None)
    if dead is not None:
        return [Reason("dependency", sentence, f"replay that one with `mainspring jobs replay {dead.id}`")]
    ended = "that has" if job.pending == 1 else "they have"
    return [Reason("dependency", sentence, f"it goes on by itself when {ended} ended")]


def _unmet(store: Store, edges: Sequence[Edge]) -> list[Job]:
    """Return some parents that have yet to end, or that failed and are waited for all the same; those first."""
    found: list[Job] = []
    for start in range(0, len(edges), _LOOKED_AT):
        rules = {edge.parent: edge.if_failed for edge in edges[start : start + _LOOKED_AT]}
        for job_id, parent in sorted(store.get(rules).items()):
            failed = parent.state.final and parent.state is not JobState.SUCCEEDED
            if not parent.state.final or (failed and rules[job_id] is IfFailed.WAIT):
                found.append(parent)
        if len(found) >= _NAMED_JOBS:
            break
    return sorted(found, key=lambda parent: not parent.state.final)[:_NAMED_JOBS]


def _parent(job: Job) -> str:
    if not job.state.final:
        return _told(job)
    was = "was " if job.state is JobState.CANCELLED else ""
    return f"job {job.id} ({job.task}) {was}{job.state} and is to be replayed"


def _members(store: Store, job: Job) -> list[Reason]:
    """Return which of its jobs the workflow *job* waits for."""
    if not job.pending:
        sentence = "its jobs have all ended, and nobody has said yet what that makes of it"
        return [Reason("members", sentence, "any live worker or `mainspring scheduler` does it by itself")]
    left = store.unfinished_members(job.id, _NAMED_JOBS)
    told = ", ".join(map(_told, left))
    more = f" and {job.pending - len(left):,} more" if left and job.pending > len(left) else ""
    which = "its last job has" if job.pending == 1 else f"its {job.pending:,} jobs that are left have"
    sentence = f"it ends when {which}{f': {told}{more}' if told else ''}"
    lift = f"it ends by itself then; `mainspring workflows show {job.id}` shows all its jobs"
    return [Reason("members", sentence, lift)]


def _told(job: Job) -> str:
    return f"job {job.id} ({job.task}) is {standing(job)}"


def _held(job: Job) -> list[Reason]:
    if job.state is not JobState.PAUSED:
        return []
    why = f" ({job.reason})" if job.reason else ""
    return [Reason("paused", f"it was paused{why}", f"resume it with `mainspring jobs resume {job.id}`")]


def _breaker(key: str, state: State, now: datetime) -> Reason:
    """Return how the breaker stands for which a job waits."""
    lift = f"it goes on by itself as probes succeed; to try now, `mainspring breakers reset {shlex.quote(key)}`"
    if state.phase(now) is Phase.OPEN and state.until is not None:
        sentence = f"breaker {key!r} is open until {_at(state.until)}, because {state.why}; then a probe goes first"
        return Reason("breaker_open", sentence, lift, state.until - now)
    return Reason(
        "breaker_open", f"breaker {key!r} was open, because {state.why}, and lets only some start now, as probes", lift
    )


def _paused(store: Store, job: Job) -> list[Reason]:
    """Return what is paused of what *job* belongs to, with who did so, why and since when."""
    names = {Pausable.QUEUE: job.queue, Pausable.TASK: job.task}
    return [_pause(pause) for pause in store.pauses() if names[pause.kind] == pause.name]


def _pause(pause: Pause) -> Reason:
    said = f" ({pause.reason})" if pause.reason else ""
    return Reason(
        f"{pause.kind}_paused",
        f"{pause.kind} {pause.name!r} was paused by {pause.by} at {_at(pause.since)}{said}",
        f"resume it with `mainspring {pause.kind}s resume {shlex.quote(pause.name)}`",
    )


def _missing_worker(alive: Sequence[Session], job: Job) -> list[Reason]:
    """Return why no worker that is alive would take *job*, if none would."""
    if not alive:
        return [Reason("no_worker", "no worker is alive", "start one with `mainspring worker`")]
    serving = [session for session in alive if job.queue in session.queues]
    if not serving:
        lift = f"start one with `mainspring worker -q {shlex.quote(job.queue)}`"
        return [Reason("no_worker", f"no worker serves queue {job.queue!r}", lift)]
    if not any(job.task in session.tasks for session in serving):
        sentence = f"0 of {counted(len(serving), 'worker')} of queue {job.queue!r} know task {job.task!r}"
        return [Reason("no_handler", sentence, "start workers with code that has a task of that name")]
    return []


def _behind(store: Store, job: Job, alive: Sequence[Session]) -> list[Reason]:
    known = {task for session in alive if job.queue in session.queues for task in session.tasks}
    ahead = store.jobs_ahead(job.id, _COUNTED, known)
    if not ahead:
        return []
    sentence = f"{_number(ahead)} ahead of it in queue {job.queue!r}"
    pace = store.pace(job.queue)
    lift = "it runs by itself when its turn comes; more workers, or a higher priority, bring that about sooner"
    return [Reason("behind", sentence, lift, None if pace is None else ahead * pace)]


def _number(ahead: int) -> str:
    more = " or more" if ahead == _COUNTED else ""
    return "1 job is" if ahead == 1 else f"{ahead:,}{more} jobs are"


def _at(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
