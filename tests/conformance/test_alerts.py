"""Alerts: each rule fires and resolves once, one node looks at a time, and what is told is told with the change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model.alert import (
    Alert,
    AlertEvent,
    AlertState,
    Rule,
    age,
    dead,
    depth,
    error_rate,
    lag,
    missed_schedules,
    missing_workers,
    stuck,
)
from mainspring.model.channel import Channel, Webhook
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Outcome
from mainspring.model.schedule import Misfire
from mainspring.model.session import NewSession
from mainspring.model.trigger import every
from mainspring.store import alerts as store_alerts
from mainspring.store import measure, open_store
from mainspring.store.database import Runner
from mainspring.store.insert import insert
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.alerts import events, new_alert, stored_alert
from tests.support.databases import execute, table
from tests.support.factories import (
    FAILURE,
    SUCCESS,
    claimed_job,
    new_id,
    new_job,
    new_jobs,
    opened_session,
)
from tests.support.schedules import fire, new_schedule

LONG = timedelta(days=900)


@pytest.fixture(autouse=True)
def _no_others(store: SqlStore) -> None:
    """Remove the alerts that are there without being asked for."""
    for one in store.alerts():
        store.remove_alert(one.id)


def end_some(store: SqlStore, *outcomes: Outcome, **changes: Any) -> None:
    """Enqueue as many jobs as there are *outcomes*, and let them end like that."""
    store.enqueue(new_jobs(len(outcomes), **changes))
    session = opened_session(store, lease=LONG)
    jobs = store.claim(session, changes.get("queue", "default"), len(outcomes))
    store.settle([settle(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)])


def work_queue(store: SqlStore, clock: SettableClock, *queues: str) -> Callable[[], None]:
    """Open a worker's session; return what makes it end."""
    session = NewSession(id=new_id(), name="w", lease=timedelta(days=1), queues=queues)
    store.open_session(session)
    return lambda: clock.advance("1d")


# --- each rule, firing and resolving -----------------------------------------------------------------------------

Change = Callable[[], object]


def stuck_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    job = claimed_job(store, opened_session(store, lease=LONG))
    return lambda: clock.advance("1h1s"), lambda: store.settle([settle(job, SUCCESS)])


def late_job_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    store.enqueue([new_job(delay=timedelta(minutes=1))])
    return lambda: clock.advance("1m31s"), store.promote


def late_schedule_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    store.put_schedules([new_schedule()])
    return lambda: clock.advance("91s"), lambda: (fire(store), store.promote())


def depth_case(store: SqlStore, _: SettableClock) -> tuple[Change, Change]:
    store.enqueue(new_jobs(3, queue="mail"))
    store.enqueue(new_jobs(3))
    return lambda: store.enqueue([new_job(queue="mail")]), lambda: claim(store, "mail", 1)


def age_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    store.enqueue([new_job(queue="mail")])
    return lambda: clock.advance("10m1s"), lambda: claim(store, "mail", 1)


def error_rate_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    end_some(store, *[SUCCESS] * 16, *[FAILURE] * 4)
    return lambda: end_some(store, FAILURE), lambda: clock.advance("10m")


def dead_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    end_some(store, SUCCESS)
    return lambda: end_some(store, FAILURE), lambda: clock.advance("1h")


def missing_workers_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    lose = work_queue(store, clock, "mail", "default")
    return lose, lambda: work_queue(store, clock, "mail")


def unserved_queue_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    work_queue(store, clock, "default")
    store.enqueue([new_job(), new_job(queue="quiet", delay=timedelta(hours=1))])
    return lambda: store.enqueue([new_job(queue="mail")]), lambda: claim(store, "mail", 1)


def no_success_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    store.put_schedules([new_schedule(expect_success_within=timedelta(seconds=30))])
    clock.advance("1m")
    fire(store)

    def succeed() -> None:
        for job in claim(store, "default", 10):
            store.settle([settle(job, SUCCESS)])

    return lambda: clock.advance("30s"), succeed


def missed_ticks_case(store: SqlStore, clock: SettableClock) -> tuple[Change, Change]:
    store.put_schedules([new_schedule(trigger=every("10m"), misfire=Misfire.SKIP)])

    def miss() -> None:
        clock.advance("15m")
        fire(store)

    return miss, lambda: clock.advance("1h")


def claim(store: SqlStore, queue: str, count: int) -> list[Any]:
    return store.claim(opened_session(store, lease=LONG), queue, count)


CASES: Mapping[str, tuple[Rule, Callable[[SqlStore, SettableClock], tuple[Change, Change]], str]] = {
    "stuck": (stuck("1h"), stuck_case, "1 job running for longer than 1h: greet for 60m"),
    "a late job": (lag("30s"), late_job_case, "has been due for 34s"),
    "a late schedule": (lag("30s"), late_schedule_case, "schedule s has been due for 35s"),
    "depth": (depth("mail", above=3), depth_case, "more than 3 jobs ready in queue mail"),
    "age": (age("mail", above="10m"), age_case, "a job of queue mail has waited for a worker for 10m"),
    "error rate": (error_rate(above=0.2), error_rate_case, "5 of 21 jobs that ended within 10m failed (23.8%)"),
    "dead": (dead(), dead_case, "at least 1 job failed for good within 1h"),
    "missing workers": (missing_workers("mail"), missing_workers_case, "expected at least 1 worker for queue mail"),
    "a queue without workers": (missing_workers(), unserved_queue_case, "queue mail (0 workers)"),
    "no success": (missed_schedules(), no_success_case, "1 schedule without the success expected: s"),
    "missed ticks": (missed_schedules(), missed_ticks_case, "1 schedule with ticks missed: s"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_fires_once_and_resolves_once(store: SqlStore, clock: SettableClock, case: str) -> None:
    rule, prepare, message = CASES[case]
    bring_about, mend = prepare(store, clock)
    store.put_alert(new_alert(rule))
    told = [events(store)]

    bring_about()
    for _ in range(3):
        clock.advance("1s")
        told.append(events(store))
    firing = stored_alert(store)
    mend()
    for _ in range(3):
        clock.advance("1s")
        told.append(events(store))

    assert told == [[], ["firing"], [], [], ["resolved"], [], []]
    assert firing.state is AlertState.FIRING
    assert message in (firing.message or "")
    assert stored_alert(store).state is AlertState.OK


@pytest.mark.parametrize("rule", [rule for rule, _, _ in CASES.values()], ids=str)
def test_nothing_fires_in_an_empty_store_but_what_misses_workers(store: SqlStore, rule: Rule) -> None:
    store.put_alert(new_alert(rule))

    assert events(store) == (["firing"] if rule == missing_workers("mail") else [])


# --- whose jobs are looked at --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [depth("default", above=1), error_rate(above=0, at_least=1), dead(above=1)])
def test_an_alert_of_a_team_counts_its_jobs_only(store: SqlStore, clock: SettableClock, rule: Rule) -> None:
    for scope in (None, "acme", "default", "other"):
        store.put_alert(new_alert(rule, alert_id=f"of {scope}", scope=scope))
    end_some(store, FAILURE, FAILURE, team="acme")
    store.enqueue(new_jobs(2, team="acme"))

    fired = {event.scope for event in store.alert("n").events}

    assert fired == {None, "acme"}


def test_an_alert_of_a_team_sees_how_long_its_own_jobs_run_and_wait(store: SqlStore, clock: SettableClock) -> None:
    claimed_job(store, opened_session(store, lease=LONG), team="acme")
    store.enqueue([new_job(team="acme"), new_job(team="acme", delay=timedelta(minutes=1))])
    clock.advance("2h")
    for rule in (stuck("1h"), age("default", "1h"), lag("1h"), missing_workers()):
        for scope in (None, "acme", "default"):
            store.put_alert(new_alert(rule, alert_id=f"{rule} of {scope}", scope=scope))

    fired = [event.scope for event in store.alert("n").events]

    assert sorted(fired, key=str) == [None] * 4 + ["acme"] * 4


def test_an_alert_of_a_team_looks_at_its_schedules_only(store: SqlStore, url: str, clock: SettableClock) -> None:
    store.put_schedules([new_schedule("nightly", expect_success_within=timedelta(seconds=30))])
    execute(url, f"UPDATE {table(url, 'schedules')} SET id = '@acme/nightly'")
    clock.advance("2m")
    for scope in (None, "acme", "default", "ac"):
        store.put_alert(new_alert(missed_schedules(), alert_id=f"missed by {scope}", scope=scope))
        store.put_alert(new_alert(lag("30s"), alert_id=f"late for {scope}", scope=scope))

    told = {event.alert: event.message for event in store.alert("n").events}

    assert set(told) == {f"{what} {scope}" for what in ("missed by", "late for") for scope in (None, "acme")}
    assert "@acme/nightly" in told["missed by None"]
    assert "expected: nightly" in told["missed by acme"]


def test_rules_that_name_a_queue_or_a_task_look_at_that_only(store: SqlStore, clock: SettableClock) -> None:
    end_some(store, FAILURE, queue="mail", task="send")
    claimed_job(store, opened_session(store, lease=LONG), queue="mail", task="send")
    clock.advance("1m")
    for name, match in {"queue": {"queue": "mail"}, "task": {"task": "send"}, "none": {"queue": "default"}}.items():
        store.put_alert(new_alert(error_rate(above=0, at_least=1, **match), alert_id=f"rate by {name}"))
        store.put_alert(new_alert(stuck("30s", **match), alert_id=f"stuck by {name}"))

    fired = {event.alert for event in store.alert("n").events}

    assert fired == {"rate by queue", "rate by task", "stuck by queue", "stuck by task"}


def test_many_jobs_of_others_leave_an_alert_as_it_is_rather_than_resolve_it(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LOOK_THROUGH", 5)
    store.enqueue(new_jobs(3, team="acme"))
    store.put_alert(new_alert(depth("default", above=2), scope="acme"))
    told = [events(store)]

    store.enqueue(new_jobs(10, priority=50))
    clock.advance("1s")
    told.append(events(store))
    hidden = stored_alert(store)
    claim(store, "default", 11)
    clock.advance("1s")
    told.append(events(store))

    assert told == [["firing"], [], ["resolved"]]
    assert (hidden.state, hidden.value) == (AlertState.FIRING, None)
    assert "too many jobs of others" in (hidden.message or "")


def test_an_error_rate_of_more_jobs_than_can_be_looked_at_is_that_of_the_last_ones(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LOOK_THROUGH", 12)
    end_some(store, *[SUCCESS] * 20)
    clock.advance("9m")
    end_some(store, *[FAILURE] * 10)
    store.put_alert(new_alert(error_rate(above=0.9, at_least=5)))

    assert events(store) == ["firing"]
    assert stored_alert(store).message == "10 of 10 jobs that ended within 2m30s failed (100.0%)"


def test_urgent_jobs_do_not_hide_an_old_one_that_starves(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LOOK", 5)
    store.enqueue([new_job(priority=1)])
    clock.advance("1h")
    store.enqueue(new_jobs(10, priority=50))
    store.put_alert(new_alert(age("default", "10m")))

    assert events(store) == ["firing"]


# --- from look to look ----------------------------------------------------------------------------------------------


def test_it_fires_when_the_rule_has_held_for_long_enough(store: SqlStore, clock: SettableClock) -> None:
    store.put_alert(new_alert(depth("default", above=0), hold=timedelta(seconds=10)))
    store.enqueue([new_job()])
    began = clock.now()
    told = [events(store)]
    pending = stored_alert(store)
    clock.advance("9s")
    told.append(events(store))
    clock.advance("1s")

    looked = store.alert("n")

    assert (told, pending.state, pending.since) == ([[], []], AlertState.PENDING, began)
    (event,) = looked.events
    assert (event.event, event.since, event.at, event.value) == ("firing", began, clock.now(), 1)


def test_what_passes_before_it_has_held_for_long_enough_is_told_to_nobody(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_alert(new_alert(depth("default", above=0), hold=timedelta(seconds=10)))
    store.enqueue([new_job()])
    told = [events(store)]
    claim(store, "default", 1)
    clock.advance("20s")
    told.append(events(store))

    assert told == [[], []]
    assert stored_alert(store).state is AlertState.OK


def test_it_is_looked_at_as_often_as_it_says(store: SqlStore, clock: SettableClock) -> None:
    store.put_alert(new_alert(dead(), every=timedelta(seconds=30)))
    first = store.alert("one")
    clock.advance("29s")
    early = store.alert("two")
    evaluated = stored_alert(store)
    clock.advance("1s")
    second = store.alert("three")

    assert [looked.looked for looked in (first, early, second)] == [1, 0, 1]
    assert first.next_due == timedelta(seconds=30)
    assert early.next_due == timedelta(seconds=1)
    assert (evaluated.evaluated_by, evaluated.evaluated_at) == ("one", clock.now() - timedelta(seconds=30))
    assert stored_alert(store).evaluated_by == "three"


def test_a_clock_that_is_set_back_does_not_keep_anybody_from_looking(store: SqlStore, clock: SettableClock) -> None:
    store.put_alert(new_alert(depth("default", above=0), hold=timedelta(seconds=10)))
    store.enqueue([new_job()])
    store.alert("n")
    clock.jump(to=clock.now() - timedelta(days=1))

    looked = [store.alert("n").looked]
    clock.advance("10s")

    assert looked == [1]
    assert events(store) == ["firing"]


def test_one_that_is_defined_anew_goes_on_as_it_stands_and_is_looked_at_at_once(
    store: SqlStore, clock: SettableClock
) -> None:
    end_some(store, FAILURE)
    store.put_alert(new_alert(dead()))
    told = [events(store)]
    store.put_alert(new_alert(dead(), notify=(Webhook("https://example.org/hook"),)))
    told.append(events(store))
    store.put_alert(new_alert(dead(above=1)))
    told.append(events(store))

    assert told == [["firing"], [], ["resolved"]]


def test_one_that_is_removed_is_gone(store: SqlStore) -> None:
    store.put_alert(new_alert(dead()))

    assert store.remove_alert("a") is True
    assert store.remove_alert("a") is False
    assert store.alerts("a") == []


def test_one_that_a_newer_version_wrote_does_not_keep_the_others_from_being_looked_at(
    store: SqlStore, url: str
) -> None:
    end_some(store, FAILURE)
    store.put_alert(new_alert(dead(), alert_id="future"))
    store.put_alert(new_alert(dead()))
    execute(
        url, f'UPDATE {table(url, "alerts")} SET definition = \'{{"rule":{{"kind":"psychic"}}}}\' WHERE id = \'future\''
    )

    looked = store.alert("n")

    assert [event.alert for event in looked.events] == ["a"]
    assert looked.failed == {"future": "it can't be read; a newer version may have written it"}
    assert [one.id for one in store.alerts()] == ["a"]


@pytest.mark.parametrize("error", [StoreError, StoreUnavailable])
def test_one_that_can_not_be_measured_does_not_keep_the_others_from_being_judged(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch, error: type[StoreError]
) -> None:
    end_some(store, FAILURE)
    store.put_alert(new_alert(depth("default", above=0), alert_id="broken"))
    clock.advance("1ms")
    store.put_alert(new_alert(dead()))
    original = measure.measure

    def measured(db: Any, rule: Rule, team: str | None) -> Any:
        if rule == depth("default", above=0):
            raise error("too slow")
        return original(db, rule, team)

    monkeypatch.setattr(store_alerts, "measure", measured)

    looked = store.alert("n")

    assert ([event.alert for event in looked.events], looked.failed) == (["a"], {"broken": "too slow"})


def test_where_some_can_not_be_measured_in_time_the_others_come_first_at_the_next_look(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the database is away, each would take its whole deadline."""
    end_some(store, FAILURE)
    for n in range(4):
        store.put_alert(new_alert(depth("default", above=0), alert_id=f"dear{n}"))
        clock.advance("1ms")
    store.put_alert(new_alert(dead()))
    original = measure.measure

    def measured(db: Any, rule: Rule, team: str | None) -> Any:
        if rule == depth("default", above=0):
            clock.advance("15s")
            raise StoreUnavailable("too slow")
        return original(db, rule, team)

    monkeypatch.setattr(store_alerts, "measure", measured)

    looked = [store.alert("n") for _ in range(3)]

    assert [sorted(one.failed) for one in looked[:2]] == [["dear0", "dear1"], ["dear2", "dear3"]]
    assert [[event.alert for event in one.events] for one in looked] == [[], [], ["a"]]


# --- what is told, and that it is told once ------------------------------------------------------------------------

Notice = tuple[str | None, AlertEvent, Sequence[Channel]]


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> list[Notice]:
    """What was to be told, by calls of `leave_notices`; each leaves a job as well, in the transaction it is given."""
    called: list[Notice] = []

    def leave(tx: Runner, team: str | None, event: AlertEvent, channels: Sequence[Channel]) -> set[str]:
        called.append((team, event, channels))
        insert(tx, [new_job(task=f"tell_{event.event}", queue="notices")], 0)
        return {"notices"}

    monkeypatch.setattr(store_alerts, "leave_notices", leave)
    return called


def left(store: SqlStore) -> list[str]:
    return sorted(job.task for job in store.page() if job.queue == "notices")


def test_firing_and_resolved_are_told_once_each_to_whom_the_alert_names(
    store: SqlStore, clock: SettableClock, notices: list[Notice]
) -> None:
    hook = Webhook("https://example.org")
    store.put_alert(new_alert(dead(), alert_id="@acme/a", scope="acme", notify=(hook,)))
    end_some(store, FAILURE, team="acme")
    for length in ("1s", "1s", "1h", "1s"):
        store.alert("n")
        clock.advance(length)
        store.alert("n")

    assert [(team, event.event, channels) for team, event, channels in notices] == [
        ("acme", "firing", (hook,)),
        ("acme", "resolved", (hook,)),
    ]
    assert left(store) == ["tell_firing", "tell_resolved"]


@pytest.mark.parametrize("scope", [None, "default"])
def test_notices_of_what_is_nobodys_are_the_default_teams(
    store: SqlStore, notices: list[Notice], scope: str | None
) -> None:
    end_some(store, FAILURE)
    store.put_alert(new_alert(dead(), scope=scope))
    store.alert("n")

    assert [team for team, _, _ in notices] == [None]


def test_of_nodes_that_look_at_once_one_tells(url: str, store: SqlStore, clock: SettableClock) -> None:
    end_some(store, FAILURE)
    for n in range(20):
        store.put_alert(new_alert(dead(), alert_id=f"a{n:02}"))
    stores = [open_store(url, clock=clock) for _ in range(4)]
    told: list[str] = []
    start = threading.Barrier(4)

    def look(one: SqlStore) -> None:
        start.wait()
        for _ in range(5):
            told.extend(event.alert for event in one.alert("n", limit=3).events)
        while one.alert("n").looked:
            pass

    threads = [threading.Thread(target=look, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        told.extend(event.alert for event in one.alert("n").events)
        one.close()

    assert {one.state for one in store.alerts()} == {AlertState.FIRING}
    assert len(told) == len(set(told))


def test_a_node_that_dies_before_its_commit_leaves_all_as_it_was(
    store: SqlStore, clock: SettableClock, notices: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    end_some(store, FAILURE)
    store.put_alert(new_alert(dead()))

    def leave_and_die(tx: Runner, *_: object) -> None:
        insert(tx, [new_job(queue="notices")], 0)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(store_alerts, "leave_notices", leave_and_die)
        with pytest.raises(KeyboardInterrupt):
            store.alert("dying")
    after = stored_alert(store), left(store)
    clock.advance("1s")

    told = events(store)

    assert (after[0].state, after[0].evaluated_by, after[1]) == (AlertState.OK, None, [])
    assert told == ["firing"]
    assert left(store) == ["tell_firing"]


def test_a_node_that_is_overtaken_while_it_measures_decides_nothing(
    store: SqlStore, clock: SettableClock, notices: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_alert(new_alert(depth("default", above=0)))
    original = measure.measure
    overtaken: list[list[str]] = []

    def slowly(db: Any, rule: Rule, team: str | None) -> Any:
        reading = original(db, rule, team)
        if not overtaken:
            overtaken.append([])
            store.enqueue([new_job()])
            clock.advance("1s")
            overtaken.append(events(store, "quick"))
        return reading

    monkeypatch.setattr(store_alerts, "measure", slowly)

    assert events(store, "slow") == []
    assert overtaken[1] == ["firing"]
    found = stored_alert(store)
    assert (found.state, found.evaluated_by) == (AlertState.FIRING, "quick")
    assert left(store) == ["tell_firing"]


def test_what_a_node_has_not_come_to_is_looked_at_by_others(
    store: SqlStore, url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a node took all that is due, it could be overtaken before it has measured the last, again and again."""
    for n in range(4):
        store.put_alert(new_alert(dead(), alert_id=f"a{n}"))
    original = measure.measure
    other = open_store(url, clock=clock)
    looked: list[int] = []

    def measured(db: Any, rule: Rule, team: str | None) -> Any:
        if not looked:
            looked.append(0)
            looked.append(other.alert("other").looked)
        return original(db, rule, team)

    monkeypatch.setattr(store_alerts, "measure", measured)
    looked.append(store.alert("n").looked)
    other.close()

    assert looked == [0, 3, 1]
    assert [stored_alert(store, f"a{n}").evaluated_by for n in range(4)].count("other") == 3


def test_one_that_takes_longer_to_measure_than_from_look_to_look_is_judged_all_the_same(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else has always begun to by then."""
    end_some(store, FAILURE)
    store.put_alert(new_alert(dead()))
    original = measure.measure
    began: list[str] = []

    def slowly(db: Any, rule: Rule, team: str | None) -> Any:
        began.append("another" if began else "slow")
        if began == ["slow", "another"]:
            raise KeyboardInterrupt  # has not come to an end yet
        reading = original(db, rule, team)
        clock.advance("2s")
        with pytest.raises(KeyboardInterrupt):
            store.alert("another", limit=1)
        return reading

    monkeypatch.setattr(store_alerts, "measure", slowly)

    assert [event.event for event in store.alert("slow", limit=1).events] == ["firing"]
    assert (began, stored_alert(store).evaluated_by) == (["slow", "another"], "slow")


def test_one_that_is_changed_while_a_node_measures_is_not_judged_by_what_was_asked_before(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_some(store, FAILURE)
    store.put_alert(new_alert(dead()))
    original = measure.measure

    def measured(db: Any, rule: Rule, team: str | None) -> Any:
        reading = original(db, rule, team)
        store.put_alert(new_alert(dead(above=5)))
        return reading

    monkeypatch.setattr(store_alerts, "measure", measured)

    assert [event.event for event in store.alert("n", limit=1).events] == []
    assert stored_alert(store).state is AlertState.OK


def test_nothing_is_locked_while_a_node_measures(
    store: SqlStore, url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_alert(new_alert(dead()))
    original = measure.measure
    seen: list[Alert] = []

    def measured(db: Any, rule: Rule, team: str | None) -> Any:
        other = open_store(url, clock=clock, deadline=2)
        other.put_alert(new_alert(dead(above=5)))
        seen.extend(other.alerts("a"))
        other.close()
        return original(db, rule, team)

    monkeypatch.setattr(store_alerts, "measure", measured)
    store.alert("n", limit=1)

    assert seen[0].definition.rule == dead(above=5)


def test_what_is_due_beyond_the_limit_is_looked_at_next(store: SqlStore) -> None:
    for n in range(3):
        store.put_alert(new_alert(dead(), alert_id=f"a{n}"))
    while (looked := store.alert("n", limit=2)).looked == 2:
        assert looked.next_due is not None
    assert store.alert("n").looked == 0
    assert all(stored_alert(store, f"a{n}").evaluated_at for n in range(3))
