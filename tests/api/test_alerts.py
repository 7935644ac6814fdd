"""Alerts over HTTP."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Mainspring, Webhook
from mainspring.model.alert import RULES
from tests.api.conftest import Client

ALERTS = "/api/v1/alerts"
DEPTH = {"rule": {"kind": "depth", "queue": "mail", "above": 10}, "every": "1m", "hold": "5m"}


def listed(client: httpx.Client) -> list[dict[str, object]]:
    """Return the alerts that are listed, but those that every database comes with."""
    return [one for one in client.get(ALERTS).json()["items"] if not one["id"].startswith("mainspring.")]


def test_an_alert_is_defined_defined_anew_listed_and_removed(client: httpx.Client) -> None:
    first = client.put(f"{ALERTS}/mail/deep", json=DEPTH)
    second = client.put(f"{ALERTS}/mail/deep", json={"rule": {"kind": "dead"}})

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["rule"] == {
        "kind": "depth",
        "text": "depth(queue=mail, above=10)",
        "queue": "mail",
        "above": 10,
    }
    assert (first.json()["every"], first.json()["hold"]) == ("1m", "5m")
    assert (second.json()["every"], second.json()["state"]) == ("30s", "ok")
    assert listed(client) == [second.json()]
    assert client.get(f"{ALERTS}/mail/deep").json() == second.json()
    assert [client.delete(f"{ALERTS}/mail/deep").status_code for _ in range(2)] == [204, 404]


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "stuck", "longer_than": "2h", "queue": "mail", "task": "greet"},
        {"kind": "lag", "above": 60},
        {"kind": "depth", "queue": "mail"},
        {"kind": "age", "queue": "mail", "above": "5m"},
        {"kind": "error_rate", "above": 0.5, "over": "1h", "at_least": 10},
        {"kind": "dead", "above": 3, "over": "1d"},
        {"kind": "missing_workers", "queue": "mail", "fewer_than": 2},
        {"kind": "missed_schedules", "over": None},
    ],
    ids=lambda rule: str(rule["kind"]),
)
def test_an_alert_may_have_any_rule(client: httpx.Client, app: Mainspring, rule: dict[str, object]) -> None:
    answer = client.put(f"{ALERTS}/a", json={"rule": rule})

    assert answer.status_code == 201
    assert answer.json()["rule"]["kind"] == rule["kind"]
    assert type(app.alerts.get("a").definition.rule) is RULES[str(rule["kind"])]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": {"kind": "noise"}},
        {"rule": {"kind": "depth"}},
        {"rule": {"kind": "error_rate", "above": 1}},
        {"rule": {"kind": "lag", "above": "soon"}},
        {"rule": {"kind": "lag", "above": 0}},
        {"rule": {"kind": "dead"}, "every": "1ms"},
        {"rule": {"kind": "dead", "queue": "mail"}},
    ],
    ids=str,
)
def test_an_alert_that_makes_no_sense_is_refused(client: httpx.Client, wrong: dict[str, object]) -> None:
    assert client.put(f"{ALERTS}/a", json=wrong).status_code == 422
    assert listed(client) == []


def test_who_is_told_is_counted_and_not_shown(client: httpx.Client, app: Mainspring) -> None:
    hook = {"kind": "webhook", "url": "https://example.org/canary", "secret": "canary"}

    answer = client.put(f"{ALERTS}/a", json={**DEPTH, "notify": [hook]})

    assert answer.json()["channels"] == 1
    assert "canary" not in answer.text + client.get(ALERTS).text + client.get("/api/v1/audit").text
    assert app.alerts.get("a").definition.notify == (Webhook("https://example.org/canary", secret="canary"),)


def test_the_alerts_of_another_team_are_not_there(client_of: Client) -> None:
    acme, beta = client_of(acme="operator"), client_of(beta="operator")
    mine = acme.put(f"{ALERTS}/deep", json=DEPTH).json()

    assert mine["team"] == "acme"
    assert beta.get(ALERTS).json() == {"items": []}
    assert beta.get(f"{ALERTS}/deep").status_code == 404
    assert beta.delete(f"{ALERTS}/deep").status_code == 404
    assert beta.put(f"{ALERTS}/deep", json={"rule": {"kind": "dead"}}).status_code == 201
    assert acme.get(f"{ALERTS}/deep").json() == mine


def test_alerts_on_everybodys_jobs_are_for_whoever_has_the_role_everywhere(client_of: Client) -> None:
    everywhere, default = client_of(everywhere="operator"), client_of(default="operator")
    acme = client_of(acme="operator")
    acme.put(f"{ALERTS}/deep", json=DEPTH)

    whole = everywhere.put(f"{ALERTS}/deep", json=DEPTH).json()

    assert (whole["id"], whole["team"]) == ("deep", None)
    assert [(one["id"], one["team"]) for one in listed(everywhere)] == [("deep", "acme"), ("deep", None)]
    for team in (acme, default):
        seen = {one["team"] for one in team.get(ALERTS).json()["items"]}
        assert None not in seen
    assert default.delete(f"{ALERTS}/deep").status_code == 404
    assert acme.delete(f"{ALERTS}/deep").status_code == 204
    assert everywhere.get(f"{ALERTS}/deep").json()["team"] is None
