"""Fire: make jobs of the ticks that are due, each once, on any number of nodes.

A node takes the rows of some schedules that are due, asks `model.firing` what becomes of their ticks, and writes jobs,
ticks and the new position in one transaction. There is no leader: the lock on the row keeps others out, and the key of
the tick is the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from mainspring.model import firing, lifecycle
from mainspring.model.firing import Decision
from mainspring.model.job import Job, NewJob
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.schedule import Overlap, Schedule
from mainspring.model.tick import Tick, Verdict
from mainspring.model.trigger import After
from mainspring.store import control, rows
from mainspring.store.database import FIRE, Database, Runner
from mainspring.store.enqueue import insert, known
from mainspring.store.protocol import Fired, Overdue

NewIds = Callable[[int], list[UUID]]

_LOCKED = timedelta(milliseconds=50)
_NO_JOBS = rows.document(verdict for verdict in Verdict if not verdict.is_job)
_BUFFERED = rows.document([Verdict.BUFFERED])


def fire(db: Database, node: str, new_ids: NewIds, limit: int) -> Fired:
    """See `protocol.Sweeps.fire`."""
    looked_at, jobs, topics = db.transact(lambda tx: _fire(tx, node, new_ids, limit))
    db.wake(topics)
    due = db.read("next_fire")
    next_due = timedelta(microseconds=max(0, due[0][0])) if due else None
    if not looked_at and next_due == timedelta(0):
        next_due = _LOCKED  # another node has it in its hands; to look again at once would be to spin
    return Fired(schedules=looked_at, jobs=jobs, next_due=next_due)


def trigger(db: Database, schedule_id: str, job_id: UUID, node: str) -> bool:
    """See `protocol.Schedules.trigger_schedule`."""

    def work(tx: Runner) -> set[str] | None:
        if tx.in_doubt and known(tx, [job_id]):
            return set()  # done by an earlier try, whose reply was lost
        for now, *row in tx.run("lock_schedules", ids=rows.document([schedule_id])):
            tick = Tick(at=now, verdict=Verdict.TRIGGERED)
            return _write(tx, node, [(rows.to_schedule(tuple(row)), tick, job_id)], _BUFFERED)[1]
        return None

    topics = db.transact(work)
    db.wake(topics or ())
    return topics is not None


def backfill(db: Database, schedule_id: str, ticks: Mapping[datetime, UUID], node: str) -> list[UUID]:
    """See `protocol.Schedules.backfill`."""

    def work(tx: Runner) -> tuple[list[UUID], set[str]]:
        if tx.in_doubt and (done := known(tx, ticks.values())):
            return [job_id for job_id in ticks.values() if job_id in done], set()
        for _, *row in tx.run("lock_schedules", ids=rows.document([schedule_id])):
            schedule = rows.to_schedule(tuple(row))
            asked = [(schedule, Tick(at=at, verdict=Verdict.BACKFILLED), job_id) for at, job_id in ticks.items()]
            jobs, topics = _write(tx, node, asked, _NO_JOBS)
            return [job.id for job in jobs], topics
        return [], set()

    made, topics = db.transact(work)
    db.wake(topics)
    return made


def find_overdue(db: Database) -> list[Overdue]:
    """See `protocol.Sweeps.find_overdue`."""
    return [Overdue(*row) for row in db.run("find_overdue")]


def _fire(tx: Runner, node: str, new_ids: NewIds, limit: int) -> tuple[int, int, set[str]]:
    found = tx.run("lock_due_schedules", limit=max(0, limit))
    if not found:
        return 0, 0, set()
    now, schedules = found[0][0], [rows.to_schedule(row[1:]) for row in found]
    unfinished = _unfinished(tx, schedules)
    decided = [(one, firing.decide(one, now, unfinished.get(one.id, ()))) for one in schedules]
    moved = {schedule.id: decision.position for schedule, decision in decided}
    tx.run("move_schedules", positions=rows.positions(moved))
    jobs, topics = _write(tx, node, _with_ids(decided, new_ids), _BUFFERED)
    return len(found), len(jobs), topics | _cancel(tx, decided)


def _unfinished(tx: Runner, schedules: Sequence[Schedule]) -> dict[str, list[UUID]]:
    """Return the jobs of each schedule that have not finished, for those whose ticks depend on it."""
    asked = [schedule.id for schedule in schedules if _depends(schedule)]
    found = tx.run("unfinished_of", schedules=rows.document(asked)) if asked else []
    found.sort(key=itemgetter(0))
    return {schedule: [job_id for _, job_id in jobs] for schedule, jobs in groupby(found, key=itemgetter(0))}


def _depends(schedule: Schedule) -> bool:
    return schedule.definition.overlap is not Overlap.ALLOW or isinstance(schedule.definition.trigger, After)


def _with_ids(
    decided: Sequence[tuple[Schedule, Decision]], new_ids: NewIds
) -> list[tuple[Schedule, Tick, UUID | None]]:
    """Return the ticks of all, with an id for each that is to be a job."""
    ticks = [(schedule, tick) for schedule, decision in decided for tick in decision.ticks]
    ids = iter(new_ids(sum(tick.verdict.is_job for _, tick in ticks)))
    return [(schedule, tick, next(ids) if tick.verdict.is_job else None) for schedule, tick in ticks]


def _write(
    tx: Runner, node: str, ticks: Sequence[tuple[Schedule, Tick, UUID | None]], replaceable: str
) -> tuple[list[NewJob], set[str]]:
    """Record *ticks*, make jobs of those that were not recorded before, and return them with the topics to wake."""
    if not ticks:
        return [], set()
    document = rows.ticks((schedule.id, tick, job_id) for schedule, tick, job_id in ticks)
    recorded = {job_id for (job_id,) in tx.run("keep_ticks", ticks=document, node=node, replaceable=replaceable)}
    jobs = [
        _job(schedule, tick, job_id) for schedule, tick, job_id in ticks if job_id is not None and job_id in recorded
    ]
    if jobs:
        insert(tx, jobs)
    return jobs, {job.queue for job in jobs}


def _job(schedule: Schedule, tick: Tick, job_id: UUID) -> NewJob:
    definition = schedule.definition
    return NewJob(
        id=job_id,
        task=definition.task,
        payload=definition.payload,
        queue=definition.queue,
        priority=definition.priority,
        schedule=schedule.id,
        tick=tick.at,
    )


def _cancel(tx: Runner, decided: Sequence[tuple[Schedule, Decision]]) -> set[str]:
    """Cancel the jobs that stand in the way of a later tick. Their end makes its schedule due."""
    ids = [job_id for _, decision in decided for job_id in decision.cancels]
    if not ids:
        return set()
    topics = control.decide_and_write(tx, ids, _cancel_for_a_later_tick)
    return topics | {FIRE}


def _cancel_for_a_later_tick(job: Job, _: datetime) -> Settlement | Asked | None:
    return lifecycle.cancel(job, "a later tick of its schedule takes its place")
