"""SqlStore: the steps, composed over one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mainspring.model.attempt import Attempt
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.journal import LogEntry, LogLine, Progress
from mainspring.model.lifecycle import Settlement
from mainspring.model.schedule import NewSchedule, Origin, Schedule
from mainspring.model.session import Beat, NewSession, Session
from mainspring.model.tick import TickRecord
from mainspring.store import (
    claim,
    control,
    enqueue,
    fire,
    inspect,
    journal,
    migrate,
    schedules,
    sessions,
    settle,
    sweep,
    transaction,
)
from mainspring.store.database import Database, Listener, Migration, Probe
from mainspring.store.protocol import OWN, Fired, JobFilter, Overdue, Promoted


class SqlStore:
    """The store on any database that has a dialect. `protocol.Store` says what each call promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def enqueue(self, jobs: Sequence[NewJob], conn: object = OWN) -> list[UUID]:
        return enqueue.enqueue(self._db, jobs, conn)

    def claim(
        self,
        session: UUID,
        queue: str,
        limit: int,
        tasks: Collection[str] | None = None,
        ahead: timedelta = timedelta(0),
    ) -> list[Job]:
        return claim.claim(self._db, session, queue, limit, tasks, ahead)

    def charge(self, job: Job) -> bool:
        return claim.charge(self._db, job)

    def settle(self, settlements: Sequence[Settlement]) -> set[UUID]:
        return settle.settle(self._db, settlements)

    def transaction(
        self, settlement: Callable[[], Settlement], lines: Sequence[LogLine] = ()
    ) -> AbstractContextManager[Any]:
        return transaction.transaction(self._db, settlement, lines)

    def record(self, lines: Sequence[LogLine], progress: Sequence[Progress]) -> set[UUID]:
        return journal.record(self._db, lines, progress)

    def open_session(self, session: NewSession) -> None:
        sessions.open_session(self._db, session)

    def beat(self, session: UUID, holding: Mapping[UUID, int]) -> Beat:
        return sessions.beat(self._db, session, holding)

    def close_session(self, session: UUID) -> bool:
        return sessions.close_session(self._db, session)

    def sessions(self) -> list[Session]:
        return sessions.sessions(self._db)

    def cancel(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        return control.cancel(self._db, ids, reason)

    def pause(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        return control.pause(self._db, ids, reason)

    def resume(self, ids: Collection[UUID]) -> dict[UUID, JobState]:
        return control.resume(self._db, ids)

    def replay(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        return control.replay(self._db, ids, reason)

    def promote(self, limit: int = 1_000, ahead: timedelta = timedelta(0)) -> Promoted:
        return sweep.promote(self._db, limit, ahead)

    def fire(self, node: str, new_ids: Callable[[int], list[UUID]], limit: int = 1_000) -> Fired:
        return fire.fire(self._db, node, new_ids, limit)

    def find_overdue(self) -> list[Overdue]:
        return fire.find_overdue(self._db)

    def reap(self) -> int:
        return sweep.reap(self._db)

    def prune(self, age: timedelta) -> int:
        return sweep.prune(self._db, age)

    def put_schedules(self, given: Sequence[NewSchedule], node: str = "") -> None:
        schedules.put(self._db, given, node)

    def schedules(self, after: str = "", limit: int = 1_000, origin: Origin | None = None) -> list[Schedule]:
        return schedules.page(self._db, after, limit, origin)

    def get_schedules(self, ids: Collection[str]) -> dict[str, Schedule]:
        return schedules.get(self._db, ids)

    def pause_schedules(self, ids: Collection[str]) -> set[str]:
        return schedules.pause(self._db, ids)

    def resume_schedules(self, ids: Collection[str], node: str) -> set[str]:
        return schedules.resume(self._db, ids, node)

    def remove_schedules(self, ids: Collection[str], node: str = "") -> set[str]:
        return schedules.remove(self._db, ids, node)

    def trigger_schedule(self, schedule_id: str, job_id: UUID, node: str) -> bool:
        return fire.trigger(self._db, schedule_id, job_id, node)

    def backfill(self, schedule_id: str, ticks: Mapping[datetime, UUID], node: str) -> list[UUID]:
        return fire.backfill(self._db, schedule_id, ticks, node)

    def ticks(self, schedule_id: str, before: datetime | None = None, limit: int = 50) -> list[TickRecord]:
        return schedules.ticks(self._db, schedule_id, before, limit)

    def get(self, ids: Collection[UUID]) -> dict[UUID, Job]:
        return inspect.get(self._db, ids)

    def page(self, match: JobFilter | None = None, *, before: UUID | None = None, limit: int = 50) -> list[Job]:
        return inspect.page(self._db, match or JobFilter(), before, limit)

    def counts(self) -> dict[str, dict[JobState, int]]:
        return inspect.counts(self._db)

    def attempts(self, job_id: UUID) -> list[Attempt]:
        return inspect.attempts(self._db, job_id)

    def logs(self, job_id: UUID, after: tuple[int, int] = (0, 0), limit: int = 1_000) -> list[LogEntry]:
        return journal.logs(self._db, job_id, after, limit)

    def listen(self, topics: Collection[str]) -> Listener:
        return self._db.listen(topics)

    def migrate(self) -> list[Migration]:
        return migrate.migrate(self._db)

    def version(self) -> int:
        return self._db.version()

    def probe(self) -> Probe:
        return self._db.probe()

    def close(self) -> None:
        self._db.close()
