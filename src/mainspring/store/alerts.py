"""Alerts: stored, looked at, and judged by one node each time that is due, without a leader.

A node takes the alerts whose time has come by moving that time on, so that no other does; measures, with nothing
locked; and writes what became of each together with the notices of it, in one transaction, if nobody has taken the
alert since. One that dies in between leaves all as it was: whoever takes the alert next finds the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model.alert import Alert, AlertEvent, NewAlert, Reading, judge
from mainspring.model.team import stored_team
from mainspring.store import rows
from mainspring.store.database import Database, Runner
from mainspring.store.measure import measure
from mainspring.store.notify import leave_notices
from mainspring.store.protocol import Alerted
from mainspring.store.sweep import next_look
from mainspring.store.teams import check_room


def put(db: Database, new: NewAlert) -> None:
    """See `protocol.Alerts.put_alert`."""
    definition = rows.alert_definition(new)

    def work(tx: Runner) -> None:
        check_room(tx, "alert", new.scope, new.id)
        tx.run("put_alert", alert=new.id, scope=new.scope, definition=definition, every=new.definition.every)

    db.transact(work)


def alerts(db: Database, alert_id: str | None, scope: str | None) -> list[Alert]:
    """See `protocol.Alerts.alerts`."""
    found = db.read("alerts", alert=alert_id, scope=scope)
    return [alert for row in found if (alert := rows.to_alert(row))]


def remove(db: Database, alert_id: str) -> bool:
    """See `protocol.Alerts.remove_alert`."""
    removed: list[str] = []  # kept from try to try: after a lost reply it is gone already
    db.attempt(lambda session: removed.extend(name for (name,) in session.run("remove_alert", alert=alert_id)))
    return bool(removed)


def alert(db: Database, node: str, limit: int) -> Alerted:
    """See `protocol.Sweeps.alert`."""
    taken = db.run("take_alerts", limit=max(0, limit))
    readable = [one for row in taken if (one := rows.to_alert(row))]
    failed = {
        row[0]: "it can't be read; a newer version may have written it"
        for row in taken
        if row[0] not in {one.id for one in readable}
    }
    readings = _measure(db, readable, failed)
    told: dict[str, AlertEvent] = {}  # kept from try to try: after a lost reply they have been told already
    if readings:
        measured = [one for one in readable if one.id in readings]
        db.wake(db.transact(lambda tx: _judge(tx, node, measured, readings, told)))
    next_due = next_look(db.read("next_alert"), found=bool(taken))
    return Alerted(looked=len(taken), events=tuple(told.values()), failed=failed, next_due=next_due)


def _measure(db: Database, taken: Sequence[Alert], failed: dict[str, str]) -> dict[str, Reading]:
    """Measure what each asks for; one that can't be measured must not keep the others from being judged."""
    readings: dict[str, Reading] = {}
    for one in taken:
        try:
            readings[one.id] = measure(db, one.definition.rule, one.scope)
        except StoreUnavailable:
            raise  # each of the others would take its whole deadline
        except StoreError as error:
            failed[one.id] = str(error)
    return readings


def _judge(
    tx: Runner, node: str, taken: Sequence[Alert], readings: Mapping[str, Reading], told: dict[str, AlertEvent]
) -> set[str]:
    """Write what became of those that nobody has taken or changed since; return the topics to wake."""
    topics: set[str] = set()
    judged = []
    for now, *row in tx.run("lock_taken_alerts", taken=rows.taken_alerts(taken)):
        if (one := rows.to_alert(tuple(row))) is None:
            continue
        judgement = judge(one, readings[one.id], now)
        judged.append((one, judgement, readings[one.id]))
        if judgement.event is not None:
            told[one.id] = judgement.event
            topics |= leave_notices(tx, stored_team(one.scope), judgement.event, one.definition.notify)
    if judged:
        tx.run("move_alerts", moved=rows.moved_alerts(judged), node=node)
    return topics
