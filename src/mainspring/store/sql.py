"""SqlStore: the steps, composed over one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any
from uuid import UUID

from mainspring.model.attempt import Attempt
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.journal import LogEntry, LogLine, Progress
from mainspring.model.lifecycle import Settlement
from mainspring.model.session import Beat, NewSession, Session
from mainspring.store import claim, control, enqueue, inspect, journal, migrate, sessions, settle, sweep, transaction
from mainspring.store.database import Database, Listener, Migration, Probe
from mainspring.store.protocol import JobFilter, Promoted


class SqlStore:
    """The store on any database that has a dialect. `protocol.Store` says what each call promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def enqueue(self, jobs: Sequence[NewJob]) -> list[UUID]:
        return enqueue.enqueue(self._db, jobs)

    def claim(self, session: UUID, queue: str, limit: int, tasks: Collection[str] | None = None) -> list[Job]:
        return claim.claim(self._db, session, queue, limit, tasks)

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

    def promote(self, limit: int = 1_000) -> Promoted:
        return sweep.promote(self._db, limit)

    def reap(self) -> int:
        return sweep.reap(self._db)

    def prune(self, age: timedelta) -> int:
        return sweep.prune(self._db, age)

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
