"""Alerts that are there without being asked for."""

from __future__ import annotations

from mainspring.model.alert import dead, lag, missing_workers
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.alerts import events
from tests.support.factories import FAILURE, end, new_job


def test_what_everybody_would_like_to_know_is_looked_at_without_being_asked_for(
    store: SqlStore, clock: SettableClock
) -> None:
    rules = {one.id: (one.definition.rule, one.scope) for one in store.alerts()}
    failing = new_job(queue="mail")
    store.enqueue([failing])
    end(store, failing, FAILURE)
    store.enqueue([new_job(queue="mail")])

    told = [events(store)]
    clock.advance("5m")
    told.append(events(store))

    assert rules == {
        "mainspring.dead": (dead(above=0, over="1h"), None),
        "mainspring.lag": (lag("30s"), None),
        "mainspring.workers": (missing_workers(), None),
    }
    assert told == [["firing"], ["firing"]]


def test_whoever_does_not_want_to_know_removes_them(store: SqlStore) -> None:
    removed = [store.remove_alert(one.id) for one in store.alerts()]

    assert removed == [True] * 3
    assert store.alerts() == []
