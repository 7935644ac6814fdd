"""Schedules: stored, changed, held and looked at. What makes jobs of them is in `fire`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from mainspring.model import firing
from mainspring.model.firing import Decision
from mainspring.model.schedule import NewSchedule, Origin, Schedule
from mainspring.model.tick import TickRecord
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import FIRE, Database, Runner


def put(db: Database, given: Sequence[NewSchedule]) -> None:
    """See `protocol.Schedules.put_schedules`."""
    # Of two with one id the last stands; in the order of ids, so that two calls do not wait for each other in a circle.
    last = sorted({schedule.id: schedule for schedule in given}.values(), key=lambda schedule: schedule.id)
    if last:
        db.transact(lambda tx: _put(tx, last))
        db.wake({FIRE})


def page(db: Database, after: str, limit: int, origin: Origin | None) -> list[Schedule]:
    """See `protocol.Schedules.schedules`."""
    found = db.read("page_schedules", after=after, limit=max(0, limit), origin=origin)
    return [rows.to_schedule(row) for row in found]


def get(db: Database, ids: Collection[str]) -> dict[str, Schedule]:
    """See `protocol.Schedules.get_schedules`."""
    return {row[0]: rows.to_schedule(row) for row in db.read("get_schedules", ids=rows.document(ids))}


def pause(db: Database, ids: Collection[str]) -> set[str]:
    """See `protocol.Schedules.pause_schedules`."""
    return db.transact(lambda tx: _move(tx, ids, lambda schedule, _: firing.pause(schedule), paused=True))


def resume(db: Database, ids: Collection[str], node: str) -> set[str]:
    """See `protocol.Schedules.resume_schedules`."""
    resumed = db.transact(lambda tx: _move(tx, ids, firing.resume, paused=False, node=node))
    db.wake({FIRE})
    return resumed


def remove(db: Database, ids: Collection[str]) -> set[str]:
    """See `protocol.Schedules.remove_schedules`."""
    return {schedule for (schedule,) in db.run("remove_schedules", ids=rows.document(ids))}


def ticks(db: Database, schedule_id: str, before: datetime | None, limit: int) -> list[TickRecord]:
    """See `protocol.Schedules.ticks`."""
    found = db.read("ticks", schedule=schedule_id, before=before, limit=max(0, limit))
    return [TickRecord(*row) for row in found]


def _put(tx: Runner, given: Sequence[NewSchedule]) -> None:
    ((now,),) = tx.run("now")
    for piece in chunks(given, _characters):
        _put_piece(tx, piece, now)


def _put_piece(tx: Runner, given: Sequence[NewSchedule], now: datetime) -> None:
    found = tx.run("lock_schedules", ids=rows.document(schedule.id for schedule in given))
    known = {row[1]: rows.to_schedule(row[1:]) for row in found}
    changed = [
        (schedule, firing.change(before, schedule, now) if before else firing.begin(schedule, now))
        for schedule in given
        if (before := known.get(schedule.id)) is None or _differ(before, schedule)
    ]
    if changed:
        tx.run("put_schedules", schedules=rows.new_schedules(changed))


def _differ(before: Schedule, schedule: NewSchedule) -> bool:
    return (before.definition, before.origin) != (schedule.definition, schedule.origin)


def _characters(schedule: NewSchedule) -> int:
    return len(schedule.definition.payload) + len(schedule.definition.notes or "")


def _move(
    tx: Runner,
    ids: Collection[str],
    decide: Callable[[Schedule, datetime], Decision],
    *,
    paused: bool,
    node: str = "",
) -> set[str]:
    found = [(row[0], rows.to_schedule(row[1:])) for row in tx.run("lock_schedules", ids=rows.document(ids))]
    decided = {schedule.id: decide(schedule, now) for now, schedule in found if schedule.paused is not paused}
    passed = [(schedule, tick, None) for schedule, decision in decided.items() for tick in decision.ticks]
    if passed:
        tx.run("keep_ticks", ticks=rows.ticks(passed), node=node, replaceable="[]")
    if decided:
        moved = {schedule: decision.position for schedule, decision in decided.items()}
        tx.run("move_schedules", positions=rows.positions(moved, paused=paused, anew=True))
    return {schedule.id for _, schedule in found}
