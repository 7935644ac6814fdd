"""Schedules: stored, changed, held and looked at. What makes jobs of them is in `fire`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from mainspring.model import firing
from mainspring.model.firing import Decision, Position
from mainspring.model.schedule import NewSchedule, Origin, Schedule
from mainspring.model.team import stored_team
from mainspring.model.tick import TickRecord, Verdict
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import FIRE, Database, Row, Runner


def put(db: Database, given: Sequence[NewSchedule], node: str) -> None:
    """See `protocol.Schedules.put_schedules`."""
    # Of two with one id the last stands; in the order of ids, so that two calls do not wait for each other in a circle.
    last = sorted({schedule.id: schedule for schedule in given}.values(), key=lambda schedule: schedule.id)
    if last:
        db.transact(lambda tx: _put(tx, last, node))
        db.wake({FIRE})


def page(db: Database, after: str, limit: int, origin: Origin | None, team: str | None) -> list[Schedule]:
    """See `protocol.Schedules.schedules`."""
    given = {"after": after, "limit": max(0, limit), "origin": origin}
    stored = stored_team(team)
    if stored is None:
        found = db.read("page_schedules", nobodys=team is not None, **given)
    else:
        found = db.read("page_schedules_of", team=stored, **given)
    return [schedule for row in found if (schedule := rows.to_schedule(row))]


def coming(db: Database, limit: int, team: str | None) -> list[Schedule]:
    """See `protocol.Schedules.coming_schedules`."""
    stored, most = stored_team(team), max(0, limit)
    if stored is None:
        found = db.read("coming_schedules", nobodys=team is not None, limit=most)
    else:
        found = db.read("coming_schedules_of", team=stored, limit=most)
    return [schedule for row in found if (schedule := rows.to_schedule(row))]


def get(db: Database, ids: Collection[str]) -> dict[str, Schedule]:
    """See `protocol.Schedules.get_schedules`."""
    found = db.read("get_schedules", ids=rows.document(ids))
    return {schedule.id: schedule for row in found if (schedule := rows.to_schedule(row))}


def pause(db: Database, ids: Collection[str], by: str, reason: str | None) -> set[str]:
    """See `protocol.Schedules.pause_schedules`."""

    def work(tx: Runner) -> set[str]:
        paused = _move(tx, ids, lambda schedule, _: firing.pause(schedule), paused=True)
        tx.run("note_pause", ids=rows.document(paused), by=by, reason=reason)
        return paused

    return db.transact(work)


def resume(db: Database, ids: Collection[str], node: str) -> set[str]:
    """See `protocol.Schedules.resume_schedules`."""

    def work(tx: Runner) -> set[str]:
        resumed = _move(tx, ids, firing.resume, paused=False, node=node)
        tx.run("note_pause", ids=rows.document(resumed), by=None, reason=None)
        return resumed

    resumed = db.transact(work)
    db.wake({FIRE})
    return resumed


def remove(db: Database, ids: Collection[str], node: str) -> set[str]:
    """See `protocol.Schedules.remove_schedules`."""
    known: set[str] = set()  # kept from try to try: after a lost reply they may be gone
    db.transact(lambda tx: known.update(_remove(tx, ids, node)))
    return known


def ticks(db: Database, schedule_id: str, before: datetime | None, limit: int) -> list[TickRecord]:
    """See `protocol.Schedules.ticks`."""
    found = db.read("ticks", schedule=schedule_id, before=before, limit=max(0, limit))
    return [TickRecord(*row) for row in found]


def _put(tx: Runner, given: Sequence[NewSchedule], node: str) -> None:
    ((now,),) = tx.run("now")
    for piece in chunks(given, _characters):
        _put_piece(tx, piece, now, node)


def _put_piece(tx: Runner, given: Sequence[NewSchedule], now: datetime, node: str) -> None:
    locked = {row[1]: rows.to_schedule(row[1:]) for row in _lock(tx, [schedule.id for schedule in given])}
    differing = [(before, one) for one in given if (before := locked.get(one.id)) and _differ(before, one)]
    changed = [(one, firing.change(before, one, now)) for before, one in differing]
    _record(tx, {schedule.id: decision for schedule, decision in changed}, node)
    unreadable = [schedule for schedule in given if schedule.id in locked and locked[schedule.id] is None]
    _write(
        tx,
        [(schedule, decision.position) for schedule, decision in changed]
        + [(schedule, firing.begin(schedule, now)) for schedule in unreadable],
        replace=True,
    )
    new = [schedule for schedule in given if schedule.id not in locked]
    stored = _write(tx, [(schedule, firing.begin(schedule, now)) for schedule in new], replace=False)
    met = [schedule for schedule in new if schedule.id not in stored]
    if met:  # another node has put these just now, and perhaps fired them
        _put_piece(tx, met, now, node)


def _write(tx: Runner, put: Sequence[tuple[NewSchedule, Position]], *, replace: bool) -> set[str]:
    if not put:
        return set()
    return {row[0] for row in tx.run("put_schedules", schedules=rows.new_schedules(put), replace=replace)}


def _lock(tx: Runner, ids: Collection[str]) -> list[Row]:
    return tx.run("lock_schedules", ids=rows.document(ids))


def _locked(tx: Runner, ids: Collection[str]) -> dict[str, Schedule]:
    """Lock those of *ids* that are stored, and return those of them that can be read."""
    return {schedule.id: schedule for row in _lock(tx, ids) if (schedule := rows.to_schedule(row[1:]))}


def _remove(tx: Runner, ids: Collection[str], node: str) -> set[str]:
    ((now,),) = tx.run("now")
    _record(tx, {one.id: firing.remove(one, now) for one in _locked(tx, ids).values()}, node)
    return {schedule for (schedule,) in tx.run("remove_schedules", ids=rows.document(ids))}


def _record(tx: Runner, decided: Mapping[str, Decision], node: str) -> None:
    ticks = [(schedule, tick, None) for schedule, decision in decided.items() for tick in decision.ticks]
    if ticks:
        tx.run("keep_ticks", ticks=rows.ticks(ticks), node=node, replaceable=rows.document([Verdict.BUFFERED]))


def _differ(before: Schedule, schedule: NewSchedule) -> bool:
    return (before.definition, before.origin) != (schedule.definition, schedule.origin)


def _characters(schedule: NewSchedule) -> int:
    return len(schedule.definition.payload) + len(schedule.definition.notes or "")


def _move(
    tx: Runner, ids: Collection[str], decide: Callable[[Schedule, datetime], Decision], *, paused: bool, node: str = ""
) -> set[str]:
    ((now,),) = tx.run("now")
    found = _locked(tx, ids)
    decided = {one.id: decide(one, now) for one in found.values() if one.paused is not paused}
    _record(tx, decided, node)
    if decided:
        moved = {schedule: decision.position for schedule, decision in decided.items()}
        tx.run("move_schedules", positions=rows.positions(moved, paused=paused, anew=True))
    return set(found)
