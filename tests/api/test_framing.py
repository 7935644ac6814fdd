"""Requests that two servers in a row might read differently are refused, over a bare socket."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from uvicorn.server import ServerState

from mainspring import Mainspring
from mainspring import server as server_module
from mainspring.server import Server
from mainspring.store.sql import SqlStore
from tests.support.waiting import until

BODY = b'{"task":"fail"}'
HEAD = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
CREATE = HEAD.replace(b"Connection: close\r\n", b"") + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
OFFER = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
NOWHERE = b"POST /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(CREATE)
TWO_HOSTS = b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"


def send(server: Server, request: bytes, later: bytes = b"") -> bytes:
    """Send bytes, and some *later*, once the first are answered; return all that comes until the server hangs up."""
    answer = b""
    with connected(server) as connection, suppress(ConnectionError):
        connection.sendall(request)
        if later:
            answer += connection.recv(65_536)
            connection.sendall(later)
        answer += rest_of(connection)
    return answer


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.settimeout(20)
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    answer = b""
    with suppress(ConnectionError):  # which is how a server goes that was told more than it listened to
        while chunk := connection.recv(65_536):
            answer += chunk
    return answer


def told(*pieces: bytes) -> server_module._Connection:
    """Return a connection that has come as far as it does without waiting for anything."""

    async def tell() -> server_module._Connection:
        connection = server_module._Connection(server_module._config(FastAPI()), ServerState(), {})
        connection.connection_made(Mock(**{"get_extra_info.return_value": None}))
        for piece in pieces:
            connection.data_received(piece)
        return connection

    return asyncio.run(tell())


class Slow:
    """Creates that wait for a word, and the pieces that a server hears meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stored, self.go_on = threading.Event(), threading.Event()
        self.heard: list[bytes] = []
        enqueue, hear = SqlStore.enqueue, server_module._Connection.data_received

        def enqueue_slowly(*args: Any, **given: Any) -> Any:
            ids = enqueue(*args, **given)
            self.stored.set()
            assert self.go_on.wait(20)
            return ids

        def listen(connection: server_module._Connection, data: bytes) -> None:
            hear(connection, data)
            self.heard.append(data)

        monkeypatch.setattr(SqlStore, "enqueue", enqueue_slowly)
        monkeypatch.setattr(server_module._Connection, "data_received", listen)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Creates that are slow until they are told to go on, at the end at the latest."""
    made = Slow(monkeypatch)
    yield made
    made.go_on.set()


def test_a_request_as_it_should_be_is_answered(server: Server) -> None:
    answer = send(server, HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))

    assert answer.startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
        b"Content-Length: 3\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: -1\r\n\r\n" + BODY,
        b"Content-Length: +15\r\n\r\n" + BODY,
        b"Content-Length: 0x0f\r\n\r\n" + BODY,
        b"Host: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
        b"Host: evil.example\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
        b"X-Bad: a\0b\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
        b"X-Long: %s\r\n\r\n" % (b"x" * 100_000),
        b"Content-Length : %d\r\n\r\n%s" % (len(BODY), BODY),
        b"Transfer-Encoding: gzip, chunked\r\n\r\nf\r\n%s\r\n0\r\n\r\n" % BODY,
        b"Transfer-Encoding: chunked\r\n\r\n0xf\r\n%s\r\n0\r\n\r\n" % BODY,
    ],
)
def test_what_is_ambiguous_is_refused(server: Server, app: Mainspring, rest: bytes) -> None:
    answer = send(server, HEAD + rest)

    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501")) or answer == b""
    assert answer.count(b"HTTP/1.1") <= 1
    assert app.jobs() == []


def test_what_stands_behind_an_ambiguous_request_is_not_heard(server: Server, app: Mainspring) -> None:
    smuggled = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
    stays = HEAD.replace(b"Connection: close\r\n", b"")
    first = stays + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"

    answer = send(server, first + smuggled)

    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer.lower()
    assert app.jobs() == []


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://evil.example/api/v1/jobs HTTP/1.1",
        b"GET //evil.example/api/v1/jobs HTTP/1.1",
        b"GET /api/v1/../v1/jobs HTTP/1.1",
        b"GET /api/v1/jobs/..%2f..%2fhealthz HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"CONNECT localhost:80 HTTP/1.1",
        b"CONNECT /api/v1/jobs HTTP/1.1",
        b"TRACE /api/v1/jobs HTTP/1.1",
    ],
)
def test_an_address_of_another_form_leads_nowhere(server: Server, line: bytes) -> None:
    answer = send(server, line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 4")


def test_a_request_without_a_host_is_refused(server: Server) -> None:
    assert send(server, b"GET /api/v1/jobs HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_who_speaks_as_of_old_may_ask_how_the_server_is_without_a_host(server: Server) -> None:
    assert send(server, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert send(server, b"GET /api/v1/jobs HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("framing", [b"Content-Length: %d", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("pause", [False, True])
def test_a_body_behind_an_offer_to_speak_something_else_is_not_the_next_request(
    server: Server, framing: bytes, pause: bool
) -> None:
    hidden = b"GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    head = HEAD.replace(b"Connection: close", b"Connection: Upgrade\r\nUpgrade: h2c")
    head += (framing % len(hidden) if b"%" in framing else framing) + b"\r\n\r\n"

    answer = send(server, head, hidden) if pause else send(server, head + hidden)

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 2  # once in what it says
    assert b"Upgrade" in answer


@pytest.mark.parametrize("behind", [b"", OFFER, CREATE])
def test_an_offer_to_speak_something_else_is_passed_over_and_the_last_that_is_heard(
    server: Server, app: Mainspring, caplog: pytest.LogCaptureFixture, behind: bytes
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = send(server, OFFER + behind)

    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer
    assert app.jobs() == []
    assert not [one for one in caplog.records if one.name.startswith("uvicorn")]


def test_a_body_whose_head_stood_behind_an_offer_is_not_a_request(server: Server, app: Mainspring) -> None:
    """What stands behind an offer in the same piece is thrown away by the parser, be it a head whose body follows."""
    answer = send(server, OFFER + NOWHERE, CREATE)

    assert answer.count(b"HTTP/1.1") == 1
    assert app.jobs() == []


def test_nothing_is_heard_behind_an_offer_that_is_not_answered_yet() -> None:
    connection = told(OFFER, CREATE)

    assert connection.cycle.scope["path"] == "/healthz"
    assert not connection.pipeline


BROKEN = {
    "junk": b"\0junk\r\n\r\n",
    "two hosts": TWO_HOSTS,
    "a head without end": b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000,
    "a broken body": HEAD + b"Transfer-Encoding: chunked\r\n\r\nnothing",
}


def heard_while_another_waits(server: Server, slow: Slow, *pieces: bytes) -> bytes:
    """Return all that comes for *pieces*, of which the first has a job created that takes until all are heard."""
    with connected(server) as connection:
        for piece in pieces:
            connection.sendall(piece)
            assert slow.stored.wait(20)
        until(lambda: b"".join(slow.heard) == b"".join(pieces))
        slow.go_on.set()
        return rest_of(connection)


@pytest.mark.parametrize("behind", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_broken_is_no_answer_to_what_is_under_way(
    server: Server, app: Mainspring, slow: Slow, behind: bytes
) -> None:
    answer = heard_while_another_waits(server, slow, CREATE, behind)

    assert answer.startswith(b"HTTP/1.1 201")
    assert answer.count(b"HTTP/1.1") == 1
    assert len(app.jobs()) == 1


@pytest.mark.parametrize("behind", ["junk", "two hosts", "a broken body"])
def test_what_is_broken_is_no_answer_to_what_came_in_the_same_piece(
    server: Server, app: Mainspring, slow: Slow, behind: str
) -> None:
    answer = heard_while_another_waits(server, slow, CREATE + BROKEN[behind])

    assert answer.startswith(b"HTTP/1.1 201")
    assert answer.count(b"HTTP/1.1") == 1
    assert len(app.jobs()) == 1


STREAM = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
WITH_BODY = STREAM + b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(("head", "behind"), [*((STREAM, one) for one in BROKEN.values()), (WITH_BODY, b"nothing")])
def test_what_is_broken_does_not_get_into_a_stream(
    server: Server, app: Mainspring, slow: Slow, head: bytes, behind: bytes
) -> None:
    slow.go_on.set()
    with connected(server) as connection:
        connection.sendall(head + b"\r\n")
        answer = b""
        while b"listening" not in answer:
            answer += connection.recv(65_536)
        connection.sendall(behind)
        until(lambda: b"".join(slow.heard).endswith(behind))
        app.enqueue("fail")
        while b"created" not in answer:
            answer += connection.recv(65_536)

    assert answer.count(b"HTTP/1.1") == 1


def test_what_goes_on_behind_a_body_without_end_is_not_listened_to(server: Server) -> None:
    body = b"f\r\n%s\r\n0\r\nX-Long: " % BODY

    answer = send(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"x" * 1_000_000)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


def test_the_next_head_is_not_taken_for_long_because_of_the_body_before_it(server: Server) -> None:
    body = b'{"task": "fail", "key": "%s"}' % (b" " * 1_000_000)  # which is refused, having been read
    stays = HEAD.replace(b"Connection: close\r\n", b"") + b"Content-Length: %d\r\n\r\n" % len(body)
    following = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

    answer = send(server, stays + body + following, b"\r\n")

    assert answer.count(b"HTTP/1.1 422") == 1
    assert answer.count(b"HTTP/1.1 200") == 1


def test_a_head_that_is_too_long_is_refused_though_it_came_in_one_piece(server: Server) -> None:
    answer = send(server, HEAD + b"X-Long: %s\r\n\r\n" % (b"x" * 20_000))

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"too long") == 1


def test_what_is_refused_is_refused_once() -> None:
    """Also to a client who does not read: what is written is kept for him, even after the end of the connection."""
    connection = told(TWO_HOSTS[:-2] + b"X-Long: " + b"x" * 20_000 + b"\r\n\r\n")

    assert connection.transport.write.call_count == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [b"HTTP/0.9", b"HTTP/2.0"])
def test_who_speaks_another_version_is_refused(server: Server, version: bytes) -> None:
    assert send(server, b"GET /healthz %s\r\nHost: localhost\r\n\r\n" % version).startswith(b"HTTP/1.1 400")


def test_a_head_without_end_is_refused_before_it_ends(server: Server) -> None:
    answer = send(server, b"GET /api/v1/jobs HTTP/1.1\r\nX-Long: " + b"x" * 100_000)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")  # which may be lost, as it did not hear all


def test_what_stands_behind_a_body_adds_nothing_to_the_head(server: Server, app: Mainspring) -> None:
    head = HEAD.replace(b"Content-Type: application/json\r\n", b"")
    body = b"f\r\n%s\r\n0\r\nContent-Type: application/json\r\n\r\n" % BODY

    answer = send(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + body)

    assert answer.startswith(b"HTTP/1.1 415")
    assert app.jobs() == []


@pytest.mark.parametrize("shown", [b"Bearer ", b"Bearer", b"bearer  ", b""])
def test_an_empty_token_is_no_token_even_where_none_is_needed(server: Server, shown: bytes) -> None:
    answer = send(
        server,
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: %s\r\n\r\n" % shown,
    )

    assert answer.startswith(b"HTTP/1.1 401")
