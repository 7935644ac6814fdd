"""Jobs are followed as they change, by as many as like, with one look at the database for all."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import httpx
import pytest

from mainspring import Mainspring
from mainspring.api.routes import events
from mainspring.api.watch import Watch
from mainspring.changes import MOST, OVERLAP, Changes, Look
from mainspring.model.change import Change
from mainspring.model.ids import uuid7
from mainspring.model.job import Job, JobState
from mainspring.model.session import NewSession
from mainspring.server import Server
from mainspring.testing import drain
from tests.api.conftest import Client
from tests.support.factories import new_id, new_job
from tests.support.waiting import until

API = "/api/v1"


class Follower:
    """Reads a stream of events on a thread, and keeps what it was told."""

    def __init__(self, client: httpx.Client, path: str) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []
        self.listening = threading.Event()
        self.ended = threading.Event()
        self._client, self._path = client, path
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self._client.stream("GET", self._path) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            kind = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                    self.listening.set()
                if line.startswith("data: ") and kind != "listening":
                    self.events.append((kind, json.loads(line.removeprefix("data: "))))
        self.ended.set()

    def join(self) -> None:
        self._thread.join()


@contextmanager
def following(client: httpx.Client, path: str, server: Server) -> Iterator[Follower]:
    follower = Follower(client, path)
    follower.listening.wait()
    try:
        yield follower
    finally:
        server.stop()
        follower.join()


def test_a_job_is_followed_until_it_has_finished(client: httpx.Client, app: Mainspring, server: Server) -> None:
    job = client.post(f"{API}/jobs", json={"task": "greet", "args": ["Ada"]}).json()["id"]

    with following(client, f"{API}/jobs/{job}/events", server) as follower:
        drain(app)
        follower.ended.wait()

    assert {kind for kind, _ in follower.events} == {"job"}
    states = [told["state"] for _, told in follower.events]
    assert (states[0], states[-1]) == ("ready", "succeeded")
    assert follower.events[-1][1]["result"] == "Hello, Ada!"


def test_all_jobs_of_a_team_are_followed_and_no_others(client_of: Client, app: Mainspring, server: Server) -> None:
    acme, beta = client_of(acme="submitter"), client_of(beta="submitter")
    acme.post(f"{API}/jobs", json={"task": "fail"})  # before anybody listens

    with following(acme, f"{API}/events", server) as follower:
        acme.post(f"{API}/jobs", json={"task": "fail"})
        until(lambda: follower.events)
        seen = len(follower.events)
        beta.post(f"{API}/jobs", json={"task": "fail"})
        drain(app)
        until(lambda: sum(told["change"] == "finished" for _, told in follower.events) >= 2)

    changes = [told["change"] for _, told in follower.events]
    assert "created" in changes[: seen + 1]
    assert {told["team"] for _, told in follower.events} == {"acme"}
    marks = [(told["change"], told["job"], told["attempt"]) for _, told in follower.events]
    assert len(marks) == len(set(marks))


def test_nobody_is_told_that_he_hears_all_before_it_is_known_what_is_new(
    client: httpx.Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    look, event = Changes.look, events._event

    def looking(changes: Changes) -> Look:
        found = look(changes)
        done.append("looked")
        return found

    def telling(kind: str, document: Mapping[str, object]) -> bytes:
        done.append(kind)
        return event(kind, document)

    monkeypatch.setattr(Changes, "look", looking)
    monkeypatch.setattr(events, "_event", telling)

    with following(client, f"{API}/events", server):
        assert done.index("looked") < done.index("listening")
        with following(client, f"{API}/events", server):  # who comes later hears all at once
            assert done.count("listening") == 2


def test_who_follows_is_let_go_when_the_token_is_revoked(client_of: Client, app: Mainspring, server: Server) -> None:
    client_of(everywhere="admin")
    acme = client_of(acme="viewer")
    token = app.tokens.list()[-1].id

    with following(acme, f"{API}/events", server) as follower:
        app.tokens.revoke(token)
        follower.ended.wait()


@pytest.mark.parametrize("path", ["/events", "/jobs/{}/events"])
def test_who_follows_is_let_go_when_the_server_stops(client: httpx.Client, server: Server, path: str) -> None:
    job = client.post(f"{API}/jobs", json={"task": "fail"}).json()["id"]

    with following(client, f"{API}{path.format(job)}", server) as follower:
        server.stop()
        follower.ended.wait()


def test_who_waits_is_answered_when_the_server_stops(client: httpx.Client, server: Server) -> None:
    job = client.post(f"{API}/jobs", json={"task": "fail"}).json()["id"]
    answers: list[httpx.Response] = []
    watch = server._api.state.watch
    waiting = threading.Thread(target=lambda: answers.append(client.get(f"{API}/jobs/{job}", params={"wait": 60})))
    waiting.start()
    until(lambda: watch._followers)

    server.stop()
    waiting.join()

    assert answers[0].json()["state"] == "ready"


def test_what_happened_is_told_once_and_in_order(app: Mainspring) -> None:
    changes = app.changes()
    assert changes.look().changes == []

    job = app.enqueue("greet", ["Ada"])
    created = changes.look()
    drain(app)
    finished = changes.look()

    assert [(one.change, one.id) for one in created.changes] == [("created", job.id)]
    assert [(one.change, one.state) for one in finished.changes] == [("finished", "succeeded")]
    assert changes.look().changes == []


def test_a_change_that_becomes_visible_late_is_told(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = app.changes()
    changes.look()
    late = app.enqueue("greet", ["Ada"])
    store = app.client.store
    found = store.changes(store.now() - timedelta(minutes=1))
    monkeypatch.setattr(type(store), "changes", lambda *_: [])
    assert changes.look().changes == []

    monkeypatch.setattr(type(store), "changes", lambda *_: found)  # as its commit comes after the look

    assert [one.id for one in changes.look().changes] == [late.id]


def test_each_look_reaches_back_beyond_the_one_before(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []
    store = app.client.store

    def note(_: object, since: datetime, __: datetime, ___: int) -> list[Change]:
        asked.append(since)
        return []

    monkeypatch.setattr(type(store), "changes", note)
    changes = app.changes()
    first = store.now()

    changes.look()
    changes.look()

    assert asked[1] < first - OVERLAP / 2


def test_that_there_was_more_than_is_told_is_told(app: Mainspring) -> None:
    changes = app.changes()
    changes.look()
    app.enqueue_prepared([app.prepare("greet", [str(n)]) for n in range(MOST + 1)])

    look = changes.look()

    assert (len(look.changes), look.skipped) == (MOST, True)
    assert changes.look().skipped is False


def test_a_job_that_has_started_is_not_created_again(app: Mainspring) -> None:
    changes = app.changes()
    changes.look()
    app.enqueue("greet", ["Ada"])
    told = [changes.look().changes]
    session = NewSession(id=new_id(), name="w", lease=timedelta(minutes=1))
    app.client.store.open_session(session)
    app.client.store.claim(session.id, "default", 1)
    told.append(changes.look().changes)

    assert [[one.change for one in some] for some in told] == [["created"], ["started"]]


def test_what_is_found_for_long_is_told_once(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = app.changes()
    changes.look()
    app.enqueue("greet", ["Ada"])
    store = app.client.store
    now = store.now()
    found = store.changes(now - timedelta(minutes=1))
    monkeypatch.setattr(type(store), "changes", lambda *_: found)
    told = []
    for passed in (0, 8, 16, 24):
        monkeypatch.setattr(type(store), "now", lambda _, at=now + timedelta(seconds=passed): at)
        told.append(len(changes.look().changes))

    assert told == [1, 0, 0, 0]


def enqueue_ahead(app: Mainspring, ahead: timedelta) -> None:
    """Enqueue more jobs than a look has room for, by a clock that is *ahead*."""
    first = (app.client.store.now() + ahead).timestamp() * 1000
    made = [new_job(id=uuid7(int(first), n), delay=timedelta(hours=1)) for n in range(MOST + 1)]
    app.client.store.enqueue(made)


def test_jobs_from_a_clock_that_is_far_ahead_do_not_hide_others(app: Mainspring) -> None:
    changes = app.changes()
    changes.look()
    enqueue_ahead(app, timedelta(hours=1))
    changes.look()
    job = app.enqueue("greet", ["Ada"])

    look = changes.look()

    assert ([one.id for one in look.changes], look.skipped) == ([job.id], False)


def test_that_jobs_from_a_clock_that_is_ahead_may_hide_others_is_told(app: Mainspring) -> None:
    changes = app.changes()
    changes.look()
    enqueue_ahead(app, OVERLAP / 2)
    changes.look()
    app.enqueue("greet", ["Ada"])

    assert changes.look().skipped is True


def test_a_client_that_is_too_slow_is_told_that_it_missed_something(app: Mainspring) -> None:
    import asyncio

    from mainspring.api.stream import Listener
    from mainspring.changes import Look

    changes = app.changes()
    changes.look()
    app.enqueue_prepared([app.prepare("greet", [str(n)]) for n in range(600)])
    look = changes.look()

    async def listen() -> tuple[int, bool]:
        listener = Listener(None)
        for _ in range(2):
            listener.tell(Look(look.changes, skipped=False))
        taken, skipped = await listener.take(1)
        return len(taken), skipped

    assert asyncio.run(listen()) == (1_000, True)


def test_who_joins_while_others_are_looked_for_is_not_taken_for_done(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (app.client.get(app.enqueue("greet", [name], run_after="1h").id) for name in ("Ada", "Bob"))
    looking, joined = threading.Event(), threading.Event()
    find = app.client.find

    def slowly(ids: list[UUID]) -> dict[UUID, Job]:
        looking.set()
        joined.wait(10)
        return find(ids)

    monkeypatch.setattr(app.client, "find", slowly)

    async def follow() -> list[Job]:
        watch = Watch(app)
        early = asyncio.create_task(watch.final(app.client, first, 30))
        await asyncio.to_thread(looking.wait, 10)
        seen: list[Job] = []
        async with aclosing(watch.follow(app.client, second)) as changes:
            seen.append(await anext(changes))
            joined.set()
            app.job(second.id).cancel()
            seen.append(await anext(changes))
        early.cancel()
        watch.close()
        return seen

    states = [job.state for job in asyncio.run(follow())]
    assert states == [JobState.SCHEDULED, JobState.CANCELLED]


def test_who_joins_when_others_have_seen_the_end_sees_it_too(app: Mainspring) -> None:
    stale = app.client.get(app.enqueue("greet", ["Ada"], run_after="1h").id)

    async def follow() -> Job:
        watch = Watch(app)
        app.job(stale.id).cancel()
        async with aclosing(watch.follow(app.client, stale)) as held:
            await anext(held)
            watch._seen[stale.id] = app.client.get(stale.id)
            ended = await watch.final(app.client, stale, 30)
        watch.close()
        return ended

    assert asyncio.run(follow()).state is JobState.CANCELLED


def test_however_many_come_the_database_is_asked_so_often(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    job = app.client.get(app.enqueue("greet", ["Ada"], run_after="1h").id)
    find = app.client.find
    looks: list[float] = []

    def noted(ids: list[UUID]) -> dict[UUID, Job]:
        looks.append(time.monotonic())
        return find(ids)

    monkeypatch.setattr(app.client, "find", noted)

    async def come_and_go() -> float:
        watch = Watch(app)
        began = time.monotonic()
        async with aclosing(watch.follow(app.client, job)) as changes:
            await anext(changes)
            while time.monotonic() - began < 1.5:
                await watch.final(app.client, job, 0.003)
        watch.close()
        return time.monotonic() - began

    took = asyncio.run(come_and_go())

    assert 10 < len(looks) <= 10 + took / 0.05 + 1
