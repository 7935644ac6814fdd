"""Metrics over HTTP: for who may see all teams, or has the token for them; and of no team anything."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidValue
from mainspring.server import Server
from tests.api.conftest import Client

SHOWN = "0123456789abcdef"


def as_bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def scraped(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with a token for metrics, which needs tokens for everything else."""
    monkeypatch.setenv("MAINSPRING_METRICS_TOKEN", SHOWN)
    app.tokens.create("first", {"acme": "viewer"})
    server = Server(app, "127.0.0.1", 0)
    server.start()
    yield server.url
    server.stop()


def test_metrics_are_for_who_may_see_all_teams(client_of: Client, open_client: httpx.Client) -> None:
    told = client_of(everywhere="viewer").get("/metrics")

    assert told.status_code == 200
    assert told.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "mainspring_database_up 1.0" in told.text
    assert open_client.get("/metrics").status_code == 401
    assert client_of(acme="admin").get("/metrics").status_code == 403
    assert client_of(default="admin").get("/metrics").status_code == 403


def test_without_any_token_they_are_for_this_machine_only(open_client: httpx.Client) -> None:
    assert open_client.get("/metrics").status_code == 200
    assert open_client.get("/metrics", headers={"Host": "evil.example"}).status_code == 403


def test_the_token_for_metrics_opens_them_and_nothing_else(scraped: str) -> None:
    assert httpx.get(f"{scraped}/metrics", headers=as_bearer(SHOWN)).status_code == 200
    for wrong in (SHOWN[:-1], f"{SHOWN}x", "é" * 16):
        shown = [(b"Authorization", f"Bearer {wrong}".encode())]
        assert httpx.get(f"{scraped}/metrics", headers=shown).status_code == 401
    assert httpx.get(f"{scraped}/metrics").status_code == 401
    for path in ("/api/v1/jobs", "/api/v1/workers", "/api/v1/audit"):
        assert httpx.get(f"{scraped}{path}", headers=as_bearer(SHOWN)).status_code == 401


def test_to_others_than_this_machine_metrics_are_never_open(app: Mainspring) -> None:
    _, token = app.tokens.create("admin", {"*": "admin"})
    server = Server(app, "0.0.0.0", 0)
    server.start()
    app.tokens.revoke(token.id)
    local = server.url.replace("0.0.0.0", "127.0.0.1")

    assert httpx.get(f"{local}/metrics", headers={"Host": "localhost"}).status_code == 401

    server.stop()


@pytest.mark.parametrize("short", ["", "sesame"])
def test_a_token_for_metrics_that_could_be_guessed_is_refused(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    monkeypatch.setenv("MAINSPRING_METRICS_TOKEN", short)

    with pytest.raises(InvalidValue, match="16 characters or more"):
        Server(app, "127.0.0.1", 0)


def test_metrics_say_nothing_of_what_a_team_does(client: httpx.Client, app: Mainspring) -> None:
    client.put("/api/v1/queues/canary-queue/owner", json={"team": "canary-team"})
    client.put("/api/v1/teams/canary-team", json={"max_pending": 100})
    client.put("/api/v1/secrets/canary-secret", json={"value": "canary-value"}, params={"team": "canary-team"})
    ids = []
    for task in ("greet", "fail"):
        wanted = {"task": task, "key": f"canary-key-{task}", "fair": "canary-fair", "queue": "canary-queue"}
        args = ["canary-argument"] if task == "greet" else []
        answer = client.post("/api/v1/jobs", json={**wanted, "args": args}, params={"team": "canary-team"})
        ids.append(answer.json()["id"])
    every = {"task": "fail", "trigger": {"kind": "every", "length": "1h"}}
    client.put("/api/v1/schedules/canary-schedule", json=every, params={"team": "canary-team"})
    with app.worker(queues={"canary-queue": 1}):
        for job in ids:
            client.get(f"/api/v1/jobs/{job}", params={"wait": 30, "team": "canary-team"})
        told = client.get("/metrics").text

    assert "mainspring_attempts_total" in told
    assert "canary" not in told
    assert not any(job in told for job in ids)
