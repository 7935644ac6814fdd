"""The node that the commands which stay run: what a start or a stop that fails leaves behind, and haste."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mainspring import node as module
from mainspring.app import Mainspring
from mainspring.errors import InvalidValue
from mainspring.model.job import JobState
from mainspring.node import Node
from mainspring.scheduler import Scheduler, prune
from mainspring.testing import SettableClock, drain
from mainspring.worker.context import Context
from mainspring.worker.worker import Worker
from tests.cli.program import PATIENCE, eventually
from tests.cli.projects import sessions_at


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Mainspring]:
    app = Mainspring(sqlite_url)
    yield app
    app.close()


class Closable:
    """A store of which nothing is asked but to be closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def others() -> set[threading.Thread]:
    """The threads that there were before."""
    return set(threading.enumerate())


def test_a_node_that_could_not_be_made_closes_the_stores_that_it_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    app, stores = Mainspring("postgresql://nowhere/name"), [Closable(), Closable()]
    left = list(stores)
    monkeypatch.setattr(module, "open_store", lambda *_, **__: left.pop())

    with pytest.raises(InvalidValue, match="weight of queue 'mail'"):
        Node(app.client, app.tasks, {"queues": {"mail": 0}}).start()

    assert [store.closed for store in stores] == [True, True]


def test_a_node_that_could_not_start_leaves_no_session_and_no_thread(
    app: Mainspring, sqlite_url: str, others: set[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Scheduler) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Scheduler, "start", refused)
    node = Node(app.client, app.tasks, {})

    with pytest.raises(RuntimeError, match="new thread"):
        node.start()

    assert sessions_at(sqlite_url) == []
    assert set(threading.enumerate()) <= others
    assert node.stop() is True


def test_a_stop_that_fails_closes_the_rest(
    app: Mainspring, others: set[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Worker.stop

    def stop_and_fail(worker: Worker, grace: float) -> bool:
        stop(worker, grace)
        raise RuntimeError("a bug")

    monkeypatch.setattr(Worker, "stop", stop_and_fail)
    node = Node(app.client, app.tasks, {})
    node.start()

    with pytest.raises(RuntimeError, match="a bug"):
        node.stop()

    assert set(threading.enumerate()) <= others


def test_a_node_keeps_finished_jobs_as_long_as_it_was_told(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "FIRST", 0)
    clock = SettableClock()
    app = Mainspring(sqlite_url, clock=clock)
    job = app.task(name="greet")(lambda: None).enqueue()
    drain(app)
    clock.advance("3d")

    with app.worker(retention="1d"):
        eventually(lambda: not app.client.store.get([job.id]))
    app.close()


@pytest.mark.parametrize(
    ("retention", "words"), [(0, "longer than 0, such as 30d"), ("-1d", "a duration such as"), (-1, "between 0 and")]
)
def test_a_retention_that_makes_no_sense_is_refused(app: Mainspring, retention: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=f"expected retention to be .*{words}"):
        Node(app.client, app.tasks, {"retention": retention})


def test_haste_that_was_asked_for_before_there_was_a_worker_is_remembered(app: Mainspring) -> None:
    @app.task
    def linger(ctx: Context) -> None:
        until = time.monotonic() + PATIENCE / 2
        while time.monotonic() < until:
            ctx.check()
            time.sleep(0.01)

    job = linger.enqueue()
    node = Node(app.client, app.tasks, {"grace": "1h"})
    node.stop_now()
    node.start()
    eventually(lambda: job.state is JobState.RUNNING)

    assert node.stop() is True
    assert job.state is JobState.READY


def test_an_app_can_not_be_closed_under_its_worker(app: Mainspring) -> None:
    @app.task
    def answer() -> int:
        return 42

    with app.worker():
        with pytest.raises(InvalidValue, match="let it end before you close the app"):
            app.close()
        assert answer.enqueue().result(timeout=PATIENCE) == 42

    app.close()
