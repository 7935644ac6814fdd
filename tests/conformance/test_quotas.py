"""Quotas: what a team may have, and that a rate holds however many ask at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from mainspring.errors import InvalidValue, QuotaExceeded
from mainspring.model.alert import dead
from mainspring.model.channel import Email
from mainspring.model.job import NOTIFY_QUEUE
from mainspring.model.lifecycle import settle
from mainspring.model.notice import WEBHOOK
from mainspring.model.outcome import Succeeded
from mainspring.model.secret import SealedSecret
from mainspring.model.team import Quotas, Team, with_quotas
from mainspring.store import open_store, teams
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.alerts import new_alert
from tests.support.factories import claimed_job, new_jobs
from tests.support.schedules import new_schedule


def refused(store: SqlStore, team: str = "acme", jobs: int = 0, schedules: int = 0) -> QuotaExceeded | None:
    try:
        store.admit_team(team, jobs, schedules)
    except QuotaExceeded as error:
        return error
    return None


def test_a_team_of_which_nothing_was_said_may_have_anything(store: SqlStore) -> None:
    assert store.teams("acme") == []
    assert refused(store, jobs=1_000_000, schedules=1_000_000) is None


def test_what_is_left_out_stays_as_it_is_and_none_lifts_it(store: SqlStore, clock: SettableClock) -> None:
    made_at = clock.now()
    store.set_team("acme", {"max_pending": 5, "max_schedules": 0, "rate": "100/s"})
    clock.advance("1s")
    store.set_team("beta", {})

    changed = store.set_team("acme", {"max_pending": None, "rate": "10/m", "burst": 3})

    assert changed == Team("acme", None, 0, timedelta(seconds=6), 3, made_at)
    assert store.teams() == [changed, Team("beta", created_at=clock.now())]
    assert store.set_team("acme", {"rate": None}).interval is None
    assert store.remove_team("acme")
    assert not store.remove_team("acme")
    assert store.teams("acme") == []


def test_of_what_is_said_of_a_new_team_at_once_nothing_is_lost(
    store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [store, open_store(url)]

    def slowly(known: Team, quotas: Quotas) -> Team:
        time.sleep(0.1)
        return with_quotas(known, quotas)

    monkeypatch.setattr(teams, "with_quotas", slowly)
    said: list[Quotas] = [{"max_pending": 5}, {"max_schedules": 3}]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one, quotas: one.set_team("acme", quotas), stores, said))
    stores[1].close()

    (team,) = store.teams("acme")
    assert (team.max_pending, team.max_schedules) == (5, 3)


@pytest.mark.parametrize(
    "quotas",
    [
        {"max_pending": -1},
        {"max_pending": True},
        {"max_schedules": 1.5},
        {"rate": "fast"},
        {"burst": 1},
        {"rate": "1/s", "burst": 0},
        {"pending": 1},
    ],
)
def test_quotas_that_make_no_sense_are_refused(store: SqlStore, quotas: Any) -> None:
    with pytest.raises(InvalidValue):
        store.set_team("acme", quotas)
    assert store.teams() == []


@pytest.mark.parametrize("team", ["acme", "default"])
def test_there_may_be_as_many_unfinished_jobs_as_the_quota_says(store: SqlStore, team: str) -> None:
    stored = None if team == "default" else team
    store.enqueue([*new_jobs(3, team=stored), *new_jobs(9, team="beta")])
    store.set_team(team, {"max_pending": 5})

    assert refused(store, team, jobs=2) is None
    error = refused(store, team, jobs=3)
    assert error is not None
    assert error.retry_after is None
    assert str(error) == f"team {team!r} may not have more than 5 unfinished jobs"
    assert refused(store, team, schedules=3) is None


def test_a_job_that_has_ended_counts_no_more(store: SqlStore) -> None:
    store.set_team("acme", {"max_pending": 1})
    job = claimed_job(store, team="acme")
    assert refused(store, jobs=1) is not None

    store.settle([settle(job, Succeeded("1"))])

    assert refused(store, jobs=1) is None


@pytest.mark.parametrize("team", ["acme", "default"])
def test_jobs_that_tell_people_do_not_count(store: SqlStore, team: str) -> None:
    """Or a receiver that is down would keep the team from its work."""
    stored = None if team == "default" else team
    store.set_team(team, {"max_pending": 5})
    store.enqueue(new_jobs(50, team=stored, task=WEBHOOK, queue=NOTIFY_QUEUE))
    store.enqueue(new_jobs(3, team=stored))

    assert refused(store, team, jobs=2) is None
    assert refused(store, team, jobs=3) is not None


def test_of_the_default_teams_jobs_only_some_are_looked_at(store: SqlStore) -> None:
    store.set_team("default", {"max_pending": 1})
    store.enqueue(new_jobs(4))

    with patch.object(teams, "_LOOKED_AT_LEAST", 0), patch.object(teams, "_LOOKED_PER_JOB", 1):
        assert refused(store, "default", jobs=1) is not None
        assert teams._pending(store._db, "default", 2) == 2


def test_schedules_are_counted_by_team(store: SqlStore) -> None:
    store.put_schedules(
        [
            new_schedule("@acme/a", team="acme"),
            new_schedule("@beta/a", team="beta"),
            new_schedule("a"),
        ]
    )
    store.set_team("acme", {"max_schedules": 2})
    store.set_team("default", {"max_schedules": 1})

    assert refused(store, schedules=1) is None
    assert refused(store, schedules=2) is not None
    assert refused(store, "default", schedules=1) is not None
    assert refused(store, jobs=5) is None


def test_a_rate_lets_a_burst_through_and_then_one_after_the_other(store: SqlStore, clock: SettableClock) -> None:
    store.set_team("acme", {"rate": "2/s"})

    assert refused(store, jobs=2) is None
    error = refused(store, jobs=1)
    assert error is not None
    assert error.retry_after == 0.5
    both = refused(store, jobs=2)
    assert both is not None
    assert both.retry_after == 1.0

    clock.advance("500ms")
    assert refused(store, jobs=1) is None
    assert refused(store, jobs=1) is not None
    clock.advance("1h")
    assert refused(store, jobs=2) is None
    assert refused(store, jobs=1) is not None


def test_more_at_once_than_the_burst_is_never_let_through(store: SqlStore) -> None:
    store.set_team("acme", {"rate": "2/s"})

    error = refused(store, jobs=3)

    assert error is not None
    assert error.retry_after is None
    assert "2 at most" in str(error)
    assert refused(store, jobs=2) is None


def test_what_is_refused_for_another_reason_takes_nothing_from_the_rate(store: SqlStore) -> None:
    store.set_team("acme", {"rate": "2/s", "max_schedules": 0})

    assert refused(store, jobs=2, schedules=1) is not None
    assert refused(store, jobs=2) is None


def test_a_clock_that_is_set_back_costs_no_more_than_a_burst(store: SqlStore, clock: SettableClock) -> None:
    store.set_team("acme", {"rate": "2/s"})
    assert refused(store, jobs=2) is None

    clock.jump(clock.now() - timedelta(days=1))
    error = refused(store, jobs=1)
    assert error is not None
    assert error.retry_after == 0.5
    clock.advance("500ms")
    assert refused(store, jobs=1) is None


def test_a_rate_holds_exactly_however_many_ask_at_once(store: SqlStore) -> None:
    store.set_team("acme", {"rate": "40/h"})
    admitted: list[int] = []

    def ask() -> None:
        for _ in range(20):
            if refused(store, jobs=1) is None:
                admitted.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(admitted) == 40


# --- what no team may have more of, whatever was said of it


def put_rule(store: SqlStore, team: str | None, name: str) -> None:
    store.put_rule(team or "default", name, Email("ops@example.org"))


def put_alert(store: SqlStore, team: str | None, name: str) -> None:
    store.put_alert(new_alert(dead(), f"@{team}/{name}" if team else name, team))


def put_secret(store: SqlStore, team: str | None, name: str) -> None:
    store.put_secret(SealedSecret(team or "default", name, "v1.k.n.sealed"), "ada")


KINDS = [("rule", put_rule), ("alert", put_alert), ("secret", put_secret)]
Put = Callable[[SqlStore, str | None, str], None]


def names_of(store: SqlStore, kind: str, team: str) -> list[str]:
    if kind == "rule":
        return [one.id for one in store.rules(team)]
    return (
        [one.id for one in store.alerts(scope=team)] if kind == "alert" else [one.name for one in store.secrets(team)]
    )


def test_nobody_has_more_than_a_hundred_rules_which_every_settle_has_to_follow(store: SqlStore) -> None:
    for number in range(100):
        put_rule(store, "acme", f"rule-{number}")

    with pytest.raises(QuotaExceeded, match="team 'acme' may not have more than 100 notifications; remove one"):
        put_rule(store, "acme", "one-more")
    assert len(store.rules("acme")) == 100


@pytest.mark.parametrize(("kind", "put"), KINDS)
def test_what_is_full_takes_nothing_new_until_something_is_removed(store: SqlStore, kind: str, put: Put) -> None:
    with patch.dict(teams.MOST, {kind: 3}):
        for name in "abc":
            put(store, "acme", name)

        with pytest.raises(QuotaExceeded, match="more than 3 "):
            put(store, "acme", "d")
        put(store, "acme", "a")  # which is there
        put(store, "beta", "d")
        remove = {"rule": store.remove_rule, "secret": store.remove_secret}
        assert store.remove_alert("@acme/b") if kind == "alert" else remove[kind]("acme", "b")
        put(store, "acme", "d")

    assert len(names_of(store, kind, "acme")) == 3


def test_alerts_on_everybodys_jobs_are_counted_by_themselves(store: SqlStore) -> None:
    known = len(store.alerts())  # those that every database has
    with patch.dict(teams.MOST, {"alert": known + 1}):
        put_alert(store, "acme", "a")
        put_alert(store, None, "a")

        with pytest.raises(QuotaExceeded, match="team 'default' may not have more than"):
            put_alert(store, None, "b")


@pytest.mark.parametrize(("kind", "put"), KINDS)
def test_many_who_add_at_once_do_not_get_beyond_it_together(store: SqlStore, kind: str, put: Put) -> None:
    ready = threading.Barrier(4)

    def add(who: int) -> None:
        ready.wait()
        for number in range(5):
            with suppress(QuotaExceeded):
                put(store, "acme", f"{who}-{number}")

    with patch.dict(teams.MOST, {kind: 7}):
        threads = [threading.Thread(target=add, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(names_of(store, kind, "acme")) == 7
