"""Alerts: stored, looked at, and judged by one node each time that is due, without a leader.

A node takes an alert whose time has come by moving that time on, so that no other does; measures, with nothing locked;
and writes what became of it together with the notices of that, in one transaction, if nobody has judged the alert
since. One that dies in between leaves all as it was: whoever takes the alert next finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model.alert import Alert, AlertEvent, NewAlert, Reading, judge
from mainspring.model.team import stored_team
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.measure import measure
from mainspring.store.notify import leave_notices
from mainspring.store.protocol import Alerted
from mainspring.store.sweep import next_look
from mainspring.store.teams import check_room

_PATIENCE = 2
"""Alerts on which to wait until the deadline: one may be too dear to measure, but where two are, so may be all."""


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
    looked, away = 0, 0
    told: list[AlertEvent] = []
    failed: dict[str, str] = {}
    # One at a time: of many that are taken together the last are due again before they are measured.
    while looked < limit and away < _PATIENCE and (taken := db.run("take_alert")):
        looked += 1
        try:
            told += _look(db, node, taken[0])
        except StoreError as error:
            failed[taken[0][0]] = str(error)
            away += isinstance(error, StoreUnavailable)
    next_due = next_look(db.read("next_alert"), found=bool(looked))
    return Alerted(looked=looked, events=tuple(told), failed=failed, next_due=next_due)


def _look(db: Database, node: str, row: Row) -> Iterable[AlertEvent]:
    """Measure what the alert in *row* asks for, and judge it."""
    taken = rows.to_alert(row)
    if taken is None:
        raise StoreError("it can't be read; a newer version may have written it")
    reading = measure(db, taken.definition.rule, taken.scope)
    told: dict[str, AlertEvent] = {}  # kept from try to try: after a lost reply it has been told already
    db.wake(db.transact(lambda tx: _judge(tx, node, taken, reading, told)))
    return told.values()


def _judge(tx: Runner, node: str, taken: Alert, reading: Reading, told: dict[str, AlertEvent]) -> set[str]:
    """Write what became of it, unless somebody has judged or changed it since; return the topics to wake."""
    for now, *row in tx.run("lock_alert", alert=taken.id):
        one = rows.to_alert(tuple(row))
        # Not by who has taken it since: where measuring takes long, somebody always has.
        if one is None or _version(one) != _version(taken):
            continue
        verdict = judge(one, reading, now)
        tx.run(
            "move_alert",
            alert=one.id,
            status=verdict.state,
            since=verdict.since,
            value=reading.value,
            message=reading.message,
            node=node,
        )
        if verdict.event is not None:
            told[one.id] = verdict.event
            return leave_notices(tx, stored_team(one.scope), verdict.event, one.definition.notify)
    return set()


def _version(one: Alert) -> tuple[object, ...]:
    return one.definition, one.scope, one.evaluated_at
