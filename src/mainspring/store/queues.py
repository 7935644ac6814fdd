"""Queues: pause and resume, of tasks too, ageing, and what waits where. The claim itself looks at what is paused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from mainspring.clock import MICROSECOND
from mainspring.model.job import JobState
from mainspring.model.queue import NewPause, Pausable, Pause, Queue
from mainspring.model.session import Session
from mainspring.model.team import DEFAULT_TEAM, stored_team
from mainspring.store import rows, sessions
from mainspring.store.database import RELEASE, Database, Row

RERANK_BATCH = 500

LOOKED, LOOKED_UP = 25_000, 250_000
"""Rows, and entries of indexes, that a quick count goes through in all: some 20 ms for either database."""

_LEAST, MOST = 100, 100_000
"""Jobs of one queue in one state up to which a quick count goes: by how many queues there are."""

FIRST = 10_000
"""Jobs that come first in their queues, by which a quick look tells how long the oldest of each has been ready."""

QUEUES = 5_000
"""Queues of which it tells that, the first by name: some 20 ms for either database, however few jobs are in each."""


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


def queues(db: Database, team: str | None, quick: bool) -> list[Queue]:
    """See `protocol.Queues.queues`."""
    ageing: dict[str, timedelta] = dict(db.read("ageing"))
    owned = owners(db)
    paused = {pause.name: pause for pause in pauses(db) if pause.kind is Pausable.QUEUE}
    alive = [session for session in sessions.sessions(db) if session.alive]
    backlog = (_look_at_backlog if quick else _backlog)(db, team)
    return [
        Queue(
            name=name,
            pause=paused.get(name),
            ageing=ageing.get(name),
            jobs=backlog.jobs.get(name, {}),
            oldest_ready=backlog.oldest.get(name),
            workers=tuple(session.name for session in alive if name in session.queues),
            team=owned.get(name),
            more=frozenset(backlog.more.get(name, ())),
        )
        for name in sorted({*backlog.jobs, *paused, *ageing, *owned, *_served(alive)})
        if team is None or owned.get(name, team) == team
    ]


class _Backlog:
    """How many jobs there are by queue and state, of which states more, and for how long the oldest has been ready."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[JobState, int]] = {}
        self.more: dict[str, set[JobState]] = {}
        self.oldest: dict[str, timedelta] = {}

    def add(self, queue: str, state: JobState, jobs: int, *, more: bool = False) -> None:
        if jobs or more:
            self.jobs.setdefault(queue, {})[state] = jobs
        if more:
            self.more.setdefault(queue, set()).add(state)

    def waited(self, queue: str, microseconds: int | None) -> None:
        if microseconds is not None:
            self.oldest[queue] = max(timedelta(0), microseconds * MICROSECOND)


def _backlog(db: Database, team: str | None) -> _Backlog:
    """Count all jobs, row by row."""
    if stored_team(team) is not None:
        found = db.read("backlog_of", team=team)
    else:
        found = db.read("backlog", nobodys=team is not None)
    backlog = _Backlog()
    for queue, state, jobs, waited_us in found:
        backlog.add(queue, state, jobs)
        if state is JobState.READY:
            backlog.waited(queue, waited_us)
    return backlog


def _look_at_backlog(db: Database, team: str | None) -> _Backlog:
    """Count jobs by indexes, up to so many of each queue and state; of the default team's, as many as are looked at."""
    if team == DEFAULT_TEAM and db.read("any_teams") == [(False,)]:
        team = None
    backlog = _Backlog()
    for queue, state, jobs, more in _waiting(db, team):
        backlog.add(queue, state, jobs, more=more)
    for queue, jobs in db.read("count_running", team=team):
        backlog.add(queue, JobState.RUNNING, jobs)
    if ready := sorted(queue for queue, jobs in backlog.jobs.items() if JobState.READY in jobs)[:QUEUES]:
        look = max(1, FIRST // len(ready))
        for queue, waited_us, _ in db.read("oldest_ready", queues=rows.document(ready), team=team, look=look):
            backlog.waited(queue, waited_us)
    return backlog


def _waiting(db: Database, team: str | None) -> list[Row]:
    """Return how many jobs of *team*, or of all, wait in which queue and state, and whether there may be more."""
    if stored_team(team) is not None:
        kinds = db.read("backlog_kinds_of", team=team)
        return db.read("count_waiting_of", kinds=_given(kinds), team=team, most=_most(LOOKED_UP, kinds))
    nobodys = team is not None
    kinds = db.read("backlog_kinds")
    most = _most(LOOKED if nobodys else LOOKED_UP, kinds)
    return db.read("count_waiting", kinds=_given(kinds), nobodys=nobodys, most=most)


def _given(kinds: list[Row]) -> str:
    return rows.document((queue, state) for state, queue in kinds)


def _most(looked: int, kinds: list[Row]) -> int:
    """Return up to how many to count of each kind, as a number that people take for a bound: 20,000, not 26,315."""
    most = looked // max(1, len(kinds))
    step = int("1".ljust(len(str(most)), "0"))
    return min(MOST, max(_LEAST, most // step * step))


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
