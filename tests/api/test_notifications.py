"""Notifications over HTTP: of a team as a whole, and of single jobs, schedules and workflows."""

from __future__ import annotations

import logging

import httpx
import pytest

from mainspring import Mainspring
from mainspring.model.channel import Email, Webhook, decode_channels
from tests.api.conftest import Client
from tests.support.receiver import answering, receiving
from tests.support.waiting import until

API = "/api/v1"
NOTIFICATIONS = f"{API}/notifications"
HOOK = {"kind": "webhook", "url": "https://example.org/hooks/canary-path", "on": ["failure"], "secret": "canary-secret"}
MAIL = {"kind": "email", "to": "ops@example.org", "on": ["success", "missed"]}


def test_a_notification_is_put_changed_listed_and_removed(client: httpx.Client) -> None:
    first = client.put(f"{NOTIFICATIONS}/ops/chat", json=HOOK)
    second = client.put(f"{NOTIFICATIONS}/ops/chat", json=MAIL)

    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["kind"], first.json()["place"], first.json()["secrets"]) == (
        "webhook",
        "https://example.org",
        1,
    )
    assert (second.json()["to"], second.json()["on"]) == (["ops@example.org"], ["success", "missed"])
    assert client.get(NOTIFICATIONS).json()["items"] == [second.json()]
    assert client.get(f"{NOTIFICATIONS}/ops/chat").json() == second.json()
    assert [client.delete(f"{NOTIFICATIONS}/ops/chat").status_code for _ in range(2)] == [204, 404]


def test_where_a_webhook_leads_and_its_secret_are_never_shown(
    client: httpx.Client, app: Mainspring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    put = client.put(f"{NOTIFICATIONS}/chat", json=HOOK)

    shown = [put, client.get(NOTIFICATIONS), client.get(f"{NOTIFICATIONS}/chat"), client.get(f"{API}/audit")]
    assert [answer.status_code for answer in shown] == [201, 200, 200, 200]
    assert "canary" not in "".join(answer.text for answer in shown)
    assert "canary" not in caplog.text
    assert app.within("default").notifications.get("chat").channel == Webhook(
        str(HOOK["url"]), on=["failure"], secret="canary-secret"
    )
    (entry,) = client.get(f"{API}/audit").json()["items"]
    assert entry["details"] == {"kind": "webhook", "to": "https://example.org", "on": ["failure"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {**HOOK, "url": "canary.example.org/x"},
        {**HOOK, "url": "ftp://canary"},
        {**HOOK, "url": "https://ada:canary@example.org/x"},
        {**HOOK, "secret": ["canary-1", "canary-2", "canary-3"]},
        {**HOOK, "secret": {"canary": "canary"}},
        {**HOOK, "secrets": "canary"},
        {**HOOK, "canary": 1},
        {"kind": "email", "to": "ops@example.org", "secret": "canary"},
    ],
    ids=lambda wrong: str(wrong)[-40:],
)
def test_of_a_channel_that_is_refused_nothing_is_shown(
    client: httpx.Client, app: Mainspring, wrong: dict[str, object]
) -> None:
    requests = [
        client.put(f"{NOTIFICATIONS}/chat", json=wrong),
        client.post(f"{API}/jobs", json={"task": "fail", "notify": [wrong]}),
        client.post(f"{API}/jobs/bulk", json={"jobs": [{"task": "fail", "notify": [wrong]}]}),
        client.put(f"{API}/alerts/a", json={"rule": {"kind": "dead"}, "notify": [wrong]}),
        client.post(f"{API}/workflows", json={"name": "w", "nodes": [{"id": "a", "task": "fail"}], "notify": [wrong]}),
    ]

    assert [answer.status_code for answer in requests] == [422] * 5
    assert "canary" not in "".join(answer.text for answer in requests)
    assert app.jobs() == []


def test_the_notifications_of_another_team_are_not_there(client_of: Client) -> None:
    acme, beta = client_of(acme="admin"), client_of(beta="admin")
    acme.put(f"{NOTIFICATIONS}/chat", json=HOOK)

    assert beta.get(NOTIFICATIONS).json() == {"items": []}
    assert beta.get(f"{NOTIFICATIONS}/chat").status_code == 404
    assert beta.delete(f"{NOTIFICATIONS}/chat").status_code == 404
    assert beta.post(f"{NOTIFICATIONS}/chat/test").status_code == 404
    assert beta.put(f"{NOTIFICATIONS}/chat", json=MAIL).status_code == 201
    assert acme.get(f"{NOTIFICATIONS}/chat").json()["kind"] == "webhook"


def test_a_channel_is_tried(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        client.put(f"{NOTIFICATIONS}/chat", json={"kind": "webhook", "url": f"{receiver.url}/hook"})

        refused = client.post(f"{NOTIFICATIONS}/chat/test").json()
        assert (refused["delivered"], receiver.connections) == (False, 0)

        monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
        taken = client.post(f"{NOTIFICATIONS}/chat/test").json()

    assert (taken["delivered"], taken["error"], taken["details"]["status"]) == (True, None, 200)
    assert len(receiver.requests) == 1
    assert b"a test of notification chat" in receiver.requests[0]


def test_a_channel_that_is_tried_in_vain_says_why(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
    with receiving(answering("410 Gone")) as receiver:
        client.put(f"{NOTIFICATIONS}/chat", json={"kind": "webhook", "url": receiver.url})
        told = client.post(f"{NOTIFICATIONS}/chat/test")

    assert (told.status_code, told.json()["delivered"]) == (200, False)
    assert "410" in told.json()["error"]


def test_a_job_says_who_is_told_of_it(client: httpx.Client, app: Mainspring) -> None:
    wanted = {"task": "fail", "notify": [HOOK, MAIL]}
    single = client.post(f"{API}/jobs", json=wanted)
    many = client.post(f"{API}/jobs/bulk", json={"jobs": [wanted, {"task": "fail", "notify": []}]}).json()["items"]

    expected = (
        Webhook(str(HOOK["url"]), on=["failure"], secret="canary-secret"),
        Email("ops@example.org", on=["success", "missed"]),
    )
    stored = [app.job(job["id"]).snapshot.notify for job in (single.json(), *many)]
    assert [decode_channels(one) for one in stored] == [expected, expected, ()]
    assert "canary" not in single.text + client.get(f"{API}/jobs/{single.json()['id']}").text


def test_schedules_and_workflows_say_who_is_told_of_them(client: httpx.Client, app: Mainspring) -> None:
    every = {"task": "fail", "trigger": {"kind": "every", "length": "1h"}, "notify": [HOOK]}
    nodes = [{"id": "a", "task": "fail"}]

    schedule = client.put(f"{API}/schedules/s", json=every)
    workflow = client.post(f"{API}/workflows", json={"name": "w", "nodes": nodes, "notify": [MAIL]})

    assert (schedule.status_code, workflow.status_code) == (201, 201)
    (hook,) = decode_channels(app.schedules.get("s").definition.notify)
    (mail,) = decode_channels(app.job(workflow.json()["id"]).snapshot.notify)
    assert (hook.place, mail.place) == ("https://example.org", "ops@example.org")
    assert "canary" not in schedule.text


def test_whoever_is_to_be_told_of_a_job_is_told(
    client: httpx.Client, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
    with receiving() as receiver:
        wanted = {"kind": "webhook", "url": receiver.url, "on": ["failure"]}
        job = client.post(f"{API}/jobs", json={"task": "fail", "notify": [wanted]}).json()["id"]
        with app.worker():
            until(lambda: receiver.requests)

    assert job.encode() in receiver.requests[0]


def test_what_tells_people_is_no_task_to_enqueue(client: httpx.Client, app: Mainspring) -> None:
    for task in ("mainspring.webhook", "mainspring.email"):
        answer = client.post(f"{API}/jobs", json={"task": task, "args": [{}]})
        assert answer.status_code == 422
    assert app.jobs() == []
