"""Creates that come together share their transactions, and not their mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.api.callers import Caller
from mainspring.api.creates import Created, Creates, Wanted
from mainspring.api.policy import needs
from mainspring.api.recorder import Recorder
from mainspring.errors import InvalidValue, JobNotFound, QuotaExceeded, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.model.token import Role
from mainspring.store.sql import SqlStore


def caller(app: Mainspring, team: str) -> Caller:
    policy = needs(Role.SUBMITTER, records="job.enqueue")
    return Caller(app.within(team), app, team, Role.ADMIN, None, "somebody", None, policy, Recorder(app), named=True)


def wanted(who: Caller, task: str, *args: object, **wishes: Any) -> Wanted:
    return Wanted(who, lambda: who.app.prepare(task, args, **wishes))


def test_those_that_come_together_are_one_transaction_for_each_team_with_its_records(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(name: str) -> None:
        original = getattr(SqlStore, name)

        def call(*args: Any) -> Any:
            calls.append(name)
            return original(*args)

        monkeypatch.setattr(SqlStore, name, call)

    counted("enqueue")
    counted("record_audit")
    acme, beta = caller(app, "acme"), caller(app, "beta")

    created = Creates(app)._create([wanted(who, "fail") for who in (acme, beta, acme, beta, acme)])

    assert calls == ["enqueue", "enqueue"]
    assert [one.job.team for one in created if isinstance(one, Created)] == ["acme", "beta", "acme", "beta", "acme"]
    assert len(app.audit.list()) == 5


def test_one_that_can_not_be_stored_fails_alone(app: Mainspring) -> None:
    app.queues.give("theirs", "beta")
    acme = caller(app, "acme")

    good, bad, worse, also = Creates(app)._create(
        [
            wanted(acme, "fail"),
            wanted(acme, "fail", queue="theirs"),
            wanted(acme, "greet", 3),
            wanted(acme, "greet", "Ada"),
        ]
    )

    assert isinstance(good, Created)
    assert isinstance(also, Created)
    assert isinstance(bad, InvalidValue)
    assert isinstance(worse, InvalidValue)
    assert len(app.jobs()) == 2


def test_nothing_is_done_that_could_not_be_recorded(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr("mainspring.store.enqueue.append", unavailable)

    (came,) = Creates(app)._create([wanted(caller(app, "acme"), "fail")])

    assert isinstance(came, StoreUnavailable)
    assert app.jobs() == []


def test_what_is_refused_is_not_on_record_as_done(app: Mainspring) -> None:
    app.teams.set("acme", max_pending=1)
    acme = caller(app, "acme")

    Creates(app)._create([wanted(acme, "fail") for _ in range(3)])

    assert len(app.audit.list()) == 1


@pytest.fixture
def teams_asked(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Whose jobs the store was asked to keep, call by call."""
    asked: list[str | None] = []
    original = SqlStore.enqueue

    def enqueue(store: SqlStore, jobs: Sequence[NewJob], *args: Any) -> Any:
        asked.append(jobs[0].team)
        return original(store, jobs, *args)

    monkeypatch.setattr(SqlStore, "enqueue", enqueue)
    return asked


def test_one_that_can_not_be_stored_costs_few_transactions_and_none_before_those_of_others(
    app: Mainspring, teams_asked: list[str | None]
) -> None:
    acme, beta = caller(app, "acme"), caller(app, "beta")
    orphan = wanted(acme, "fail", after=[app.client.new_ids(1)[0]])
    good = [wanted(acme, "fail") for _ in range(63)]

    created = Creates(app)._create([*good[:20], orphan, *good[20:], wanted(beta, "fail")])

    assert [number for number, one in enumerate(created) if not isinstance(one, Created)] == [20]
    assert teams_asked[:2] == ["acme", "beta"]
    assert len(teams_asked) == 2 + 2 * 6  # two of each size, down to one


def test_a_database_that_does_not_answer_is_asked_once(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def unavailable(_: SqlStore, jobs: Sequence[NewJob], *__: object) -> None:
        asked.append(len(jobs))
        raise StoreUnavailable("gone")

    monkeypatch.setattr(SqlStore, "enqueue", unavailable)

    acme = caller(app, "acme")

    came = Creates(app)._create([wanted(acme, "fail") for _ in range(3)])

    assert [type(one) for one in came] == [StoreUnavailable] * 3
    assert asked == [3]


def test_one_that_can_not_be_stored_takes_nothing_from_what_the_others_may_have(app: Mainspring) -> None:
    app.teams.set("acme", rate="7/h")
    acme = caller(app, "acme")
    good = [wanted(acme, "fail") for _ in range(6)]

    created = Creates(app)._create([*good, wanted(acme, "fail", after=[app.client.new_ids(1)[0]])])

    assert [type(one) for one in created] == [Created] * 6 + [JobNotFound]


def test_those_for_which_there_is_room_are_created(app: Mainspring) -> None:
    app.teams.set("acme", max_pending=2)
    acme = caller(app, "acme")

    created = Creates(app)._create([wanted(acme, "fail") for _ in range(3)])

    assert [type(one) for one in created] == [Created, Created, QuotaExceeded]
