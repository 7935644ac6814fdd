"""Creating jobs one by one, for many at the same time: requests that come together share their transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from mainspring.api.callers import Caller
from mainspring.app import Mainspring
from mainspring.batches import Batches
from mainspring.errors import JobNotFound, StoreError
from mainspring.model.job import Job, NewJob
from mainspring.model.team import DEFAULT_TEAM


class Wanted(NamedTuple):
    """A job that somebody wants. What it is to be is found out on the thread that creates it."""

    caller: Caller
    prepare: Callable[[], NewJob]


class Created(NamedTuple):
    """The job that stands for a request, and whether it was made by it."""

    job: Job
    new: bool


class Creates:
    """Stores jobs for all requests of a server. One that can't be stored fails alone."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._batches: Batches[Wanted, Created] = Batches("create", self._create)
        self.ask, self.start, self.close = self._batches.aask, self._batches.start, self._batches.close

    def _create(self, batch: Sequence[Wanted]) -> list[Created | Exception]:
        prepared = [_prepared(wanted) for wanted in batch]
        sound = [(wanted.caller, new) for wanted, new in zip(batch, prepared, strict=True) if isinstance(new, NewJob)]
        if not sound:
            return [one for one in prepared if isinstance(one, Exception)]
        self._app.audit.record([caller.entry(new.id, **_told(new)) for caller, new in sound])
        stored: dict[UUID, UUID | Exception] = {}
        for app in {id(caller.app): caller.app for caller, _ in sound}.values():
            self._store(app, [new for caller, new in sound if caller.app is app], stored)
        jobs = self._app.client.find([one for one in stored.values() if isinstance(one, UUID)])
        return [
            new if isinstance(new, Exception) else _created(wanted.caller.app, new, stored[new.id], jobs)
            for wanted, new in zip(batch, prepared, strict=True)
        ]

    def _store(self, app: Mainspring, jobs: Sequence[NewJob], stored: dict[UUID, UUID | Exception]) -> None:
        """Store *jobs* of one team together, or one by one if they can't be; note which job stands for each."""
        try:
            app.teams.admit(app.client.scope or DEFAULT_TEAM, jobs=len(jobs))
            for new, handle in zip(jobs, app.enqueue_prepared(jobs), strict=True):
                stored[new.id] = handle.id
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            if len(jobs) == 1 or isinstance(error, StoreError):
                stored.update(dict.fromkeys((new.id for new in jobs), error))
                return
            for new in jobs:
                self._store(app, [new], stored)


def _prepared(wanted: Wanted) -> NewJob | Exception:
    try:
        return wanted.prepare()
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        return error


def _told(new: NewJob) -> dict[str, object]:
    return {"task": new.task, "queue": new.queue, "key": new.key}


def _created(app: Mainspring, new: NewJob, stored: UUID | Exception, jobs: dict[UUID, Job]) -> Created | Exception:
    if isinstance(stored, Exception):
        return stored
    job = jobs.get(stored)
    return JobNotFound(stored) if job is None else Created(app.client.shown(job), stored == new.id)
