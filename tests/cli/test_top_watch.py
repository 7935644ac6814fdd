"""What `mainspring top` finds, how often it asks for it, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring import Mainspring
from mainspring.cli.top.rates import Rates, rates_of
from mainspring.cli.top.snapshot import Place, Watch
from mainspring.clock import SystemClock
from mainspring.model.history import History, Sample
from mainspring.model.journal import LogEntry
from mainspring.model.lifecycle import NO_RETRY, settle
from tests.cli.jobs import FAILED, Jobs

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Hands(SystemClock):
    """A clock that is moved by hand."""

    at = 1_000.0

    def steady(self) -> float:
        return self.at


@pytest.fixture
def app(jobs: Jobs) -> Iterator[Mainspring]:
    with closing(Mainspring()) as app:
        yield app


def test_what_takes_long_to_find_is_asked_for_less_often(
    app: Mainspring, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, asked = Hands(), {"queues": 0, "workers": 0}

    def slowly(**_: object) -> list[object]:
        clock.at += 0.5
        asked["queues"] += 1
        return []

    def quickly() -> list[object]:
        asked["workers"] += 1
        return []

    monkeypatch.setattr(app.queues, "list", slowly)
    monkeypatch.setattr(app, "workers", quickly)
    watch = Watch(app, clock)
    for _ in range(20):
        watch.look()
        clock.at += 1

    assert asked == {"queues": 4, "workers": 20}

    watch.hurry()
    watch.look()
    assert asked["queues"] == 5


def test_what_is_changed_while_somebody_looks_is_looked_for_again(
    app: Mainspring, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, asked = Hands(), 0

    def slowly(**_: object) -> list[object]:
        nonlocal asked
        clock.at += 0.5
        asked += 1
        if asked == 1:
            watch.hurry()  # as a key does that is pressed meanwhile
        return []

    monkeypatch.setattr(app.queues, "list", slowly)
    watch = Watch(app, clock)
    for _ in range(3):
        watch.look()

    assert asked == 2


def test_what_failed_last_is_first_however_old_its_job(app: Mainspring, jobs: Jobs) -> None:
    first, second = jobs.fail(task="first"), jobs.fail(task="second")
    jobs.store.replay([first.id], None)
    (again,) = jobs.store.claim(jobs.session.id, "default", 1, ["first"])
    assert again.id == first.id
    jobs.store.settle([settle(again, FAILED, NO_RETRY)])

    assert [job.id for job in Watch(app, SystemClock()).look().failures] == [first.id, second.id]


def test_of_a_log_only_what_is_new_is_asked_for(app: Mainspring, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.run()
    jobs.say(job, "one", "two")
    watch, place = Watch(app, Hands()), Place("job", str(job.id))
    after: list[tuple[int, int]] = []
    logs = app.client.store.logs

    def noted(job_id: UUID, mark: tuple[int, int], *rest: Any) -> list[LogEntry]:
        after.append(mark)
        return logs(job_id, mark, *rest)

    monkeypatch.setattr(app.client.store, "logs", noted)

    watch.look(place)
    jobs.say(job, "one", "two", "three")
    found = watch.look(place).detail

    assert found is not None
    assert [line.message for line in found.lines] == ["one", "two", "three"]
    assert after == [(0, 0), (1, 2), (1, 2), (1, 3)]


def test_rates_are_those_of_the_last_minute_and_of_this_one_so_far() -> None:
    minute = timedelta(minutes=1)
    samples = [
        Sample(since=NOW - 2 * minute, succeeded=9_000),
        Sample(since=NOW - minute, succeeded=120, failed=30),
        Sample(since=NOW, succeeded=30),
    ]
    history = History(over="1h", span=minute, samples=samples)

    assert rates_of(history, NOW + minute / 2) == Rates(2.0, 30 / 90)
    assert rates_of(history, NOW - timedelta(days=1)) == Rates(3.0, 0.5)
    assert rates_of(history, NOW + timedelta(days=1)) == Rates(1.5, 0.25)
