"""Secrets over HTTP: set, listed by name and removed, and shown nowhere."""

from __future__ import annotations

import logging

import httpx
import pytest

from mainspring import Context, Mainspring
from mainspring.errors import InvalidKey, KeyMissing
from mainspring.testing import drain
from tests.api.conftest import Client

SECRETS = "/api/v1/secrets"
CANARY = "canary-4711-sesame"


def test_a_secret_is_set_listed_by_name_and_removed(client_of: Client) -> None:
    acme = client_of(acme="admin")

    assert acme.put(f"{SECRETS}/smtp", json={"value": CANARY}).status_code == 204
    assert acme.put(f"{SECRETS}/smtp", json={"value": f"{CANARY}-2"}).status_code == 204

    (told,) = acme.get(SECRETS).json()["items"]
    assert sorted(told) == ["changed_at", "changed_by", "created_at", "key_id", "name", "team"]
    assert (told["name"], told["team"]) == ("smtp", "acme")
    assert told["changed_by"].startswith("token:")
    assert [acme.delete(f"{SECRETS}/smtp").status_code for _ in range(2)] == [204, 404]
    assert acme.get(SECRETS).json() == {"items": []}


def test_a_job_of_the_team_gets_it_and_no_other(client_of: Client, app: Mainspring) -> None:
    client_of(acme="admin").put(f"{SECRETS}/smtp", json={"value": CANARY})
    wanted = {"task": "greet", "args": ["secret://smtp"], "kwargs": {"greeting": "Hi"}}
    job = client_of(acme="submitter").post("/api/v1/jobs", json=wanted).json()["id"]
    others = client_of(beta="submitter").post("/api/v1/jobs", json=wanted).json()["id"]

    with app.worker():
        assert app.job(job).result(timeout="30s") == "Hi, ***!"
        assert "smtp" in client_of(beta="viewer").get(f"/api/v1/jobs/{others}", params={"wait": 1}).text


def test_the_secrets_of_another_team_are_not_there(client_of: Client) -> None:
    acme, beta = client_of(acme="admin"), client_of(beta="admin")
    acme.put(f"{SECRETS}/smtp", json={"value": CANARY})

    assert beta.get(SECRETS).json() == {"items": []}
    assert beta.delete(f"{SECRETS}/smtp").status_code == 404
    assert beta.put(f"{SECRETS}/smtp", json={"value": "another"}).status_code == 204
    assert len(acme.get(SECRETS).json()["items"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"value": CANARY, "valeu": CANARY},
        {"valeu": CANARY},
        {"value": [CANARY]},
        {"value": {"password": CANARY}},
        {"value": CANARY + "\0"},
        {"value": CANARY * 10_000},
        {CANARY: 1, "value": "x"},
        [CANARY],
        CANARY,
    ],
    ids=lambda body: str(body)[:30],
)
def test_a_value_that_is_refused_is_shown_nowhere(
    client: httpx.Client, app: Mainspring, caplog: pytest.LogCaptureFixture, body: object
) -> None:
    caplog.set_level(logging.DEBUG)

    answer = client.put(f"{SECRETS}/smtp", json=body)

    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:mainspring:invalid-value"
    assert "canary" not in answer.text
    assert "canary" not in caplog.text
    assert app.audit.list() == []


@pytest.mark.parametrize("body", [f'{{"value": "{CANARY}', f'{{"value": {CANARY}}}', f'"{CANARY}" "'])
def test_a_body_that_is_no_json_is_shown_nowhere(client: httpx.Client, body: str) -> None:
    answer = client.put(f"{SECRETS}/smtp", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 400
    assert "canary" not in answer.text


def test_a_value_is_neither_on_record_nor_in_the_log(
    client: httpx.Client, app: Mainspring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    client.put(f"{SECRETS}/smtp", json={"value": CANARY})
    client.delete(f"{SECRETS}/smtp")

    last, first = client.get("/api/v1/audit").json()["items"]
    assert (first["action"], first["target"], first["details"]) == ("secret.set", "smtp", {})
    assert last["action"] == "secret.remove"
    assert "canary" not in caplog.text


def test_a_server_without_keys_says_so_without_saying_more(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise KeyMissing("no key in /etc/mainspring/keys")

    monkeypatch.setattr("mainspring.secrets.Secrets.set", missing)

    answer = client.put(f"{SECRETS}/smtp", json={"value": CANARY})

    assert (answer.status_code, answer.json()["type"]) == (503, "urn:mainspring:key-missing")
    assert "/etc" not in answer.text


def test_what_of_an_encrypted_job_can_not_be_opened_here_is_left_out(
    app: Mainspring, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(encrypt=True)
    def order(ctx: Context, number: int) -> int:
        done: int = ctx.step("charge", abs, -number)
        return done

    job = order.enqueue(7)
    drain(app)
    shown = client.get(f"/api/v1/jobs/{job.id}/steps").json()["items"]
    monkeypatch.setattr(type(app.client.keys), "open_document", _no_key)
    hidden = client.get(f"/api/v1/jobs/{job.id}/steps")

    assert [one["result"] for one in shown] == [7]
    assert hidden.status_code == 200
    assert [(one["name"], one["result"]) for one in hidden.json()["items"]] == [("charge", None)]


@pytest.mark.parametrize("error", [KeyMissing, InvalidKey])
def test_who_enqueues_is_not_told_where_the_keys_are(
    app: Mainspring, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    @app.task(encrypt=True)
    def hidden(number: int) -> int:
        return number

    def refuse(*_: object) -> None:
        raise error("the keys in /etc/mainspring/keys are open to others")

    monkeypatch.setattr(type(app.client.keys), "seal_document", refuse)

    answer = client.post("/api/v1/jobs", json={"task": "hidden", "args": [1]})

    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:mainspring:key-missing"
    assert "/etc" not in answer.text


def _no_key(*_: object) -> None:
    raise KeyMissing("no key in /etc/mainspring/keys")
