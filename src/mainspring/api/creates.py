"""Creating jobs one by one, for many at the same time: requests that come together share their transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from mainspring.api.callers import Caller
from mainspring.app import Mainspring
from mainspring.batches import Batches
from mainspring.errors import JobNotFound, StoreError
from mainspring.model.audit import Entry
from mainspring.model.job import Job, NewJob

Stored = dict[UUID, UUID | Exception]
"""By the id of each job that was asked for the one that stands for it, or why there is none."""


class Wanted(NamedTuple):
    """A job that somebody wants. What it is to be is found out on the thread that creates it."""

    caller: Caller
    prepare: Callable[[], NewJob]


class Created(NamedTuple):
    """The job that stands for a request, and whether it was made by it."""

    job: Job
    new: bool


class _Recorded(NamedTuple):
    """A job to be stored, and what the audit log is to say of that."""

    new: NewJob
    entry: Entry


class Creates:
    """Stores jobs for all requests of a server. One that can't be stored fails alone."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._batches: Batches[Wanted, Created] = Batches("create", self._create)
        self.ask, self.start, self.close = self._batches.aask, self._batches.start, self._batches.close

    def _create(self, batch: Sequence[Wanted]) -> list[Created | Exception]:
        prepared = [_prepared(wanted) for wanted in batch]
        sound = [(wanted.caller, new) for wanted, new in zip(batch, prepared, strict=True) if isinstance(new, NewJob)]
        stored: Stored = {}
        for app in {id(caller.app): caller.app for caller, _ in sound}.values():
            stored |= _store(app, [_Recorded(new, _entry(caller, new)) for caller, new in sound if caller.app is app])
        jobs = self._app.client.find([one for one in stored.values() if isinstance(one, UUID)])
        return [
            new if isinstance(new, Exception) else _created(wanted.caller.app, new, stored[new.id], jobs)
            for wanted, new in zip(batch, prepared, strict=True)
        ]


def _store(app: Mainspring, jobs: Sequence[_Recorded]) -> Stored:
    """Store *jobs* of one team; return which job stands for each, or why there is none.

    If there is no room for all, each is stored before it is asked whether there is room for the next.
    """
    try:
        app.admit_prepared([one.new for one in jobs])
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        return _each_alone(_store, app, jobs, error)
    return _enqueue(app, jobs)


def _enqueue(app: Mainspring, jobs: Sequence[_Recorded]) -> Stored:
    """Store *jobs* for which there is room. One that can't be stored has nothing counted again for the others."""
    try:
        handles = app.enqueue_prepared([one.new for one in jobs], [one.entry for one in jobs])
        return {one.new.id: handle.id for one, handle in zip(jobs, handles, strict=True)}
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        return _each_alone(_enqueue, app, jobs, error)


def _each_alone(
    deed: Callable[[Mainspring, Sequence[_Recorded]], Stored],
    app: Mainspring,
    jobs: Sequence[_Recorded],
    error: Exception,
) -> Stored:
    """Return what comes of *deed* for one job after the other, as it failed for all: they don't depend on each other.

    What fails for one alone, or because the database does not answer, has failed.
    """
    if len(jobs) == 1 or isinstance(error, StoreError):
        return dict.fromkeys((one.new.id for one in jobs), error)
    return {job_id: found for one in jobs for job_id, found in deed(app, [one]).items()}


def _prepared(wanted: Wanted) -> NewJob | Exception:
    try:
        return wanted.prepare()
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        return error


def _entry(caller: Caller, new: NewJob) -> Entry:
    return caller.entry(new.id, task=new.task, queue=new.queue, key=new.key)


def _created(app: Mainspring, new: NewJob, stored: UUID | Exception, jobs: dict[UUID, Job]) -> Created | Exception:
    if isinstance(stored, Exception):
        return stored
    job = jobs.get(stored)
    return JobNotFound(stored) if job is None else Created(app.client.shown(job), stored == new.id)
