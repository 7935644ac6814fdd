"""What a fleet is ruled by, from afar: the names of the app, blocking and awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from mainspring import Email, Mainspring, Webhook, every
from mainspring.alerts import error_rate, stuck
from mainspring.errors import (
    AlertNotFound,
    InvalidPayload,
    InvalidValue,
    KeyTaken,
    NotFound,
    NotificationNotFound,
    SecretNotFound,
    ServerRefused,
    TeamNotFound,
    TokenNotFound,
    Undelivered,
)
from mainspring.job_handle import JobHandle
from mainspring.model.breaker import Phase
from mainspring.model.rate import Rate
from mainspring.remote import AsyncClient, Change, Client, RemoteJob, RemoteWorkflow, Skipped
from mainspring.remote.talk import Event, Events
from mainspring.server import Server
from mainspring.testing import drain
from mainspring.workflow_handle import WorkflowHandle

NODES: list[dict[str, Any]] = [
    {"id": "raw", "task": "numbers", "args": [3]},
    {"id": "parts", "task": "double", "map": {"$result": "raw"}},
    {"id": "end", "task": "total", "args": [{"$result": "parts"}]},
]
PARTS = (
    *("schedules", "queues", "dead", "tokens", "secrets", "alerts", "notifications", "retention", "audit", "teams"),
    *("paused_tasks", "limits", "breakers"),
)
OF_ITS_OWN = {"enqueue_many", "enqueue_workflow", "get_workflow", "follow"}
"""What the app does in another way: by its tasks, by `app.workflow` and by `app.changes`."""


@pytest.fixture
def token(app: Mainspring) -> str:
    return app.tokens.create("remote", {"*": "admin"})[0]


@pytest.fixture
def client(server: Server, token: str) -> Iterator[Client]:
    with Client(server.url, token) as client:
        yield client


def names(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_name_is_one_of_the_app(client: Client, app: Mainspring) -> None:
    assert names(client) - OF_ITS_OWN <= names(app)
    for part in PARTS:
        assert names(getattr(client, part)) <= names(getattr(app, part)), part
    assert names(RemoteJob) - {"follow"} <= names(JobHandle)
    assert names(RemoteWorkflow) - {"follow"} <= names(WorkflowHandle)


def test_both_kinds_of_client_have_the_same_names(client: Client) -> None:
    other = AsyncClient("http://127.0.0.1")

    assert names(other) == names(client)
    for part in PARTS:
        assert names(getattr(other, part)) == names(getattr(client, part))
        for name in names(getattr(other, part)):
            assert inspect.iscoroutinefunction(getattr(getattr(other, part), name)), name
    asyncio.run(other.close())


def test_a_workflow_is_enqueued_followed_and_ruled(client: Client, app: Mainspring) -> None:
    flow = client.enqueue_workflow("etl", NODES, output="end", key="k")
    assert client.enqueue_workflow("etl", NODES, key="k").id == flow.id
    assert [one.id for one in client.workflows()] == [flow.id]
    assert client.workflows(before=flow.id) == []
    assert [flow.pause("why"), flow.resume()] == ["paused", "blocked"]
    drain(app)
    assert flow.result(timeout=10) == 6
    assert client.get_workflow(flow.id).progress() == {"succeeded": 3}
    assert [job.state for job in flow.jobs()] == ["succeeded"] * 3
    assert str(flow.picture()) == str(WorkflowHandle(app.client, flow.id).picture())


def test_a_workflow_that_is_none_is_not_found(client: Client) -> None:
    plain = client.enqueue("fail", key="k")

    with pytest.raises(NotFound, match="is no workflow"):
        client.get_workflow(plain.id)
    with pytest.raises(KeyTaken):
        client.enqueue_workflow("etl", NODES, key="k")
    with pytest.raises(InvalidPayload, match="argument 1"):
        client.enqueue_workflow("etl", [{"id": "a", "task": "greet", "args": [object()]}])


def test_tokens(client: Client, server: Server) -> None:
    text, token = client.tokens.create("shop", {"acme": "viewer"}, expires="90d")

    assert (token.name, token.grants, token.expires_at is not None) == ("shop", {"acme": "viewer"}, True)
    assert token.id in [one.id for one in client.tokens.list()]
    with Client(server.url, text) as shop:
        assert shop.jobs() == []
        with pytest.raises(ServerRefused, match="expected the role submitter in the team, got: viewer"):
            shop.enqueue("fail")
    assert client.tokens.revoke(token.id).revoked_at is not None
    assert client.tokens.get(token.id).revoked_at is not None
    with pytest.raises(TokenNotFound):
        client.tokens.get("a" * 12)


def test_alerts(client: Client, app: Mainspring) -> None:
    hook = Webhook("https://example.org/hook", secret="hunter2")
    made = client.alerts.add("slow", stuck("90m", task="greet"), every="1m", hold=timedelta(minutes=5), notify=[hook])

    assert (made.every, made.hold, made.channels, made.rule["longer_than"]) == ("1m", "5m", 1, "1h30m")
    assert app.alerts.get("slow").definition.rule == stuck("90m", task="greet")
    assert app.alerts.get("slow").definition.notify == (hook,)
    assert client.alerts.add("errors", error_rate(0.5)).rule["above"] == 0.5
    assert {"errors", "slow"} <= {one.id for one in client.alerts.list()}
    client.alerts.remove("errors")
    with pytest.raises(AlertNotFound):
        client.alerts.get("errors")


def test_notifications(client: Client) -> None:
    made = client.notifications.add("ops", Email("ops@example.org", on=["failure"]))
    client.notifications.add("hook", Webhook("https://127.0.0.1/hook", secret=["new", "old"]))

    assert (made.kind, made.to, made.on) == ("email", ["ops@example.org"], ["failure"])
    assert client.notifications.get("hook").secrets == 2
    assert [one.id for one in client.notifications.list()] == ["hook", "ops"]
    with pytest.raises(Undelivered):
        client.notifications.test("hook")
    client.notifications.remove("ops")
    with pytest.raises(NotificationNotFound):
        client.notifications.get("ops")


def test_secrets_retention_teams_and_the_audit_log(client: Client, app: Mainspring) -> None:
    client.secrets.set("smtp", "hunter2 hunter2")
    assert [one.name for one in client.secrets.list()] == ["smtp"]
    client.secrets.remove("smtp")
    with pytest.raises(SecretNotFound):
        client.secrets.remove("smtp")

    rule = client.retention.set(queue="mail", state="succeeded", age="7d", count=9)
    assert client.retention.list() == [rule]
    client.retention.remove(queue="mail", state="succeeded")
    with pytest.raises(NotFound):
        client.retention.remove(queue="mail")

    assert client.teams.set("acme", max_pending=7, rate=Rate(100, timedelta(seconds=1))).interval == timedelta(
        milliseconds=10
    )
    assert client.teams.set("acme", rate=None).interval is None
    assert [one.name for one in client.teams.list()] == ["acme"]
    odd: Any = {"max_pendign": 3}
    with pytest.raises(InvalidValue, match="did you mean 'max_pending'"):
        client.teams.set("acme", **odd)
    client.teams.remove("acme")
    with pytest.raises(TeamNotFound):
        client.teams.get("acme")

    last, before = client.audit.list(limit=2)
    assert (last.action, before.action) == ("team.remove", "team.set")
    assert client.audit.list(before=before.seq, limit=1)[0].seq < before.seq


def test_queues_tasks_limits_breakers_and_workers(client: Client, app: Mainspring) -> None:
    client.queues.set("mail", ageing="1m")
    client.queues.give("gpu", "acme")
    known = {one.name: one for one in app.queues.list()}
    assert (known["mail"].ageing, known["gpu"].team) == (timedelta(minutes=1), "acme")
    assert client.paused_tasks.pause("fail", reason="broken") == app.paused_tasks.list()[0]
    assert client.paused_tasks.list() == app.paused_tasks.list()
    assert [client.paused_tasks.resume("fail"), client.paused_tasks.resume("fail")] == [True, False]
    assert client.breakers.trip("smtp/a?b", lasting="15m", reason="maintenance").phase is Phase.OPEN
    assert [one.key for one in client.breakers.list()] == ["smtp/a?b"]
    assert client.breakers.get("smtp/a?b").phase is Phase.OPEN
    assert [client.breakers.reset("smtp/a?b", all=True), client.breakers.reset("smtp/a?b")] == [True, False]
    assert (client.limits.list(), client.limits.release("gone"), client.workers()) == ([], 0, [])


def test_a_history_is_told(client: Client, app: Mainspring) -> None:
    app.client.store.sample()
    told = client.history("7d", queue="mail")

    assert told == app.history("7d", queue="mail")
    assert (told.samples[0].ready, told.samples[-1].ready, told.samples[-1].wait_p99) == (None, 0, None)
    with pytest.raises(InvalidValue):
        client.history("2h")


def test_what_was_logged_is_searched(client: Client, app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="expected since"):
        client.logs(since="soon")
    for since in ("1h", timedelta(hours=1), datetime.now(UTC) - timedelta(hours=1)):
        assert client.logs(contains="x", level="info", task="greet", since=since) == []


def test_a_job_is_followed_to_its_end(client: Client, app: Mainspring) -> None:
    job = client.enqueue("greet", ["Ada"])
    states = []
    for seen in job.follow():
        states.append(seen.state)
        if len(states) == 1:
            drain(app)

    assert (states[0], states[-1], job.snapshot.result) == ("ready", "succeeded", "Hello, Ada!")


def test_all_jobs_are_followed(client: Client, server: Server, token: str) -> None:
    with Client(server.url, token) as other, closing(other.follow()) as following:
        job = _created_while(following, client)
    assert (job.change, job.task) == ("created", "fail")


def _created_while(following: Iterator[Change | Skipped], client: Client) -> Change:
    """Return the first change that is heard of; jobs are made until one is, as nothing tells when the ear is open."""
    done = threading.Event()

    def make() -> None:
        while not done.wait(0.2):
            client.enqueue("fail")

    maker = threading.Thread(target=make)
    maker.start()
    try:
        (first,) = islice(following, 1)
    finally:
        done.set()
        maker.join()
    assert isinstance(first, Change)
    return first


def test_events_are_put_together_from_what_comes() -> None:
    stream = ': listening\n\nevent: change\ndata: {"a":"\u2028\x85: b"}\n\nevent: skipped\ndata: {}\n\n'.encode()

    for size in (1, 7, 1_000):
        events = Events()
        chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
        found = [event for chunk in chunks for event in events.feed(chunk)]
        assert found == [Event("change", {"a": "\u2028\x85: b"}), Event("skipped", {})]


def test_what_may_not_be_followed_is_refused(server: Server, app: Mainspring, token: str) -> None:
    with Client(server.url, "ms_wrong") as stranger, pytest.raises(ServerRefused):
        next(iter(stranger.follow()))


def test_all_of_it_can_be_awaited(server: Server, token: str, app: Mainspring) -> None:
    async def use() -> None:
        async with AsyncClient(server.url, token) as client:
            flow = await client.enqueue_workflow("etl", NODES, output="end")
            assert [one.id for one in await client.workflows()] == [flow.id]
            async with aclosing(flow.follow()) as following:
                assert (await anext(following)).state == "blocked"
            await asyncio.to_thread(drain, app)
            assert await flow.result(timeout=10) == 6
            assert await (await client.get_workflow(flow.id)).progress() == {"succeeded": 3}
            assert len(await flow.jobs()) == 3
            assert (await client.tokens.list())[0].name == "remote"
            await client.schedules.add("s", "fail", every("1h"))
            assert (await client.audit.list(limit=1))[0].action == "schedule.add"
            heard = asyncio.ensure_future(_first(client))
            while not heard.done():
                await client.enqueue("fail")
                await asyncio.sleep(0.2)
            assert (await heard).task == "fail"

    async def _first(client: AsyncClient) -> Change:
        async for change in client.follow():
            if isinstance(change, Change) and change.task == "fail":
                return change
        raise AssertionError("the stream has ended")

    asyncio.run(use())
