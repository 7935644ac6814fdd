"""Queues: pause and resume, of tasks too, ageing, and what waits where. The claim itself looks at what is paused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from mainspring.clock import MICROSECOND
from mainspring.model.job import JobState
from mainspring.model.queue import NewPause, Pausable, Pause, Queue
from mainspring.model.session import Session
from mainspring.model.team import stored_team
from mainspring.store import sessions
from mainspring.store.database import RELEASE, Database, Row

RERANK_BATCH = 500


def pause(db: Database, wanted: NewPause) -> Pause:
    """See `protocol.Queues.pause_claims`."""
    (row,) = db.run("pause_claims", kind=wanted.kind, name=wanted.name, by=wanted.by, reason=wanted.reason)
    return Pause(*row)


def resume(db: Database, kind: Pausable, name: str) -> bool:
    """See `protocol.Queues.resume_claims`."""
    found: list[Row] = []  # kept from try to try: after a lost reply it is gone
    db.transact(lambda tx: found.extend(tx.run("resume_claims", kind=kind, name=name)))
    if found:
        db.run("look_at_once")  # at limits: what was paused has been left out where it waited for one
        db.wake({RELEASE} | ({name} if kind is Pausable.QUEUE else _served(sessions.sessions(db))))
    return bool(found)


def pauses(db: Database) -> list[Pause]:
    """See `protocol.Queues.pauses`."""
    return [Pause(*row) for row in db.read("pauses")]


def give(db: Database, name: str, team: str | None) -> None:
    """See `protocol.Queues.give_queue`."""
    db.run("give_queue", name=name, team=team)


def owners(db: Database) -> dict[str, str]:
    """See `protocol.Queues.queue_owners`."""
    return dict(db.read("queue_owners"))


def queues(db: Database, team: str | None) -> list[Queue]:
    """See `protocol.Queues.queues`."""
    ageing: dict[str, timedelta] = dict(db.read("ageing"))
    owned = owners(db)
    paused = {pause.name: pause for pause in pauses(db) if pause.kind is Pausable.QUEUE}
    alive = [session for session in sessions.sessions(db) if session.alive]
    jobs: dict[str, dict[JobState, int]] = {}
    oldest: dict[str, timedelta] = {}
    for name, state, count, waited_us in _backlog(db, team):
        jobs.setdefault(name, {})[state] = count
        if state is JobState.READY:
            oldest[name] = max(timedelta(0), waited_us * MICROSECOND)
    return [
        Queue(
            name=name,
            pause=paused.get(name),
            ageing=ageing.get(name),
            jobs=jobs.get(name, {}),
            oldest_ready=oldest.get(name),
            workers=tuple(session.name for session in alive if name in session.queues),
            team=owned.get(name),
        )
        for name in sorted({*jobs, *paused, *ageing, *owned, *_served(alive)})
        if team is None or owned.get(name, team) == team
    ]


def _backlog(db: Database, team: str | None) -> list[Row]:
    stored = stored_team(team)
    if stored is not None:
        return db.read("backlog_of", team=stored)
    return db.read("backlog", nobodys=team is not None)


def set_ageing(db: Database, name: str, ageing: timedelta | None) -> None:
    """See `protocol.Queues.set_ageing`."""
    db.run("set_ageing", name=name, ageing=ageing)
    rerank(db)


def rerank(db: Database) -> int:
    """See `protocol.Sweeps.rerank`."""
    changed = db.read("misranked")
    for name, was, changes in changed:
        last: UUID | None = UUID(int=0)
        while last is not None:
            found = db.run("rerank", queue=name, after=last, limit=RERANK_BATCH, was=was)
            last = found[0][0] if found else None
        db.run("ranked", name=name, changes=changes)
    return len(changed)


def _served(workers: Iterable[Session]) -> set[str]:
    return {name for session in workers for name in session.queues}
