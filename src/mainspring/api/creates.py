"""Creating jobs one by one, for many at the same time: requests that come together share their transactions."""

from __future__ import annotations

from collections import deque
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


class _Part(NamedTuple):
    """Jobs of one team that are stored together, and whether it is known that there is room for them."""

    app: Mainspring
    jobs: Sequence[_Recorded]
    admitted: bool = False


class Creates:
    """Stores jobs for all requests of a server. One that can't be stored fails alone."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._batches: Batches[Wanted, Created] = Batches("create", self._create)
        self.ask, self.start, self.close = self._batches.aask, self._batches.start, self._batches.close

    def _create(self, batch: Sequence[Wanted]) -> list[Created | Exception]:
        prepared = [_prepared(wanted) for wanted in batch]
        of_teams: dict[Mainspring, list[_Recorded]] = {}
        for (caller, _), new in zip(batch, prepared, strict=True):
            if isinstance(new, NewJob):
                of_teams.setdefault(caller.app, []).append(_Recorded(new, _entry(caller, new)))
        stored = _store(deque(_Part(app, jobs) for app, jobs in of_teams.items()))
        jobs = self._app.client.find([one for one in stored.values() if isinstance(one, UUID)])
        return [
            new if isinstance(new, Exception) else _created(wanted.caller.app, new, stored[new.id], jobs)
            for wanted, new in zip(batch, prepared, strict=True)
        ]


def _store(parts: deque[_Part]) -> Stored:
    """Store jobs; return which one stands for each, or why there is none.

    What can't be done for all of a part is done for half of it, after all other parts: one mistake costs its own team
    some transactions, and the others nothing. What fails for one alone, or because the database does not answer, has
    failed. If there is no room for all, what there is room for is stored before it is asked for more.
    """
    stored: Stored = {}
    while parts:
        app, jobs, admitted = parts.popleft()
        new = [one.new for one in jobs]
        try:
            if not admitted:
                app.admit_prepared(new)
            admitted = True  # which is not counted again for those that can be stored
            handles = app.enqueue_prepared(new, [one.entry for one in jobs])
            stored |= {one.id: handle.id for one, handle in zip(new, handles, strict=True)}
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            if len(jobs) == 1 or isinstance(error, StoreError):
                stored |= dict.fromkeys((one.id for one in new), error)
            else:
                middle = len(jobs) // 2
                parts += [_Part(app, half, admitted) for half in (jobs[:middle], jobs[middle:])]
    return stored


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
