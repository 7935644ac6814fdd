"""What goes wrong is told as a problem, with what was expected and what came; and limits are kept."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from mainspring import Mainspring, every
from mainspring.api.problems import code_of
from mainspring.errors import InvalidURL, JobNotFound, QuotaExceeded, StoreUnavailable
from mainspring.server import Server
from tests.support.databases import make_newer
from tests.support.waiting import until

JOBS = "/api/v1/jobs"
JSON = {"Content-Type": "application/json"}


def check(answer: httpx.Response, status: int, code: str) -> dict[str, object]:
    """Assert that *answer* is a problem as it should be."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    told: dict[str, object] = answer.json()
    assert (told["type"], told["status"]) == (f"urn:mainspring:{code}", status)
    assert {"title", "detail"} <= told.keys()
    assert "Traceback" not in answer.text
    for name in ("x-content-type-options", "content-security-policy", "referrer-policy", "cache-control"):
        assert name in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    return told


def test_a_value_that_is_wrong_is_told_with_what_was_expected_and_what_came(client: httpx.Client) -> None:
    told = check(client.post(JOBS, json={"task": "greet", "args": [3]}), 422, "invalid-payload")

    assert (told["expected"], told["got"]) == ("`str`", "`int`: 3")


def test_problems_are_called_what_their_errors_are() -> None:
    assert [code_of(kind) for kind in (JobNotFound, InvalidURL)] == ["job-not-found", "invalid-url"]


def test_all_mistakes_of_a_request_are_told(client: httpx.Client) -> None:
    told = check(client.post(JOBS, json={"task": "", "weight": 0, "colour": "red"}), 422, "invalid-value")

    mistakes = told["errors"]
    assert isinstance(mistakes, list)
    assert sorted(one["at"] for one in mistakes) == ["body.colour", "body.task", "body.weight"]


def test_a_task_that_is_not_known_is_told_with_a_near_one(client: httpx.Client) -> None:
    told = check(client.post(JOBS, json={"task": "greeet"}), 422, "task-not-found")

    assert "did you mean 'greet'?" in str(told["detail"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"task": NaN}',
        b'{"task": "\\ud800"}',
        b'{"task": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"task": "a", "args": [1e999999]}',
        b'{"task": "greet", "args": [' + b"9" * 5_000 + b"]}",
    ],
)
def test_what_is_no_json_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.post(JOBS, content=body, headers=JSON)

    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("args", ["a\0b"]),
        ("key", "a\0b"),
        ("queue", "a\0b"),
        ("queue", "a b"),
        ("queue", "x" * 129),
        ("key", "x" * 513),
    ],
)
def test_text_that_can_not_be_kept_is_refused(client: httpx.Client, name: str, value: object) -> None:
    check_status = client.post(JOBS, json={"task": "greet", "args": ["Ada"], name: value}).status_code

    assert check_status == 422


def nested(levels: int) -> object:
    value: object = "Ada"
    for _ in range(levels):
        value = [value]
    return value


def test_arguments_are_nested_no_deeper_than_allowed(server: Server, app: Mainspring, client: httpx.Client) -> None:
    @app.task
    def anything(value: object) -> None: ...

    assert client.post(JOBS, json={"task": "anything", "args": [nested(64)]}).status_code == 201
    check(client.post(JOBS, json={"task": "anything", "args": [nested(65)]}), 422, "invalid-payload")


def test_a_body_is_no_larger_than_allowed(client: httpx.Client) -> None:
    whole = 1024 * 1024
    fitting = json.dumps({"task": "greet", "args": ["Ada"]}).encode().ljust(whole)

    assert client.post(JOBS, content=fitting, headers=JSON).status_code == 201
    check(client.post(JOBS, content=fitting + b" ", headers=JSON), 413, "body-too-large")


def test_a_body_that_does_not_say_how_long_it_is_is_counted(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 65_536

    # The server stops to read, and says why before it hangs up; who is still writing may not hear it.
    with suppress(httpx.WriteError):
        check(client.post(JOBS, content=endless(), headers=JSON), 413, "body-too-large")
    assert client.get("/healthz").status_code == 200


def test_a_packed_body_is_not_unpacked(client: httpx.Client) -> None:
    packed = gzip.compress(json.dumps({"task": "greet", "args": ["Ada"]}).encode())

    check(client.post(JOBS, content=packed, headers={**JSON, "Content-Encoding": "gzip"}), 415, "packed-body")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_is_not_said_to_be_json_is_refused(client: httpx.Client, kind: str) -> None:
    body = json.dumps({"task": "greet", "args": ["Ada"]}).encode()

    for path in (JOBS, f"{JOBS}/bulk"):
        check(client.post(path, content=body, headers={"Content-Type": kind}), 415, "unsupported-media-type")


def test_what_is_not_there_is_told_alike(client: httpx.Client) -> None:
    check(client.get("/nowhere"), 404, "not-found")
    told = client.delete(JOBS)
    check(told, 405, "method-not-allowed")
    assert told.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_can_be_asked_for_without_a_body(client: httpx.Client, path: str) -> None:
    answer = client.head(path)

    assert (answer.status_code, answer.content) == (200, b"")
    assert client.delete(path).headers["allow"] == "GET, HEAD"


def test_a_quota_that_is_exceeded_says_when_to_ask_again(
    client: httpx.Client, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exceed(*_: object) -> None:
        raise QuotaExceeded("default", "more than 1 job a second", 2.5)

    monkeypatch.setattr("mainspring.app.Mainspring.enqueue_prepared", exceed)

    for path, body in ((JOBS, {"task": "fail"}), (f"{JOBS}/bulk", {"jobs": [{"task": "fail"}]})):
        answer = client.post(path, json=body)
        assert check(answer, 429, "quota-exceeded")["retry_after"] == 2.5
        assert answer.headers["retry-after"] == "2"


def test_a_database_that_does_not_answer_says_nothing_of_itself(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get(JOBS)

    def unavailable(*_: object, **__: object) -> None:
        raise StoreUnavailable("can't reach postgresql://ada:sesame@db/shop")

    monkeypatch.setattr("mainspring.store.sql.SqlStore.look", unavailable)
    monkeypatch.setattr("mainspring.store.sql.SqlStore.check", unavailable)

    for path in (JOBS, "/readyz"):
        answer = client.get(path)
        check(answer, 503, "store-unavailable")
        assert "sesame" not in answer.text
        assert int(answer.headers["retry-after"]) > 0
    assert client.get("/healthz").json() == {"status": "ok"}


def test_an_error_of_ours_is_told_by_nothing_but_an_id_that_the_log_has(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of ours")

    client.get(JOBS)
    monkeypatch.setattr("mainspring.store.sql.SqlStore.look", broken)

    told = check(client.get(JOBS), 500, "internal-error")

    assert "secret" not in str(told)
    assert f"error {told['id']}" in caplog.text


def test_a_database_that_is_newer_than_the_server_is_not_ready(
    client: httpx.Client, app: Mainspring, sqlite_url: str
) -> None:
    assert client.get("/readyz").status_code == 200

    make_newer(sqlite_url)

    check(client.get("/readyz"), 503, "schema-newer")


def test_who_asks_whether_it_is_ready_is_told_soon_that_the_database_is_away(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    back, looks = threading.Event(), []

    def wait_for_the_database(_: object) -> None:
        looks.append(1)
        back.wait(60)

    monkeypatch.setattr("mainspring.store.sql.SqlStore.check", wait_for_the_database)
    monkeypatch.setattr("mainspring.api.readiness._PATIENCE", 0.1)

    for _ in range(3):
        check(client.get("/readyz"), 503, "store-unavailable")
    back.set()
    until(lambda: client.get("/readyz").status_code == 200)

    assert len(looks) <= 2  # those who asked in vain shared one


def test_a_database_that_was_deleted_is_not_served_any_more(client: httpx.Client, sqlite_url: str) -> None:
    client.post(JOBS, json={"task": "fail"})
    Path(sqlite_url.removeprefix("sqlite:///")).unlink()

    for path in ("/readyz", JOBS):
        assert "started again" in str(check(client.get(path), 503, "store-gone")["detail"])


def test_times_that_no_calendar_reaches_are_refused(client: httpx.Client, app: Mainspring) -> None:
    app.schedules.add("s", "greet", every("1h"), args=["Ada"])
    backfill = {"start": "0001-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
    check(client.post("/api/v1/schedules/s/backfill", json=backfill), 422, "invalid-value")
    for times in ({"start": "0001-01-01T00:00:00+14:00"}, {"end": "9999-12-31T23:59:59-14:00"}):
        wanted = {"task": "fail", "trigger": {"kind": "every", "interval": "1h"}, **times}
        assert client.put("/api/v1/schedules/t", json=wanted).status_code == 422


def test_arguments_of_a_workflow_that_are_nested_too_deep_are_refused(client: httpx.Client) -> None:
    deep = "[" * 900 + "]" * 900
    graph = f'{{"name": "w", "nodes": [{{"id": "a", "task": "greet", "args": [{deep}]}}]}}'
    answer = client.post("/api/v1/workflows", content=graph, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
