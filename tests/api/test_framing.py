"""Requests that two servers in a row might read differently are refused, over a bare socket."""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from mainspring import Mainspring
from mainspring.server import Server

BODY = b'{"task":"fail"}'
HEAD = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"


def send(server: Server, request: bytes, later: bytes = b"") -> bytes:
    """Send bytes, and some *later*, once the first are answered; return all that comes until the server hangs up."""
    address = urlsplit(server.url)
    answer = b""
    with socket.create_connection((address.hostname, address.port)) as connection, suppress(ConnectionError):
        connection.settimeout(20)
        connection.sendall(request)
        if later:
            answer += connection.recv(65_536)
            connection.sendall(later)
        while chunk := connection.recv(65_536):
            answer += chunk
    return answer


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


def test_an_offer_to_speak_something_else_is_passed_over(server: Server) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    again = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    answer = send(server, head, again)

    assert answer.count(b"HTTP/1.1 200") == 2


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
