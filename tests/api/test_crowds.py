"""Nobody has all of a server: connections that say nothing, slow bodies, streams, waits and trials have bounds."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx
import pytest

from mainspring import Mainspring
from mainspring import server as server_module
from mainspring.api import requests
from mainspring.api.callers import Gate, Settings
from mainspring.api.crowd import Crowd
from mainspring.api.recorder import Recorder
from mainspring.model.token import Token
from mainspring.server import Server
from mainspring.tokens import Tokens
from tests.api.conftest import Client
from tests.support.waiting import until

JOBS, EVENTS, TRIAL = "/api/v1/jobs", "/api/v1/events", "/api/v1/notifications/chat/test"
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.settimeout(20)
        yield connection


@pytest.fixture
def hasty(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that waits for a head for half a second only."""
    monkeypatch.setattr(server_module, "_IDLE", 0.5)
    made = Server(app, "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("said", [b"", HEAD], ids=["nothing", "half a head"])
def test_a_connection_on_which_nobody_asks_anything_is_closed(hasty: Server, said: bytes) -> None:
    with connected(hasty) as connection:
        connection.sendall(said)

        assert connection.recv(1) == b""


def test_a_connection_that_was_used_is_closed_in_the_midst_of_a_head(hasty: Server) -> None:
    with connected(hasty) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD)
        while connection.recv(65_536):  # the rest of the first answer
            pass


def test_a_connection_on_which_somebody_asks_now_and_then_stays(hasty: Server) -> None:
    address = urlsplit(hasty.url)
    with closing(HTTPConnection(str(address.hostname), address.port, timeout=20)) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(4):
            threading.Event().wait(0.2)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()

        assert connection.sock is first


def test_a_body_that_does_not_come_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_PATIENCE", 0.2)
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90\r\n"
    with connected(server) as connection:
        connection.sendall(head + b'\r\n{"task"')

        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")


def test_one_token_has_so_many_streams_and_another_has_its_own(
    server: Server, client_of: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server._api.state, "followers", Crowd("streams", each=2, most=3))
    acme, beta = client_of(acme="viewer"), client_of(beta="viewer")
    with ExitStack() as streams:
        opened = [streams.enter_context(acme.stream("GET", EVENTS)).iter_raw() for _ in range(2)]
        for stream in opened:
            next(stream)  # which begins it
        refused = acme.get(EVENTS)
        assert refused.status_code == 429
        assert refused.json()["type"] == "urn:mainspring:too-many"
        opened.append(streams.enter_context(beta.stream("GET", EVENTS)).iter_raw())
        next(opened[-1])
        assert client_of(other="viewer").get(EVENTS).status_code == 429

    def is_let_in() -> bool:
        with acme.stream("GET", EVENTS) as stream:
            return stream.status_code == 200

    until(is_let_in)


def test_who_waits_counts_as_one_who_follows(
    server: Server, client_of: Client, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server._api.state, "followers", Crowd("streams", each=0, most=1))
    job = app.within("acme").enqueue("fail", run_after="1h")

    acme = client_of(acme="viewer")

    assert acme.get(f"{JOBS}/{job.id}", params={"wait": 1}).status_code == 429
    assert acme.get(f"{JOBS}/{job.id}").status_code == 200


def test_who_waits_gets_no_answer_when_the_token_was_revoked_meanwhile(client_of: Client, app: Mainspring) -> None:
    job = app.within("acme").enqueue("fail", run_after="1h")
    acme = client_of(acme="viewer")
    (token,) = app.tokens.list()
    told: list[httpx.Response] = []
    waiting = threading.Thread(target=lambda: told.append(acme.get(f"{JOBS}/{job.id}", params={"wait": 30})))
    waiting.start()
    until(lambda: token.id in {one.id for one in app.tokens.list() if one.last_used_at})

    app.tokens.revoke(token.id)
    until(lambda: acme.get(JOBS).status_code == 401)
    job.cancel()
    waiting.join(20)

    assert [one.status_code for one in told] == [401]


def test_a_team_tries_one_channel_at_a_time(server: Server, client_of: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
    acme = client_of(acme="admin")
    told: list[httpx.Response] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        acme.put("/api/v1/notifications/chat", json={"kind": "webhook", "url": url, "on": ["failure"]})
        trying = threading.Thread(target=lambda: told.append(acme.post(TRIAL)))
        trying.start()
        connection, _ = silent.accept()
        assert client_of(acme="admin").post(TRIAL).status_code == 429
        connection.close()
        trying.join(20)

    assert [one.json()["delivered"] for one in told] == [False]


@pytest.mark.parametrize("cut_off", [False, True])
def test_those_who_come_while_a_token_is_verified_share_the_answer(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, cut_off: bool
) -> None:
    """Also if the connection of the one for whom it was asked is cut."""
    text, token = app.tokens.create("test", {"acme": "viewer"})
    asked, go_on = threading.Semaphore(0), threading.Event()
    verify = Tokens.verify

    def verify_slowly(tokens: Tokens, shown: str) -> Token | None:
        asked.release()
        assert go_on.wait(20)
        return verify(tokens, shown)

    async def come() -> list[Token | BaseException | None]:
        gate = Gate(app, Settings(), Recorder(app))
        coming = [asyncio.create_task(gate._verified(text)) for _ in range(3)]
        await asyncio.to_thread(asked.acquire)
        if cut_off:
            coming[0].cancel()
            await asyncio.wait(coming[:1])
        go_on.set()
        return await asyncio.gather(*coming[1:], return_exceptions=True)

    monkeypatch.setattr(Tokens, "verify", verify_slowly)

    came = asyncio.run(come())

    assert [one.id for one in came if isinstance(one, Token)] == [token.id] * 2
    assert not asked.acquire(blocking=False)


def test_what_a_server_has_imported_is_kept_from_the_collector_while_it_serves(app: Mainspring) -> None:
    before = gc.get_freeze_count()
    server = Server(app, "127.0.0.1", 0)
    server.start()
    meanwhile = gc.get_freeze_count()
    server.stop()

    assert before < meanwhile > gc.get_freeze_count()


def test_a_server_that_has_stopped_leaves_nothing_behind(app: Mainspring) -> None:
    server = Server(app, "127.0.0.1", 0)
    server.start()
    api = weakref.ref(server._api)
    server.stop()

    del server
    gc.collect()

    assert api() is None
