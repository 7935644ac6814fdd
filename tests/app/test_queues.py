"""`app.queues` and `app.paused_tasks`: what is paused stands still for every worker of the database."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from mainspring import InvalidValue, JobState, Mainspring, TaskNotFound
from mainspring.service import person
from mainspring.store.sql import SqlStore
from mainspring.worker import claim
from tests.support.waiting import until


def nothing() -> None: ...


def test_a_worker_leaves_a_paused_queue_alone_until_it_is_resumed(app: Mainspring) -> None:
    ran = threading.Event()
    held = app.task(name="held", queue="mail")(ran.set)
    other = app.task(name="other")(nothing)
    app.queues.pause("mail", reason="the server is down", by="ada")

    with app.worker(concurrency=2):
        job = held.enqueue()
        other.enqueue().result(timeout=30)
        other.enqueue().result(timeout=30)
        assert not ran.is_set()
        assert app.queues.resume("mail")
        job.result(timeout=30)


def test_a_worker_leaves_a_paused_task_alone_and_looks_no_oftener_than_for_an_empty_queue(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[str] = []
    whole = SqlStore.claim

    def counted(self: SqlStore, session, queue, *rest):  # type: ignore[no-untyped-def]
        claims.append(queue)
        return whole(self, session, queue, *rest)

    monkeypatch.setattr(SqlStore, "claim", counted)
    monkeypatch.setattr(claim, "POLL", 0.2)
    held = app.task(name="held")(nothing)
    app.paused_tasks.pause(held)
    jobs = held.enqueue_many([((), {})] * 20)

    with app.worker(concurrency=2):
        threading.Event().wait(1)
        looked = len(claims)
        assert {job.refresh().state for job in jobs} == {JobState.READY}
        assert app.paused_tasks.resume(held)
        for job in jobs:
            job.result(timeout=30)

    assert looked < 20


def test_a_pause_is_by_the_user_of_this_process_unless_told(app: Mainspring) -> None:
    assert app.queues.pause("mail").by == person()
    assert app.queues.pause("mail", by="ada").by == "ada"
    assert [(queue.name, queue.paused) for queue in app.queues.list()] == [("mail", True)]


def test_a_task_is_paused_by_its_handle_or_its_name(app: Mainspring) -> None:
    one = app.task(name="one")(nothing)
    app.task(name="two")(nothing)
    app.paused_tasks.pause(one, reason="broken")
    app.paused_tasks.pause("two")

    assert [(pause.name, pause.reason) for pause in app.paused_tasks.list()] == [("one", "broken"), ("two", None)]
    assert app.paused_tasks.resume("one")
    assert not app.paused_tasks.resume("one")


def test_a_task_that_the_app_does_not_have_can_be_resumed_but_not_paused(app: Mainspring) -> None:
    with closing(Mainspring(app.client.url)) as sender:
        sender.paused_tasks.pause("gone")
    app.task(name="greet")(nothing)

    with pytest.raises(TaskNotFound):
        app.paused_tasks.pause("gret")
    with pytest.raises(InvalidValue, match=r"^expected a task or the name of one"):
        app.paused_tasks.pause(7)  # type: ignore[arg-type]
    assert app.paused_tasks.resume("gone")


def test_a_job_explains_who_paused_its_queue_and_its_task_and_why(app: Mainspring) -> None:
    greet = app.task(name="greet", queue="mail")(nothing)
    queue = app.queues.pause("mail", reason="the server is down", by="ada")
    app.paused_tasks.pause(greet, by="bob")
    app.queues.pause("other")
    job = greet.enqueue()

    reasons = {reason.code: reason.sentence for reason in job.explain()}

    assert list(reasons) == ["queue_paused", "task_paused", "no_worker"]
    since = queue.since.isoformat(timespec="seconds")
    assert f"queue 'mail' was paused by ada at {since} (the server is down)" in reasons["queue_paused"]
    assert "task 'greet' was paused by bob" in reasons["task_paused"]


def test_each_call_has_an_awaitable_twin(app: Mainspring) -> None:
    async def rule() -> None:
        await app.queues.apause("mail")
        assert [queue.name for queue in await app.queues.alist()] == ["mail"]
        assert await app.queues.aresume("mail")
        await app.paused_tasks.apause("greet")
        assert [pause.name for pause in await app.paused_tasks.alist()] == ["greet"]
        assert await app.paused_tasks.aresume("greet")

    asyncio.run(rule())


def test_a_worker_hears_of_a_resume_at_once(app: Mainspring) -> None:
    held = app.task(name="held")(nothing)
    app.paused_tasks.pause(held)
    with app.worker(concurrency=1) as node:
        job = held.enqueue()
        until(lambda: node.worker is not None)
        app.paused_tasks.resume(held)
        job.result(timeout=30)


def test_ageing_is_a_matter_of_the_queue(app: Mainspring) -> None:
    app.queues.set("mail", ageing="10m")

    assert [(queue.name, queue.ageing) for queue in app.queues.list()] == [("mail", timedelta(minutes=10))]
    app.queues.set("mail", ageing=None)
    assert app.queues.list() == []


@pytest.mark.parametrize("ageing", [0, "0s", 0.5, "soon", -1, True])
def test_an_ageing_that_makes_no_sense_is_refused(app: Mainspring, ageing: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^expected ageing to be "):
        app.queues.set("mail", ageing=ageing)
    assert app.queues.list() == []
