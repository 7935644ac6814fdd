"""The loop that alerts: what it logs, and when it looks again."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from mainspring.errors import StoreUnavailable
from mainspring.model.alert import dead
from mainspring.scheduler import Scheduler
from mainspring.scheduler.alert import EVERY, alert
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.alerts import new_alert, stored_alert
from tests.support.databases import execute, table
from tests.support.factories import FAILURE, end, new_job
from tests.support.schedules import fire, new_schedule
from tests.support.waiting import until


def fail_one(store: SqlStore) -> None:
    job = new_job()
    store.enqueue([job])
    end(store, job, FAILURE)


def test_what_fires_and_what_resolves_is_logged(
    store: SqlStore, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    fail_one(store)
    store.put_alert(new_alert(dead(over="10m"), alert_id="letters"))

    with caplog.at_level(logging.INFO, "mainspring.alerts"):
        alert(store)
        alert(store)
        clock.advance("10m")
        alert(store)

    assert [(one.levelname, one.message) for one in caplog.records if "letters" in one.message] == [
        ("ERROR", "alert letters is firing: at least 1 job failed for good within 10m"),
        ("INFO", "alert letters has resolved: 0 jobs failed for good within 10m"),
    ]


def test_a_schedule_without_success_is_logged_once_though_nobody_made_an_alert_of_it(
    store: SqlStore, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    store.put_schedules([new_schedule("nightly", expect_success_within=timedelta(seconds=30))])
    clock.advance("1m")
    fire(store)
    clock.advance("30s")

    alert(store)
    alert(store)

    told = [message for message in caplog.messages if "nightly" in message]
    assert told == [
        "schedule nightly has had no success: one was expected by 2026-01-01T12:01:30+00:00, 0:00:30 after its tick"
    ]


def test_it_comes_back_when_the_next_is_due_but_not_much_later(store: SqlStore, clock: SettableClock) -> None:
    for one in store.alerts():
        store.remove_alert(one.id)
    pauses = [alert(store)]
    store.put_alert(new_alert(dead(), every=timedelta(seconds=2)))
    pauses.append(alert(store))
    store.put_alert(new_alert(dead(), every=timedelta(hours=1)))
    pauses.append(alert(store))

    assert pauses == [EVERY, 2.0, EVERY]


def test_one_that_can_not_be_read_is_logged(store: SqlStore, url: str, caplog: pytest.LogCaptureFixture) -> None:
    store.put_alert(new_alert(dead()))
    execute(url, f"UPDATE {table(url, 'alerts')} SET definition = '{{}}' WHERE id = 'a'")

    alert(store)

    assert "can't tell whether alert a fires, trying again when it is due: it can't be read" in caplog.text


def test_a_database_that_is_away_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    class Away:
        def find_overdue(self) -> None:
            raise StoreUnavailable("away")

        def alert(self, node: str) -> None:
            raise StoreUnavailable("still away")

    assert alert(Away()) == EVERY  # type: ignore[arg-type]
    assert caplog.messages == [
        "can't look for schedules that are overdue, trying on: away",
        "can't look for what is wrong, trying on: still away",
    ]


def test_the_scheduler_looks_at_alerts(store: SqlStore) -> None:
    store.put_alert(new_alert(dead()))
    scheduler = Scheduler(store)
    scheduler.start()
    until(lambda: stored_alert(store).evaluated_at)
    scheduler.close(timeout=60)
