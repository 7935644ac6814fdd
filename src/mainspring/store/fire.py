"""Fire: make jobs of the ticks that are due, each once, on any number of nodes.

A node takes the rows of some schedules that are due, asks `model.firing` what becomes of their ticks, and writes jobs,
ticks and the new position in one transaction. There is no leader: the lock on the row keeps others out, and the key of
the tick is the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import msgspec

from mainspring.clock import SystemClock
from mainspring.model import firing, lifecycle, notice
from mainspring.model.firing import Decision
from mainspring.model.job import Job, NewJob
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.notice import Notice
from mainspring.model.schedule import Schedule
from mainspring.model.tick import Tick, Verdict
from mainspring.model.trigger import ticks as ticks_of
from mainspring.model.workflow import Plan, encode_plan
from mainspring.store import control, rows
from mainspring.store.chunks import chunks
from mainspring.store.database import FIRE, Database, Row, Runner
from mainspring.store.insert import insert, known, topics_of
from mainspring.store.notify import spread
from mainspring.store.protocol import Fired, Overdue
from mainspring.store.sweep import next_look

NewIds = Callable[[int], list[UUID]]

_PUT_OFF = timedelta(minutes=1)

_BUDGET = 1.0
_MOST_JOBS = 5_000
"""Seconds of deciding, and ticks, in one transaction: after an outage there may be much to make up for, and others wait
for the same locks."""

_MOST_OVERDUE = 1_000
"""Schedules to find overdue in one transaction, which stores what people are told of them as well."""

_NO_JOBS = rows.document(verdict for verdict in Verdict if not verdict.is_job)
_BUFFERED = rows.document([Verdict.BUFFERED])


def fire(db: Database, node: str, new_ids: NewIds, limit: int) -> Fired:
    """See `protocol.Sweeps.fire`."""
    batch, topics = db.transact(lambda tx: _fire(tx, node, new_ids, limit))
    db.wake(topics)
    next_due = next_look(db.read("next_fire"), found=bool(batch.schedules))
    return msgspec.structs.replace(batch, next_due=next_due)


def trigger(db: Database, schedule_id: str, job_id: UUID, node: str) -> bool:
    """See `protocol.Schedules.trigger_schedule`."""

    def work(tx: Runner) -> set[str] | None:
        if tx.in_doubt and known(tx, [job_id]):
            return set()  # done by an earlier try, whose reply was lost
        locked = _lock(tx, schedule_id)
        return None if locked is None else _trigger(tx, node, *locked, job_id)

    topics = db.transact(work)
    db.wake(topics or ())
    return topics is not None


def backfill(db: Database, schedule_id: str, ticks: Mapping[datetime, UUID], node: str) -> list[UUID]:
    """See `protocol.Schedules.backfill`."""

    def work(tx: Runner) -> tuple[list[UUID], set[str]]:
        if tx.in_doubt and (done := known(tx, ticks.values())):
            return [job_id for job_id in ticks.values() if job_id in done], set()
        locked = _lock(tx, schedule_id)
        return ([], set()) if locked is None else _backfill(tx, node, *locked, ticks)

    made, topics = db.transact(work)
    db.wake(topics)
    return made


def find_overdue(db: Database) -> list[Overdue]:
    """See `protocol.Sweeps.find_overdue`."""
    overdue: list[Overdue] = []
    full = True
    while full:
        found, topics = db.transact(_find_overdue)
        db.wake(topics)
        overdue += found
        full = len(found) == _MOST_OVERDUE
    return overdue


def _find_overdue(tx: Runner) -> tuple[list[Overdue], set[str]]:
    overdue: list[Overdue] = []
    notices: list[Notice] = []
    for within, *row in tx.run("find_overdue", limit=_MOST_OVERDUE):
        standing, schedule = rows.standing(tuple(row)), rows.to_schedule(tuple(row))
        assert standing.expected_by is not None
        overdue.append(Overdue(standing.id, standing.expected_by, within))
        if schedule is not None:
            notices.append(notice.of_overdue(schedule, standing.expected_by))
    return overdue, spread(tx, notices)


def _lock(tx: Runner, schedule_id: str) -> tuple[Schedule, datetime] | None:
    for now, *row in tx.run("lock_schedules", ids=rows.document([schedule_id])):
        schedule = rows.to_schedule(tuple(row))
        return None if schedule is None else (schedule, now)
    return None


def _trigger(tx: Runner, node: str, schedule: Schedule, now: datetime, job_id: UUID) -> set[str]:
    """Make the job of a tick at *now*, or in the first microsecond after it that is not on record."""
    made: list[NewJob] = []
    topics: set[str] = set()
    while not made:
        made, topics = _write(tx, node, [(schedule, Tick(at=now, verdict=Verdict.TRIGGERED), job_id)], "[]", now)
        now += datetime.resolution
    return topics


def _backfill(
    tx: Runner, node: str, schedule: Schedule, now: datetime, ticks: Mapping[datetime, UUID]
) -> tuple[list[UUID], set[str]]:
    asked = {at: job_id for at, job_id in ticks.items() if at <= now}
    rest = [(schedule, tick, None) for tick in _rest_of_spans(tx, schedule, asked)]
    past = [(schedule, Tick(at=at, verdict=Verdict.BACKFILLED), job_id) for at, job_id in asked.items()]
    jobs, topics = _write(tx, node, [*rest, *past], _NO_JOBS, now)
    return [job.id for job in jobs], topics


def _rest_of_spans(tx: Runner, schedule: Schedule, asked: Collection[datetime]) -> list[Tick]:
    """Take the records that stand for several ticks and begin with one of *asked*; return what is left of them."""
    found = tx.run("take_spans", schedule=schedule.id, ats=rows.instants(asked)) if asked else []
    left: list[Tick] = []
    for at, until, count, verdict, reason in found:
        taken = sum(at <= one <= until for one in asked)
        first = next((one for one in ticks_of(schedule.definition.trigger, at, until) if one not in asked), None)
        if first is not None:
            some = None if count is None else count - taken
            one_left = first == until
            left.append(Tick(at=first, until=None if one_left else until, count=some, verdict=verdict, reason=reason))
    return left


def _fire(tx: Runner, node: str, new_ids: NewIds, limit: int) -> tuple[Fired, set[str]]:
    found = tx.run("lock_due_schedules", limit=max(0, limit))
    if not found:
        return Fired(schedules=0, jobs=0, next_due=None, failed={}), set()
    now = found[0][0]
    decided, failed = _decide(tx, [row[1:] for row in found], now)
    moved = {schedule.id: decision.position for schedule, decision in decided}
    moved |= {row[1]: firing.postpone(rows.standing(row[1:]), now + _PUT_OFF) for row in found if row[1] in failed}
    tx.run("move_schedules", positions=rows.positions(moved))
    jobs, topics = _write(tx, node, _with_ids(decided, new_ids), _BUFFERED, now)
    _mend(tx, decided, jobs, now)
    fired = Fired(schedules=len(moved), jobs=len(jobs), next_due=None, failed=failed)
    topics |= _cancel(tx, decided)
    return fired, topics | _notify(tx, decided, jobs)


def _notify(tx: Runner, decided: Sequence[tuple[Schedule, Decision]], jobs: Sequence[NewJob]) -> set[str]:
    """Have those told that want to know of ticks that were late or missed; return the topics to wake."""
    made = {(job.schedule, job.tick) for job in jobs}
    notices: list[Notice] = []
    for schedule, decision in decided:
        ticks = [tick for tick in decision.ticks if not tick.verdict.is_job or (schedule.id, tick.at) in made]
        notices += notice.of_ticks(schedule, ticks)
    return spread(tx, notices)


def _decide(tx: Runner, found: Sequence[Row], now: datetime) -> tuple[list[tuple[Schedule, Decision]], dict[str, str]]:
    """Decide for as many as can be decided and written in good time; the others are still due when these are done.

    One for which nothing can be decided, because it can't be read or its time zone is not known here, must not keep the
    others from firing.
    """
    clock = SystemClock()
    give_up = clock.steady() + _BUDGET
    schedules = {row[0]: rows.to_schedule(row) for row in found}
    failed = {
        one: "it can't be read; a newer version may have written it" for one, read in schedules.items() if not read
    }
    readable = [schedule for schedule in schedules.values() if schedule]
    unfinished = _unfinished(tx, readable)
    decided: list[tuple[Schedule, Decision]] = []
    jobs = 0
    for one in readable:
        if jobs > _MOST_JOBS or clock.steady() > give_up:
            break
        try:
            decision = firing.decide(one, now, unfinished.get(one.id, ()))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with this one, it is not wrong with all
            failed[one.id] = str(error)
        else:
            decided.append((one, decision))
            jobs += len(decision.ticks)
    return decided, failed


def _unfinished(tx: Runner, schedules: Sequence[Schedule]) -> dict[str, list[UUID]]:
    """Return the jobs of each schedule that have not finished, for those whose ticks depend on it."""
    asked = [schedule.id for schedule in schedules if schedule.definition.depends]
    found = tx.run("unfinished_of", schedules=rows.document(asked)) if asked else []
    found.sort(key=itemgetter(0))
    return {schedule: [job_id for _, job_id in jobs] for schedule, jobs in groupby(found, key=itemgetter(0))}


def _with_ids(
    decided: Sequence[tuple[Schedule, Decision]], new_ids: NewIds
) -> list[tuple[Schedule, Tick, UUID | None]]:
    """Return the ticks of all, with an id for each that is to be a job."""
    ticks = [(schedule, tick) for schedule, decision in decided for tick in decision.ticks]
    ids = iter(new_ids(sum(tick.verdict.is_job for _, tick in ticks)))
    return [(schedule, tick, next(ids) if tick.verdict.is_job else None) for schedule, tick in ticks]


def _write(
    tx: Runner, node: str, ticks: Sequence[tuple[Schedule, Tick, UUID | None]], replaceable: str, now: datetime
) -> tuple[list[NewJob], set[str]]:
    """Record *ticks*, make jobs of those that were not recorded before, and return them with the topics to wake."""
    jobs: list[NewJob] = []
    for piece in chunks(ticks, lambda one: len(one[0].definition.payload)):
        document = rows.ticks((schedule.id, tick, job_id) for schedule, tick, job_id in piece)
        recorded = {job_id for (job_id,) in tx.run("keep_ticks", ticks=document, node=node, replaceable=replaceable)}
        made = [_job(schedule, tick, job_id, now) for schedule, tick, job_id in piece if job_id and job_id in recorded]
        if made:
            insert(tx, made, len(jobs))
        jobs += made
    return jobs, {topic for job in jobs for topic in topics_of(job)}


def _job(schedule: Schedule, tick: Tick, job_id: UUID, now: datetime) -> NewJob:
    definition = schedule.definition
    job = NewJob(
        id=job_id,
        task=definition.task,
        payload=definition.payload,
        queue=definition.queue,
        priority=definition.priority,
        run_at=firing.starts_at(schedule, tick, now),
        schedule=schedule.id,
        tick=tick.at,
        expires=definition.expires,
        fair=definition.fair,
        plan=encode_plan(Plan()) if definition.workflow else None,
        notify=definition.notify,
    )
    return job if definition.team is None else job.given_to(definition.team)


def _mend(tx: Runner, decided: Sequence[tuple[Schedule, Decision]], jobs: Sequence[NewJob], now: datetime) -> None:
    """Set those right that count on a job which was not made, because its tick was on record."""
    if len(jobs) == sum(tick.verdict.is_job for _, decision in decided for tick in decision.ticks):
        return
    made = Counter(job.schedule for job in jobs)
    unmade = {
        schedule.id: firing.unmade(schedule, decision, missing, now)
        for schedule, decision in decided
        if (missing := sum(tick.verdict.is_job for tick in decision.ticks) - made[schedule.id])
    }
    tx.run("move_schedules", positions=rows.positions(unmade))


def _cancel(tx: Runner, decided: Sequence[tuple[Schedule, Decision]]) -> set[str]:
    """Cancel the jobs that stand in the way of a later tick. Their end makes its schedule due."""
    ids = [job_id for _, decision in decided for job_id in decision.cancels]
    if not ids:
        return set()
    topics = control.decide_and_write(tx, ids, _cancel_for_a_later_tick)
    return topics | {FIRE}


def _cancel_for_a_later_tick(job: Job, _: datetime) -> Settlement | Asked | None:
    return lifecycle.cancel(job, "a later tick of its schedule takes its place")
