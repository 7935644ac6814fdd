"""Workers die, stand still and stop, and no job is lost or settled twice. With real processes."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mainspring import JobState, Mainspring
from mainspring.job_handle import JobHandle
from mainspring.store import open_store
from tests.support.databases import execute
from tests.support.postgres import PostgresServer, running_server
from tests.support.waiting import until
from tests.worker.storm import Process, effect, lines, running, unaware, work

pytestmark = pytest.mark.slow


@pytest.fixture
def app(url: str) -> Iterator[Mainspring]:
    made = Mainspring(url)
    for handle in (work, effect, unaware):
        made.tasks.add(handle.task)
    yield made
    made.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def enqueue(app: Mainspring, task: str, count: int, **wanted: Any) -> list[JobHandle[Any]]:
    return [app.enqueue(task, kwargs={"n": n, **wanted}) for n in range(count)]


def all_succeeded(app: Mainspring, jobs: list[JobHandle[Any]]) -> bool:
    found = app.client.store.get([job.id for job in jobs]).values()
    return all(job.state is JobState.SUCCEEDED for job in found) and len(found) == len(jobs)


def settled_twice(jobs: list[JobHandle[Any]]) -> list[JobHandle[Any]]:
    return [job for job in jobs if [attempt.outcome for attempt in job.attempts()].count("succeeded") != 1]


def test_a_worker_that_is_killed_again_and_again_loses_nothing(app: Mainspring, url: str, ledger: Path) -> None:
    jobs = enqueue(app, "work", 500, seconds=0.05)
    chance = random.Random(7)
    process = Process(url, ledger)
    for _ in range(10):
        started = len(lines(ledger, "start"))
        until(lambda: len(lines(ledger, "start")) > started)  # noqa: B023
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process = Process(url, ledger)
    try:
        until(lambda: all_succeeded(app, jobs))
    finally:
        process.kill()

    assert settled_twice(jobs) == []
    ends = lines(ledger, "end")
    assert {n for n, _ in ends} == set(range(500))
    lost = sum(attempt.outcome == "lost" for job in jobs for attempt in job.attempts())
    assert lost > 0
    assert len(ends) - 500 <= lost


def test_a_worker_that_stood_still_past_its_lease_can_record_nothing(app: Mainspring, url: str, ledger: Path) -> None:
    execute(url, "CREATE TABLE effects (n INTEGER)")
    with_transaction, plain = enqueue(app, "effect", 1)[0], enqueue(app, "unaware", 1)[0]
    with running(url, ledger) as first:
        until(lambda: len(lines(ledger, "start")) == 2)
        stand_still(first, url)
        with running(url, ledger):
            until(lambda: len(lines(ledger, "start")) == 4)
            ledger.with_name("go").touch()
            until(lambda: all_succeeded(app, [with_transaction, plain]))
            first.send(signal.SIGCONT)
            until(lambda: lines(ledger, "lost") == [(0, 1)])
            until(lambda: sorted(lines(ledger, "end")) == [(0, 1), (0, 2), (0, 2)])
            first.send(signal.SIGTERM)
            assert first.wait() == 0

    assert execute(url, "SELECT n FROM effects") == [(0,)]
    assert plain.result() == 2
    assert settled_twice([with_transaction, plain]) == []
    assert with_transaction.snapshot.fence == 2


def test_a_worker_that_is_told_to_stop_settles_what_it_has_started(app: Mainspring, url: str, ledger: Path) -> None:
    jobs = enqueue(app, "work", 200, seconds=0.02)
    for _ in range(4):
        with running(url, ledger) as process:
            started = len(lines(ledger, "start"))
            until(lambda: len(lines(ledger, "start")) > started + 10)  # noqa: B023
            process.send(signal.SIGTERM)
            assert process.wait() == 0
        assert sorted(lines(ledger, "start")) == sorted(lines(ledger, "end"))
        assert app.client.store.sessions() == []
        assert set(app.client.store.counts()["default"]) == {JobState.READY}
    with running(url, ledger):
        until(lambda: all_succeeded(app, jobs))

    assert Counter(n for n, _ in lines(ledger, "end")) == Counter(range(200))
    assert settled_twice(jobs) == []


def test_two_workers_are_replaced_one_by_one_and_nothing_runs_twice(app: Mainspring, url: str, ledger: Path) -> None:
    jobs = enqueue(app, "work", 300, seconds=0.02)
    old = [Process(url, ledger), Process(url, ledger)]
    new: list[Process] = []
    try:
        until(lambda: len(lines(ledger, "start")) > 20 and len(app.client.store.sessions()) == 2)
        for process in old:
            new.append(Process(url, ledger))
            process.send(signal.SIGTERM)
            assert process.wait() == 0
        until(lambda: all_succeeded(app, jobs))
    finally:
        for process in old + new:
            process.kill()

    assert Counter(n for n, _ in lines(ledger, "end")) == Counter(range(300))
    assert settled_twice(jobs) == []


def test_a_second_signal_gives_jobs_back_at_once(app: Mainspring, url: str, ledger: Path) -> None:
    (job,) = enqueue(app, "work", 1, seconds=3600)
    with running(url, ledger, lease="1h") as process:
        until(lambda: lines(ledger, "start"))
        process.send(signal.SIGTERM)
        time.sleep(0.2)
        process.send(signal.SIGTERM)
        assert process.wait() == 0

    assert job.state is JobState.READY
    assert [attempt.outcome for attempt in job.attempts()] == ["returned"]
    assert job.snapshot.losses == 0


@pytest.fixture
def own_crashing_server() -> Iterator[PostgresServer]:
    with running_server({"full_page_writes": "on"}) as server:
        yield server


def test_work_goes_on_by_itself_after_the_server_has_crashed(own_crashing_server: PostgresServer, ledger: Path) -> None:
    url = own_crashing_server.url()
    open_store(url).close()
    app = Mainspring(url)
    app.tasks.add(work.task)
    jobs = enqueue(app, "work", 300, seconds=0.02)
    with running(url, ledger, lease="5s"):
        for _ in range(2):
            started = len(lines(ledger, "start"))
            until(lambda: len(lines(ledger, "start")) > started + 20)  # noqa: B023
            own_crashing_server.stop("immediate")
            time.sleep(1)
            own_crashing_server.start()
        until(lambda: all_succeeded(app, jobs))

    assert settled_twice(jobs) == []
    app.close()


def stand_still(process: Process, url: str) -> None:
    """Stop *process* at a moment when it has no transaction open: on SQLite nobody else could write."""
    while True:
        process.send(signal.SIGSTOP)
        try:
            execute(url, "CREATE TABLE IF NOT EXISTS trial (n INTEGER)")
            execute(url, "DELETE FROM trial")
        except sqlite3.OperationalError:
            process.send(signal.SIGCONT)
        else:
            return
