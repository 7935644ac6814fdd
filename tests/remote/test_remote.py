"""An app from afar: the same names, the same errors, and nothing done twice because an answer was lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from mainspring import JobState, Mainspring, Parent, Priority, every
from mainspring.clock import SystemClock
from mainspring.errors import (
    InvalidPayload,
    InvalidValue,
    JobFailed,
    JobNotFound,
    QuotaExceeded,
    ReplayRefused,
    ResultNotReady,
    ScheduleNotFound,
    ServerRefused,
    ServerUnavailable,
    TaskNotFound,
)
from mainspring.remote import AsyncClient, Client
from mainspring.remote.calls import find_jobs
from mainspring.server import Server
from mainspring.store import inspect
from mainspring.testing import drain


@pytest.fixture
def token(app: Mainspring) -> str:
    return app.tokens.create("remote", {"default": "admin"})[0]


@pytest.fixture
def client(server: Server, token: str) -> Iterator[Client]:
    with Client(server.url, token) as client:
        yield client


def test_a_job_is_enqueued_looked_at_and_ruled(client: Client, app: Mainspring) -> None:
    job = client.enqueue(
        "greet", ["Ada"], {"greeting": "Hi"}, priority=Priority.HIGH, run_after=timedelta(hours=1), queue="mail"
    )

    assert (job.snapshot.team, job.snapshot.queue, job.snapshot.priority, job.state) == (
        "default",
        "mail",
        10,
        "scheduled",
    )
    assert [job.pause("why"), job.resume(), job.cancel(), job.replay()] == ["paused", "scheduled", "cancelled", "ready"]
    drain(app)
    assert job.result(timeout=10) == "Hi, Ada!"
    assert [attempt.outcome for attempt in client.job(job.id).attempts()] == ["succeeded"]
    assert (job.logs(), job.explain()) == ([], [])
    assert [one.id for one in client.jobs(state="succeeded", task="greet")] == [job.id]


def test_jobs_are_found_by_time_and_by_error_however_far_back(
    client: Client, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = client.enqueue("fail")
    drain(app)
    client.enqueue_many("greet", [(("Ada",), {})] * 9)
    monkeypatch.setattr(inspect, "LOOKED", 2)

    assert [one.id for one in client.jobs(since="1h", until=SystemClock().now() + timedelta(minutes=1), limit=1)] != []
    assert client.jobs(until="1h") == client.jobs(finished_until=timedelta(hours=1)) == []
    assert [one.id for one in client.jobs(error="no luck")] == [failed.id]
    assert len(client.jobs(task="greet")) == 9
    assert len(client.jobs(task="greet", limit=7)) == 7


def test_how_long_ago_jobs_may_be_is_the_same_for_all_pages() -> None:
    begun = SystemClock().now()
    talk = find_jobs({"since": "1h", "finished_until": timedelta(minutes=5), "until": begun, "state": None})
    asked = [next(talk), *(talk.send({"items": [], "next": str(uuid4())}) for _ in range(2))]

    told = {(ask.params["since"], ask.params["finished_until"], ask.params["until"]) for ask in asked}
    ((since, finished_until, until),) = told
    ended = SystemClock().now()
    assert begun <= datetime.fromisoformat(since) + timedelta(hours=1) <= ended
    assert begun <= datetime.fromisoformat(finished_until) + timedelta(minutes=5) <= ended
    assert until == begun.isoformat()


def test_jobs_come_after_others_and_many_are_made_together(client: Client) -> None:
    first, second = client.enqueue_many("greet", [(("Ada",), {}), (("Bob",), {"greeting": "Hi"})])

    third = client.enqueue("greet", ["Cy"], after=[first.id, Parent(second, if_failed="run")])

    assert third.state == "blocked"
    assert second.snapshot.kwargs == {"greeting": "Hi"}
    assert client.enqueue_many("greet", []) == []
    client.signal(third, "rating", {"stars": 5})


def test_schedules_queues_and_dead_letters_have_the_names_of_the_app(client: Client, app: Mainspring) -> None:
    made = client.schedules.add("t7", "fail", every("15m"), queue="mail", jitter="1m")
    assert (made.id, made.definition.queue, made.definition.trigger) == ("t7", "mail", every("15m"))
    assert [one.id for one in client.schedules.list()] == ["t7"]
    assert client.schedules.pause("t7", reason="holidays").reason == "holidays"
    assert client.schedules.resume("t7").paused is False
    assert len(client.schedules.preview("t7", 3)) == 3
    job = client.schedules.trigger("t7")
    begun = datetime(2026, 11, 1, tzinfo=UTC)
    assert len(client.schedules.backfill("t7", begun, begun + timedelta(hours=1))) == 4
    assert {tick.verdict for tick in client.schedules.history("t7")} == {"triggered", "backfilled"}
    assert client.queues.list()[0].jobs[JobState.READY] == 5
    drain(app)
    (group,) = client.dead.groups()
    assert (group.count, len(client.dead.list(group=group.fingerprint)), client.dead.count(task="fail")) == (5, 5, 5)
    assert client.dead.replay(ids=[job.id]) == 1
    meant = client.dead.meant(group=group.fingerprint)
    assert meant == app.dead.meant()
    assert client.dead.discard(group=group.fingerprint, reason="old", finished_until=meant.finished_until) == 4
    assert client.dead.meant() == (0, None)
    client.schedules.remove("t7")
    with pytest.raises(ScheduleNotFound):
        client.schedules.get("t7")


def test_errors_are_those_of_the_app(client: Client, app: Mainspring, server: Server) -> None:
    with pytest.raises(InvalidPayload, match="expected `str`"):
        client.enqueue("greet", [3])
    with pytest.raises(TaskNotFound, match="did you mean 'greet'"):
        client.enqueue("greeet")
    with pytest.raises(JobNotFound):
        client.job(uuid4())
    job = client.enqueue("fail")
    with pytest.raises(ResultNotReady):
        job.result(timeout=0.01)
    drain(app)
    with pytest.raises(JobFailed, match="no luck"):
        job.result()
    done = client.enqueue("greet", ["Ada"])
    drain(app)
    with pytest.raises(ReplayRefused):
        done.replay()
    app.teams.set("default", rate="1/h")
    client.enqueue("fail")
    with pytest.raises(QuotaExceeded) as refused:
        client.enqueue("fail")
    assert (refused.value.retry_after or 0) > 60
    with Client(server.url, "ms_wrong") as stranger, pytest.raises(ServerRefused) as unknown:
        stranger.jobs()
    assert unknown.value.status == 401


def test_a_team_may_be_named(server: Server, app: Mainspring) -> None:
    text, _ = app.tokens.create("both", {"acme": "submitter", "beta": "submitter"})

    with Client(server.url, text, team="beta") as client:
        assert client.enqueue("fail").snapshot.team == "beta"


def losing_answers(monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Have the first answers get lost; return which requests were sent."""
    sent: list[str] = []
    original = httpx.Client.send

    def send(self: httpx.Client, request: httpx.Request, **more: Any) -> httpx.Response:
        answer = original(self, request, **more)
        sent.append(request.method)
        if len(sent) <= count:
            raise httpx.ReadError("lost")
        return answer

    monkeypatch.setattr(httpx.Client, "send", send)
    return sent


def test_a_job_whose_answer_was_lost_is_made_once(
    client: Client, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = losing_answers(monkeypatch, 2)

    job = client.enqueue("fail")
    many = client.enqueue_many("fail", [((), {})] * 2)

    assert len(sent) == 4
    assert {one.id for one in app.jobs()} == {job.id, *(one.id for one in many)}


def test_what_might_be_done_twice_is_not_sent_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = client.enqueue("fail")
    sent = losing_answers(monkeypatch, 1)

    with pytest.raises(ServerUnavailable, match="lost"):
        job.signal("rating")

    assert sent == ["POST"]
    assert job.state == "ready"


def test_a_server_that_is_not_there_is_told_of(server: Server, token: str) -> None:
    server.stop()

    with Client(server.url, token) as client, pytest.raises(ServerUnavailable):
        client.jobs()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("127.0.0.1:8451", "got: '127.0.0.1:8451', did you mean 'http://127.0.0.1:8451'?"),
        ("", "got: ''"),
        ("ftp://jobs.example", "got: 'ftp://jobs.example'"),
        ("http://", "got: 'http://', which names no host"),
        ("http://a:port", "got: 'http://a:port' (Invalid port: 'port')"),
    ],
)
def test_what_is_no_address_is_refused(url: str, told: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidValue, match="expected the address of a server") as refused:
            kind(url, "ms_x")
        assert told in str(refused.value)


@pytest.mark.parametrize("token", ["", "ms_hunter2\n", "ms hunter2", "ms_hünter2"])
def test_what_is_no_token_is_refused_and_not_shown(token: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidValue, match="expected a token such as") as refused:
            kind("http://127.0.0.1", token)
        assert "nter2" not in str(refused.value)


def test_what_is_no_team_is_refused() -> None:
    with pytest.raises(InvalidValue, match="expected the name of a team"):
        Client("http://127.0.0.1", team="A\nB")


def test_values_that_json_can_not_carry_are_refused_by_name(client: Client, app: Mainspring) -> None:
    odd: Any = object()
    with pytest.raises(InvalidPayload, match="argument 1: expected a value that JSON can carry"):
        client.enqueue("greet", [odd])
    with pytest.raises(InvalidPayload, match="argument 'greeting'"):
        client.enqueue_many("greet", [(["Ada"], {"greeting": float("nan")})])
    with pytest.raises(InvalidPayload, match="argument 1"):
        client.schedules.add("s", "greet", every("1h"), args=[odd])
    with pytest.raises(InvalidPayload, match="the value of the signal"):
        client.signal(uuid4(), "rating", odd)
    with pytest.raises(InvalidPayload, match="expected values that JSON can carry"):
        client.dead.discard(reason=odd)
    assert app.jobs() == []


def answering(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Have the server answer this, whatever it is asked."""

    def send(_: httpx.Client, request: httpx.Request, **__: Any) -> httpx.Response:
        return httpx.Response(200, content=content, request=request)

    monkeypatch.setattr(httpx.Client, "send", send)


@pytest.mark.parametrize("content", [b"<html>", b"{}", b"[]", b'{"items": 3}', b'{"items": [{"id": 3}]}', b"\xff"])
def test_an_answer_that_is_none_of_ours_is_told_to_be_none(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    answering(monkeypatch, content)
    client = Client("http://127.0.0.1")
    job = uuid4()

    for ask in (client.jobs, client.queues.list, lambda: client.job(job), lambda: client.schedules.trigger("s")):
        with pytest.raises(ServerRefused, match="expected an answer of a Mainspring server, got another"):
            ask()


def test_a_job_with_no_key_of_its_own_is_made_once_all_the_same(
    client: Client, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing_answers(monkeypatch, 1)

    none: Any = None
    client.enqueue("fail", idempotency_key=none)

    assert len(app.jobs()) == 1


def test_an_id_leads_to_what_has_it_and_nowhere_else(server: Server, app: Mainspring) -> None:
    text, _ = app.tokens.create("both", {"acme": "admin", "other": "admin"})
    app.within("other").schedules.add("x", "fail", every("1h"))
    app.within("acme").schedules.add("a/../b:c", "fail", every("1h"))

    with Client(server.url, text, team="acme") as client:
        for odd in ("x?team=other#y", "../schedules", "x/%2e%2e"):
            with pytest.raises(InvalidValue, match=r"^schedule_id: expected"):
                client.schedules.get(odd)
        with pytest.raises(InvalidValue, match="expected the name or id of something, got: ''"):
            client.schedules.get("")
        assert client.schedules.get("a/../b:c").id == "a/../b:c"


def test_an_encrypted_job_that_the_server_can_not_open_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = [
        "args",
        "kwargs",
        "key",
        "expires_at",
        "started_at",
        "finished_at",
        "session",
        "wish",
        "reason",
        "signal",
        "outcome",
        "result",
        "error",
        "progress",
        "workflow",
        "pending",
    ]
    told: dict[str, object] = dict.fromkeys(unknown)
    told |= {"kind": "job", "standing": "ready", "encrypted": True, "losses": 0, "fence": 0, "parents": []}
    told |= {"id": str(uuid4()), "team": "default", "task": "t", "queue": "q", "priority": 5, "state": "ready"}
    told |= {"attempt": 0, "created_at": "2026-11-15T09:00:00Z", "run_at": "2026-11-15T09:00:00Z"}
    answering(monkeypatch, json.dumps(told).encode())

    assert Client("http://127.0.0.1").job(uuid4()).snapshot.args is None


def test_all_of_it_can_be_awaited(server: Server, token: str, app: Mainspring) -> None:
    async def use() -> object:
        async with AsyncClient(server.url, token) as client:
            job = await client.enqueue("greet", ["Ada"])
            assert (await job.state(), (await job.snapshot()).task) == ("ready", "greet")
            await client.signal(job, "rating")
            (other,) = await client.enqueue_many("greet", [(("Bob",), {})])
            assert await other.cancel("enough") == "cancelled"
            assert {one.id for one in await client.jobs()} == {job.id, other.id}
            await client.schedules.add("t7", "fail", every("15m"))
            assert [one.id for one in await client.schedules.list()] == ["t7"]
            assert (await (await client.schedules.trigger("t7")).snapshot()).task == "fail"
            with pytest.raises(JobNotFound):
                await client.job(uuid4())
            waiting: asyncio.Future[Any] = asyncio.ensure_future(job.result(timeout=60))
            await asyncio.to_thread(drain, app)
            assert [group.count for group in await client.dead.groups()] == [1]
            return await waiting

    assert asyncio.run(use()) == "Hello, Ada!"
