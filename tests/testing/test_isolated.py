"""An app that was made at import belongs to each test in turn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from mainspring import JobState, Mainspring
from mainspring.errors import JobNotFound, StoreError
from mainspring.testing import SettableClock, drain, enqueued, isolated


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Mainspring]:
    made = Mainspring(sqlite_url)
    yield made
    made.close()


def test_jobs_of_the_block_stay_in_the_block(app: Mainspring) -> None:
    @app.task
    def greet(name: str) -> str:
        return f"hello {name}"

    outside = greet.enqueue("before")
    with isolated(app) as clock:
        assert enqueued(app) == []
        inside = greet.using(run_after="1h").enqueue("within")
        clock.advance("1h")
        assert drain(app) == [inside]
        assert inside.result() == "hello within"
        with pytest.raises(JobNotFound):
            app.job(outside.id)

    assert [job.id for job in app.jobs()] == [outside.id]
    assert outside.state is JobState.READY
    with pytest.raises(JobNotFound):
        inside.refresh()


def test_nothing_of_the_apps_own_database_is_touched(app: Mainspring, sqlite_url: str) -> None:
    unreachable = Mainspring("postgresql://nobody@127.0.0.1:1/nothing")
    with isolated(unreachable):
        assert unreachable.jobs() == []
    assert unreachable.client.url == "postgresql://nobody@127.0.0.1:1/nothing"


def enqueue_and_fail(app: Mainspring) -> None:
    with isolated(app):
        app.enqueue("inner")
        raise RuntimeError("enough")


def test_blocks_can_be_nested_and_end_with_an_error(app: Mainspring) -> None:
    app.enqueue("outer")
    with isolated(app):
        app.enqueue("middle")
        with pytest.raises(RuntimeError, match="enough"):
            enqueue_and_fail(app)
        assert [call.task for call in enqueued(app)] == ["middle"]
    assert [call.task for call in enqueued(app)] == ["outer"]


def test_the_clock_may_be_given_and_else_starts_now(app: Mainspring) -> None:
    mine = SettableClock()
    with isolated(app, mine) as clock:
        assert clock is mine
        assert app.enqueue("it").snapshot.created_at == mine.now()
    before = datetime.now(UTC)
    with isolated(app) as clock:
        assert before <= clock.now() <= datetime.now(UTC)


def test_the_store_of_the_block_is_closed_with_it(app: Mainspring) -> None:
    with isolated(app):
        store = app.client.store
    with pytest.raises(StoreError, match="the store is closed"):
        store.counts()


def test_the_app_can_be_closed_within_the_block(app: Mainspring) -> None:
    with isolated(app):
        app.enqueue("it")
        app.close()
        assert len(app.jobs()) == 1
    assert app.jobs() == []
