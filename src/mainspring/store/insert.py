"""Insert: write jobs as rows. For every step that makes jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from mainspring.model.job import NewJob
from mainspring.store import rows
from mainspring.store.database import DUE, Runner

Turns = Mapping[UUID, int]
"""By their ids, the turns of those jobs that have one."""

Waiting = Mapping[UUID, int]
"""By their ids, for how many parents those jobs have to wait that have any."""

NONE: Mapping[UUID, int] = MappingProxyType({})


def insert(
    runner: Runner, jobs: Sequence[NewJob], first: int = 0, turns: Turns = NONE, waiting: Waiting = NONE
) -> list[NewJob]:
    """Store *jobs*, the first of which is number *first* of its batch; return those that were there or had no room."""
    if runner.in_doubt or any(job.key for job in jobs):
        return _insert_unless_taken(runner, jobs, first, turns, waiting)
    # Nothing can be in the way of new ids, so the database need not look before each row.
    runner.run("enqueue", jobs=rows.new_jobs(jobs, turns, waiting), first=first)
    return []


def _insert_unless_taken(
    runner: Runner, jobs: Sequence[NewJob], first: int, turns: Turns, waiting: Waiting
) -> list[NewJob]:
    # After a lost reply the jobs may be stored, and may even have run and finished.
    stored = known(runner, (job.id for job in jobs)) if runner.in_doubt else set()
    missing = [job for job in jobs if job.id not in stored]
    stored |= {
        job_id
        for (job_id,) in runner.run("enqueue_unless_taken", jobs=rows.new_jobs(missing, turns, waiting), first=first)
    }
    return [job for job in jobs if job.id not in stored]


def known(runner: Runner, ids: Iterable[UUID]) -> set[UUID]:
    """Return those of *ids* that jobs have, unfinished or finished."""
    return {row[0] for row in runner.run("get", ids=rows.ids(ids))}


def topics_of(job: NewJob, *, has_turn: bool = False) -> tuple[str, ...]:
    """Return who should hear that *job* is stored, with its turn already or not."""
    if job.run_at is not None or job.expires is not None or (job.fair is not None and not has_turn):
        return DUE, job.queue  # the database's clock says whether that time has come, and when it is over
    return (DUE,) if job.delay else (job.queue,)
