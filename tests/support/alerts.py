"""Alerts for tests, with as little said as the test needs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mainspring.model.alert import Alert, AlertDefinition, NewAlert, Rule
from mainspring.store.sql import SqlStore

SECOND = timedelta(seconds=1)


def new_alert(rule: Rule, alert_id: str = "a", scope: str | None = None, **changes: Any) -> NewAlert:
    """Return an alert that looks every second, unless the test wants another."""
    return NewAlert(id=alert_id, definition=AlertDefinition(**{"rule": rule, "every": SECOND} | changes), scope=scope)


def stored_alert(store: SqlStore, alert_id: str = "a") -> Alert:
    (found,) = store.alerts(alert_id)
    return found


def events(store: SqlStore, node: str = "node") -> list[str]:
    """Look at what is due, and return what is told by that."""
    looked = store.alert(node)
    assert not looked.failed, looked.failed
    return [event.event for event in looked.events]
