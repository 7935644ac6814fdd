"""Webhooks: what is sent, to a real receiver on loopback, and what becomes of what that answers."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring import Webhook
from mainspring.errors import Undeliverable, Undelivered
from mainspring.notify import Delivery, verify
from mainspring.notify.webhook import Letter, PutOff, send
from mainspring.outbound import Outbound
from mainspring.worker.failure import traceback_of
from tests.support.receiver import Answer, Receiver, answering, receiving

ID = UUID("01890000-0000-7000-8000-000000000001")
NOTICE = {"event": "failure", "team": "acme", "job_id": "j1", "task": "greet", "schedule": None}
LOOPBACK = Outbound(allow=["127.0.0.1"])
LETTER = Letter(ID, "acme", NOTICE)


def parts(request: bytes) -> tuple[str, dict[str, str], bytes]:
    """Return the first line, the headers and the body of *request*."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


def sent(receiver: Receiver, **changes: Any) -> dict[str, Any]:
    """Send a notice to *receiver*, and return what is kept of its answer."""
    details: dict[str, Any] = {}
    delivery = Delivery(**{"outbound": LOOPBACK, **changes.pop("delivery", {})})
    send(Webhook(receiver.url + "/hook?a=b", **changes), LETTER, delivery, details)
    return details


def answered(answer: Answer) -> dict[str, Any]:
    with receiving(answer) as receiver:
        return sent(receiver)


def test_a_notice_is_posted_with_its_id_and_its_signature() -> None:
    with receiving() as receiver:
        details = sent(receiver, secret=["new", "old"])

    (request,) = receiver.requests
    first, headers, body = parts(request)
    assert first == "POST /hook?a=b HTTP/1.1"
    assert json.loads(body) == {"id": str(ID), **NOTICE}
    assert headers["Mainspring-Id"] == str(ID)
    assert headers["Mainspring-Event"] == "failure"
    assert headers["Content-Type"] == "application/json"
    assert verify("new", headers, body)
    assert verify("old", headers, body)
    assert not verify("other", headers, body)
    assert details["status"] == 200


def test_without_a_secret_nothing_is_signed() -> None:
    with receiving() as receiver:
        sent(receiver)

    assert b"mainspring-signature" not in receiver.requests[0].lower()


def test_links_lead_to_where_people_look() -> None:
    with receiving() as receiver:
        sent(receiver, delivery={"base_url": "https://jobs.example.org/"})

    assert json.loads(parts(receiver.requests[0])[2])["links"] == {"job": "https://jobs.example.org/jobs/j1"}


def test_a_secret_that_is_a_reference_is_resolved_for_the_team_when_it_is_used() -> None:
    with receiving() as receiver:
        sent(receiver, secret="secret://hook", delivery={"secret": lambda team, name: f"{team}/{name}"})

    _, headers, body = parts(receiver.requests[0])
    assert verify("acme/hook", headers, body)


def test_a_reference_that_can_not_be_resolved_sends_nothing() -> None:
    with receiving() as receiver, pytest.raises(Undelivered, match="secret://hook of team acme can't be resolved"):
        sent(receiver, secret="secret://hook")

    assert receiver.connections == 0


@pytest.mark.parametrize("status", ["400 Bad", "401 No", "404 Not", "410 Gone", "301 Moved", "302 Found", "422 No"])
def test_what_will_not_change_is_not_tried_again(status: str) -> None:
    with pytest.raises(Undeliverable, match=f"answered {status[:3]}"):
        answered(answering(status, "Location: http://127.0.0.1:1/\r\n"))


@pytest.mark.parametrize("status", ["408 Slow", "425 Early", "429 Many", "500 Oops", "502 Bad", "503 Later"])
def test_what_may_pass_is_tried_again(status: str) -> None:
    with pytest.raises(Undelivered, match=f"answered {status[:3]}") as raised:
        answered(answering(status))

    assert not isinstance(raised.value, Undeliverable)


@pytest.mark.parametrize(("after", "delay"), [("120", 120), ("999999", 6 * 3_600), ("0", 0)])
def test_a_receiver_may_say_when_to_come_again(after: str, delay: int) -> None:
    with pytest.raises(PutOff) as raised:
        answered(answering("503 Later", f"Retry-After: {after}\r\n"))

    assert raised.value.delay == timedelta(seconds=delay)


@pytest.mark.parametrize("after", ["soon", "-1", "1e3", "Wed, 21 Oct 2026 07:28:00 GMT", "9" * 30, "٣"])
def test_what_is_no_simple_number_of_seconds_is_left_to_the_backoff(after: str) -> None:
    with pytest.raises(Undelivered):
        answered(lambda peer, _: peer.sendall(f"HTTP/1.1 503 Later\r\nRetry-After: {after}\r\n\r\n".encode()))


def test_of_what_a_receiver_says_the_beginning_is_kept_on_one_line() -> None:
    with pytest.raises(Undeliverable) as raised:
        answered(answering("400 Bad", body=b"first\r\nsecond\0\x1b[31m" + b"x" * 5_000))

    assert len(str(raised.value)) < 260
    assert "first second [31mxxx" in str(raised.value)


SECRET_URL = "/services/T0SECRET/b%40dge-9?token=c%2Fanary&v=2"
REPEATED = [
    "Cannot POST /services/T0SECRET/b%40dge-9?token=c%2Fanary&v=2",
    "Cannot POST /services/T0SECRET/b%40dge-9",
    "Cannot POST /services/T0SECRET/b@dge-9?token=c/anary&amp;v=2",
    "no team T0SECRET",
    "no such token: 'c/anary'",
    "token%3Dc%252Fanary",
    '{"error": "b@dge-9 is unknown", "path": "\\/services\\/T0SECRET"}',
    "signed with s3cret-of-hook",
    "x" * 195 + "T0SECRET",
    "x" * 60_000 + "T0SECRET",
]


@pytest.mark.parametrize("said", REPEATED)
@pytest.mark.parametrize("status", ["404 Not", "500 Oops", "503 Later\r\nRetry-After: 1"])
def test_where_it_leads_and_its_secret_are_not_told_though_the_receiver_repeats_them(status: str, said: str) -> None:
    with receiving(answering(status, body=said.encode())) as receiver:
        channel = Webhook(receiver.url + SECRET_URL, secret="s3cret-of-hook")
        with pytest.raises(Exception, match="answered") as told:
            send(channel, LETTER, Delivery(outbound=LOOPBACK), {})

    kept = traceback_of(told.value)
    assert not [part for part in ("T0SEC", "dge-9", "anary", "s3cret-of") if part in kept]
    assert receiver.url in kept


def test_where_it_leads_is_not_told_though_the_receiver_answers_with_no_http() -> None:
    with receiving(lambda peer, request: peer.sendall(request)) as receiver, pytest.raises(Undelivered) as raised:
        send(Webhook(receiver.url + SECRET_URL), LETTER, Delivery(outbound=LOOPBACK), {})

    assert "T0SECRET" not in traceback_of(raised.value)
    assert f"{receiver.url} did not answer" in str(raised.value)


def test_a_receiver_without_a_path_is_called_by_its_name() -> None:
    with receiving(answering("404 Not", body=b"nothing at /")) as receiver, pytest.raises(Undeliverable) as raised:
        send(Webhook(receiver.url), LETTER, Delivery(outbound=LOOPBACK), {})

    assert str(raised.value) == f"{receiver.url} answered 404: nothing at /"


def test_an_address_inside_is_never_reached() -> None:
    with receiving() as receiver, pytest.raises(Undeliverable, match="not public"):
        sent(receiver, delivery={"outbound": Outbound()})

    assert receiver.connections == 0


def test_a_receiver_that_is_away_may_come_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Undelivered) as raised:
        send(Webhook(f"http://127.0.0.1:{port}"), LETTER, Delivery(outbound=LOOPBACK), {})

    assert not isinstance(raised.value, Undeliverable)


def test_an_endless_answer_is_read_no_further_than_the_cap() -> None:
    written = 0
    done = threading.Event()

    def flood(peer: socket.socket, _: bytes) -> None:
        nonlocal written
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        try:
            while not done.is_set():
                written += peer.send(b"x" * 65_536)
        except OSError:
            pass

    with receiving(flood) as receiver:
        details = sent(receiver)
        done.set()

    assert details["status"] == 200
    assert written < 50_000_000


def test_a_compressed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)

    with pytest.raises(Undeliverable) as raised:
        answered(answering("400 Bad", "Content-Encoding: gzip\r\n", bomb))

    assert len(str(raised.value)) < 260
