"""Alert: raise the alarm when something that should have happened has not, or something has that should not."""

from __future__ import annotations

import logging

from mainspring.errors import StoreError
from mainspring.model.alert import FIRING, AlertEvent
from mainspring.service import node_name
from mainspring.store import Store

EVERY = 5.0
"""Seconds between looks, which cost two small queries where nothing is due."""

log = logging.getLogger("mainspring.alerts")


def alert(store: Store) -> float:
    """Look once, and return the seconds until the next look. One node among all raises each alarm, once."""
    try:
        _tell_of_overdue(store)
    except StoreError as error:  # which must not keep anybody from the alerts
        log.warning("can't look for schedules that are overdue, trying on: %s", error)
    try:
        looked = store.alert(node_name())
    except StoreError as error:
        log.warning("can't look for what is wrong, trying on: %s", error)
        return EVERY
    for alert_id, why in looked.failed.items():
        log.error("can't tell whether alert %s fires, trying again when it is due: %s", alert_id, why)
    for event in looked.events:
        _tell(event)
    return EVERY if looked.next_due is None else min(EVERY, looked.next_due.total_seconds())


def _tell_of_overdue(store: Store) -> None:
    """Say of schedules that they are overdue, also where nobody has made an alert of it."""
    for one in store.find_overdue():
        log.error(
            "schedule %s has had no success: one was expected by %s, %s after its tick",
            one.schedule,
            one.expected_by.isoformat(timespec="seconds"),
            one.within,
        )


def _tell(event: AlertEvent) -> None:
    if event.event == FIRING:
        log.error("alert %s is firing: %s", event.alert, event.message)
    else:
        log.info("alert %s has resolved: %s", event.alert, event.message)
