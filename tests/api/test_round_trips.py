"""What was read can be written back, and changes nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mainspring import Email, Mainspring, Webhook
from mainspring.alerts import dead
from mainspring.api.documents import (
    AfterRequest,
    AtRequest,
    CronRequest,
    EveryRequest,
    ScheduleRequest,
    TeamRequest,
)
from mainspring.api.routes.alerts import AlertRequest
from mainspring.api.routes.retention import RetentionRequest
from mainspring.documents.teams import team_document
from mainspring.model.rate import rate
from mainspring.model.team import Team

API = "/api/v1"
NOTIFY = [{"kind": "webhook", "url": "https://example.org/hook", "secret": "secret://hook"}]


def sayable(document: dict[str, Any], request: Any) -> dict[str, Any]:
    """Return what of *document* a *request* has."""
    return {name: value for name, value in document.items() if name in request.model_fields}


@pytest.mark.parametrize(
    ("trigger", "kind"),
    [
        ({"kind": "every", "length": "1h"}, EveryRequest),
        ({"kind": "every", "length": "90m", "start": "2026-11-15T09:00:00Z"}, EveryRequest),
        ({"kind": "after", "length": 0.25}, AfterRequest),
        ({"kind": "at", "when": "2099-11-15T09:00:00Z"}, AtRequest),
        ({"kind": "cron", "expression": "0 9 * * mon-fri", "tz": "Europe/Berlin"}, CronRequest),
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "args": ["Ada"],
            "kwargs": {"greeting": "Hi"},
            "queue": "mail",
            "priority": "high",
            "overlap": "skip",
            "misfire": "catch_up",
            "grace": "36h",
            "jitter": 1.5,
            "start": "2026-11-15T09:00:00+01:00",
            "end": "2100-11-15T09:00:00Z",
            "max_runs": 7,
            "expect_success_within": "2d",
            "notes": "why",
            "notify": NOTIFY,
        },
    ],
    ids=["plain", "full"],
)
def test_a_schedule_that_was_read_can_be_written(
    client: httpx.Client, app: Mainspring, trigger: dict[str, Any], kind: Any, options: dict[str, Any]
) -> None:
    url = f"{API}/schedules/s"
    assert client.put(url, json={"task": "greet", "args": ["Ada"], "trigger": trigger, **options}).status_code == 201
    read, before = client.get(url).json(), app.schedules.get("s")

    wanted = sayable(read, ScheduleRequest)
    wanted["trigger"] = sayable(read["trigger"], kind)
    answer = client.put(url, json=wanted)

    assert (answer.status_code, answer.json()) == (200, read)
    assert app.schedules.get("s") == before


def test_a_length_of_time_is_shown_as_it_is_said(client: httpx.Client) -> None:
    trigger = {"kind": "every", "length": 3600}
    told = client.put(f"{API}/schedules/s", json={"task": "fail", "trigger": trigger, "grace": "90s"}).json()

    assert (told["trigger"]["length"], told["grace"], told["jitter"], told["expect_success_within"]) == (
        "1h",
        "1m30s",
        "0s",
        None,
    )


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "stuck", "longer_than": "90m", "task": "greet"},
        {"kind": "lag", "above": 2.5},
        {"kind": "depth", "queue": "mail", "above": 7},
        {"kind": "age", "queue": "mail", "above": "1h"},
        {"kind": "error_rate", "above": 0.25, "over": "1h", "at_least": 3},
        {"kind": "dead"},
        {"kind": "missing_workers", "fewer_than": 2},
        {"kind": "missed_schedules", "over": "1d"},
    ],
    ids=lambda rule: str(rule["kind"]),
)
def test_an_alert_that_was_read_can_be_written(client: httpx.Client, app: Mainspring, rule: dict[str, Any]) -> None:
    url = f"{API}/alerts/a"
    wanted = {"rule": rule, "every": "90s", "hold": "5m", "notify": NOTIFY}
    assert client.put(url, json=wanted).status_code == 201
    read, before = client.get(url).json(), app.alerts.get("a").definition

    known = {name: value for name, value in read["rule"].items() if name != "text"}
    answer = client.put(url, json={**sayable(read, AlertRequest), "rule": known})

    assert answer.status_code == 200
    assert {**answer.json(), "changed_at": None} == {**read, "changed_at": None}
    assert app.alerts.get("a").definition == before


def test_whom_to_tell_is_nobody_only_if_that_is_said(client: httpx.Client, app: Mainspring) -> None:
    app.alerts.add("a", dead(), notify=[Email("ops@example.org")])
    client.put(f"{API}/schedules/s", json={"task": "fail", "trigger": {"kind": "after", "length": 9}, "notify": NOTIFY})

    client.put(f"{API}/alerts/a", json={"rule": {"kind": "dead"}, "notify": []})
    client.put(f"{API}/schedules/s", json={"task": "fail", "trigger": {"kind": "after", "length": 9}, "notify": []})

    assert (app.alerts.get("a").definition.notify, app.schedules.get("s").definition.notify) == ((), None)


def test_a_webhook_keeps_its_secret_when_it_is_not_said(client: httpx.Client, app: Mainspring) -> None:
    app.alerts.add("a", dead(), notify=[Webhook("https://example.org/hook", secret="hunter2")])

    client.put(f"{API}/alerts/a", json={"rule": {"kind": "dead", "above": 3}})

    (told,) = app.alerts.get("a").definition.notify
    assert isinstance(told, Webhook)
    assert (told.url, told.secrets) == ("https://example.org/hook", ("hunter2",))


@pytest.mark.parametrize("wanted", [{"queue": "mail", "state": "succeeded", "age": "7d"}, {"age": 5400, "count": 9}])
def test_a_rule_for_retention_that_was_read_can_be_written(client: httpx.Client, wanted: dict[str, Any]) -> None:
    client.put(f"{API}/retention", json=wanted)
    (read,) = client.get(f"{API}/retention").json()["items"]

    answer = client.put(f"{API}/retention", json=sayable(read, RetentionRequest))

    assert (answer.status_code, answer.json()) == (200, read)
    assert client.get(f"{API}/retention").json()["items"] == [read]


@pytest.mark.parametrize(
    "wanted",
    [{}, {"max_pending": 7, "max_schedules": 0}, {"rate": "100/s", "burst": 1000}, {"rate": "7/11s"}, {"rate": "1/w"}],
)
def test_a_team_that_was_read_can_be_written(client: httpx.Client, app: Mainspring, wanted: dict[str, Any]) -> None:
    url = f"{API}/teams/acme"
    client.put(url, json=wanted)
    read, before = client.get(url).json(), app.teams.get("acme")

    answer = client.put(url, json=sayable(read, TeamRequest))

    assert (answer.status_code, answer.json()) == (200, read)
    assert app.teams.get("acme") == before


@pytest.mark.parametrize(
    "said", ["100/s", "3/s", "100/m", "5/h", "10/30s", "7/11s", "1/w", "999/1009ms", "1/ms", "13/d"]
)
def test_a_rate_is_shown_as_one_that_means_the_same(said: str) -> None:
    interval = rate(said).interval

    shown = team_document(Team("acme", interval=interval))["rate"]

    assert rate(str(shown)).interval == interval
    if said in ("100/s", "3/s", "100/m", "5/h", "13/d"):
        assert shown == said
