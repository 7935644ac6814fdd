"""`mainspring.http`: a request as a job."""

from __future__ import annotations

import json
import socket
import threading
from datetime import timedelta
from typing import Any

import pytest

from mainspring import JobState, Mainspring, every
from mainspring.builtin.http import _asked_for
from mainspring.errors import InvalidPayload
from mainspring.job_handle import JobHandle
from mainspring.outbound import Reply
from tests.support.receiver import answering, receiving
from tests.support.waiting import until
from tests.worker.endings import ended, outcomes

LONG = "60s"


@pytest.fixture
def url(sqlite_url: str) -> str:
    """What is sent is the same whatever database has kept it."""
    return sqlite_url


@pytest.fixture(autouse=True)
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")


def details(job: JobHandle[Any]) -> list[Any]:
    return [json.loads(attempt.details or "null") for attempt in job.attempts()]


def failure(job: JobHandle[Any]) -> tuple[str, str]:
    assert ended(job) is JobState.FAILED
    found = job.refresh().failure
    assert found is not None
    return found.type.rpartition(".")[2], found.message


def test_a_request_is_sent_and_its_reply_is_the_result(app: Mainspring) -> None:
    answer = answering("201 Created", "Content-Type: text/plain\r\nX-Secret: no\r\nLocation: /7\r\n", "grüße".encode())
    with receiving(answer) as receiver, app.worker():
        job = app.http.enqueue(
            f"{receiver.url}/things?x=1", method="POST", headers={"X-Token": "t"}, json={"a": [1, None]}
        )
        assert job.result(timeout=LONG) == {
            "status": 201,
            "headers": {"content-type": "text/plain", "location": "/7"},
            "body": "grüße",
            "truncated": False,
        }
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /things?x=1 HTTP/1.1"
    assert {b"X-Token: t", b"Content-Type: application/json", f"Idempotency-Key: {job.id}".encode()} <= set(lines)
    assert json.loads(body) == {"a": [1, None]}
    (said,) = details(job)
    assert {name: said[name] for name in ("status", "request_bytes", "response_bytes")} == {
        "status": 201,
        "request_bytes": len(body),
        "response_bytes": 7,
    }
    assert said["seconds"] >= 0


def test_what_is_given_takes_the_place_of_what_is_usual(app: Mainspring) -> None:
    with receiving() as receiver, app.worker():
        app.enqueue(
            "mainspring.http",
            kwargs={
                "url": receiver.url,
                "method": "PUT",
                "body": "<a/>",
                "headers": {"idempotency-key": "mine", "content-type": "text/xml"},
            },
        ).result(timeout=LONG)
    sent = receiver.requests[0].lower()
    assert sent.count(b"idempotency-key") == sent.count(b"content-type") == 1
    assert b"idempotency-key: mine" in sent
    assert sent.endswith(b"\r\n\r\n<a/>")


def test_what_to_expect_can_be_said(app: Mainspring) -> None:
    with receiving(answering("404 Not Found")) as receiver, app.worker():
        assert app.http.enqueue(receiver.url, expect=[404]).result(timeout=LONG)["status"] == 404
    with receiving(answering("200 OK")) as receiver, app.worker():
        job = app.http.enqueue(f"{receiver.url}/path", expect=[204])
        assert failure(job) == ("UnexpectedStatus", f"{receiver.url} answered 200 OK")


@pytest.mark.parametrize("status", ["400 Bad Request", "302 Found", "501 Not Implemented"])
def test_an_unexpected_status_fails_for_good(app: Mainspring, status: str) -> None:
    with receiving(answering(status, "Location: http://169.254.169.254/\r\n")) as receiver, app.worker():
        job = app.http.enqueue(receiver.url)
        assert failure(job)[0] == "UnexpectedStatus"
    assert outcomes(job) == ["failed"]
    assert details(job)[0]["status"] == int(status[:3])
    assert receiver.connections == 1


def test_different_statuses_are_different_groups_of_dead_letters(app: Mainspring) -> None:
    for status in ("400 x", "401 x", "404 x", "404 y", "503 x", "499 x", "599 x"):
        with receiving(answering(status)) as receiver, app.worker():
            assert ended(app.http.enqueue(receiver.url, retry_on=[])) is JobState.FAILED

    groups = app.dead.groups()
    assert sorted(group.count for group in groups) == [1, 1, 1, 1, 1, 2]
    assert {group.message.partition(" answered ")[2] for group in groups} == {
        *("400 Bad Request", "401 Unauthorized", "404 Not Found", "503 Service Unavailable"),
        *("499 (client error)", "599 (server error)"),
    }


def test_a_status_that_passes_is_tried_again_no_sooner_than_the_server_wants(app: Mainspring) -> None:
    with receiving(answering("503 Service Unavailable", "Retry-After: 1800\r\n")) as receiver, app.worker():
        job = app.http.enqueue(receiver.url)
        until_retrying(job)
    snapshot = job.refresh()
    waits = snapshot.run_at - job.attempts()[0].started_at
    assert timedelta(minutes=30) < waits < timedelta(minutes=31)
    assert (snapshot.attempt, outcomes(job)) == (1, ["failed"])
    assert details(job)[0]["status"] == 503


def test_it_is_tried_as_often_as_the_job_says(app: Mainspring) -> None:
    with receiving(answering("500 Oops")) as receiver, app.worker():
        job = app.http.enqueue(receiver.url, max_attempts=1)
        assert failure(job) == ("Unavailable", f"{receiver.url} answered 500 Internal Server Error")
        job = app.http.enqueue(receiver.url, retry_on=[])
        assert failure(job)[0] == "UnexpectedStatus"
    assert receiver.connections == 2


def test_which_statuses_pass_can_be_said(app: Mainspring) -> None:
    with receiving(answering("404 Not Yet")) as receiver, app.worker():
        job = app.http.enqueue(receiver.url, retry_on=[404])
        until_retrying(job)
    assert outcomes(job) == ["failed"]


def test_nobody_there_is_tried_again(app: Mainspring) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with app.worker():
        job = app.http.enqueue(f"http://127.0.0.1:{port}/")
        until_retrying(job)
    assert "seconds" in details(job)[0]


def test_a_reply_that_does_not_come_in_time_is_a_failure(app: Mainspring) -> None:
    over = threading.Event()

    def say_nothing(*_: object) -> None:
        over.wait()

    with receiving(say_nothing) as receiver, app.worker():
        job = app.http.enqueue(receiver.url, timeout="100ms", max_attempts=1)
        assert failure(job)[0] == "OutboundFailed"
        over.set()


UNFIT: list[dict[str, Any]] = [
    {"url": "ftp://x"},
    {"url": "http://u:hunter2@x/"},
    {"url": "http://x:99999/"},
    {"url": "http://[::1"},
    {"url": "http://127.0.0.1:8080/", "headers": {"X": "a\r\nY: b"}},
    {"url": "http://127.0.0.1:8080/", "body": "a", "json": 1},
    {"url": "http://127.0.0.1:8080/", "method": "CONNECT"},
    {"url": "http://127.0.0.1:8080/", "method": "GE T"},
    {"url": "http://127.0.0.1:8080/", "timeout": "11m"},
    {"url": "http://127.0.0.1:8080/", "expect": []},
]


def test_where_no_request_may_go_fails_for_good(app: Mainspring) -> None:
    with app.worker():
        job = app.http.enqueue("http://169.254.169.254/")
        assert failure(job)[0] == "OutboundRefused"
    assert outcomes(job) == ["failed"]


@pytest.mark.parametrize("kwargs", UNFIT)
def test_what_no_worker_could_send_is_refused_wherever_it_is_said(app: Mainspring, kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidPayload) as refused:
        app.http.enqueue(**kwargs)
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InvalidPayload):
        app.http.enqueue_many([((), {"url": "http://a.example"}), ((), kwargs)])
    with pytest.raises(InvalidPayload):
        app.schedules.add("unfit", "mainspring.http", every("1h"), kwargs=kwargs)
    with pytest.raises(InvalidPayload), app.workflow("unfit") as wf:
        wf.add(app.http, **kwargs)
    assert (app.jobs(), app.schedules.list()) == ([], [])


@pytest.mark.parametrize("kwargs", UNFIT[:2])
def test_nor_is_it_sent_if_another_job_says_it(app: Mainspring, kwargs: dict[str, Any]) -> None:
    @app.task
    def url() -> str:
        return str(kwargs["url"])

    with app.workflow("two") as wf:
        last = wf.add(app.http, wf.add(url), headers={"X": "y"})
    wf.enqueue()
    with app.worker():
        assert failure(app.job(last.id))[0] == "InvalidPayload"
    with pytest.raises(InvalidPayload), app.workflow("two") as wf:
        wf.add(app.http, wf.add(url), headers={"X": "a\r\nY: b"})


def test_a_secret_is_no_url_before_it_is_known(app: Mainspring) -> None:
    job = app.http.enqueue("secret://hook", headers={"Authorization": "secret://token"})
    assert job.state is JobState.READY
    with pytest.raises(InvalidPayload, match="header X"):
        app.http.enqueue("secret://hook", headers={"Authorization": "secret://token", "X": "a\nb"})


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"url": 5},
        {"url": "http://a.example", "headers": {"X": 5}},
        {"url": "http://a.example", "timeout": "soon"},
        {"url": "http://a.example", "timeout": 0},
        {"url": "http://a.example", "expect": [9000]},
        {"url": "http://a.example", "max_attempts": 0},
        {"url": "http://a.example", "metod": "GET"},
    ],
)
def test_arguments_are_checked_when_it_is_enqueued_with_or_without_tasks_of_ones_own(
    app: Mainspring, kwargs: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPayload):
        app.enqueue("mainspring.http", kwargs=kwargs)
    app.task(name="own")(print)
    with pytest.raises(InvalidPayload):
        app.enqueue("mainspring.http", kwargs=kwargs)


def test_a_body_that_is_no_text_and_one_that_is_long_are_kept_as_far_as_they_can_be(app: Mainspring) -> None:
    with receiving(answering(body=b"\0\xff" * 100_000)) as receiver, app.worker():
        result = app.http.enqueue(receiver.url).result(timeout=LONG)
    assert result["truncated"] is True
    assert result["body"].startswith("\\x00\\xff")


@pytest.mark.parametrize("before", [0, 32_700, 32_760, 32_768])
def test_no_half_of_a_secret_is_kept_where_a_body_is_cut(app: Mainspring, before: int) -> None:
    app.secrets.set("token", "Zq7-Xw9_Kj2+Vb8=Yt4")
    body = b"x" * before + b"Zq7-Xw9_Kj2+Vb8=Yt4" * 10
    with receiving(answering(body=body)) as receiver, app.worker():
        result = app.http.enqueue(receiver.url, headers={"X-Token": "secret://token"}).result(timeout=LONG)
    assert set(result["body"]) <= {"x", "*"}
    assert result["truncated"] is (len(body) > 32_768)


def test_a_body_is_cut_between_characters(app: Mainspring) -> None:
    with receiving(answering(body="x☃".encode() * 100_000)) as receiver, app.worker():
        result = app.http.enqueue(receiver.url).result(timeout=LONG)
    assert set(result["body"]) == {"x", "☃"}
    assert result["truncated"] is True


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "120"}, 120),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "999999999999"}, 3600),
        ({"retry-after": "9" * 10_000}, 3600),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:27:00 GMT"}, 60),
        ({"retry-after": "Wed, 21 Oct 2215 07:28:00 GMT"}, 3600),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0),
    ],
)
def test_how_long_a_server_asks_for(headers: dict[str, str], seconds: int) -> None:
    assert _asked_for(Reply(503, headers, b"", False, 0.0)) == timedelta(seconds=seconds)


def until_retrying(job: JobHandle[Any]) -> None:
    until(lambda: job.refresh().state is JobState.RETRYING)
