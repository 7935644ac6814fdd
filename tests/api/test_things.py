"""Schedules, workflows, queues, dead letters, limits, tokens and the audit log over HTTP."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Mainspring
from mainspring.testing import drain
from tests.api.conftest import Client
from tests.support.waiting import until

API = "/api/v1"
EVERY = {"task": "greet", "args": ["Ada"], "trigger": {"kind": "every", "length": "15m"}}


def test_a_schedule_is_defined_and_defined_anew(client: httpx.Client) -> None:
    first = client.put(f"{API}/schedules/t7", json={**EVERY, "overlap": "skip", "notes": "mine"})
    second = client.put(f"{API}/schedules/t7", json={**EVERY, "queue": "mail"})

    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["overlap"], first.json()["notes"]) == ("skip", "mine")
    assert (second.json()["overlap"], second.json()["queue"]) == ("allow", "mail")
    assert client.get(f"{API}/schedules/t7").json() == second.json()


@pytest.mark.parametrize(
    "trigger",
    [
        {"kind": "cron", "expression": "0 9 * * mon-fri", "tz": "Europe/Berlin"},
        {"kind": "every", "length": 90, "start": "2026-01-01T00:00:00Z"},
        {"kind": "after", "length": "1h30m"},
        {"kind": "at", "when": "2199-01-01T00:00:00+01:00"},
    ],
)
def test_a_schedule_may_have_any_trigger(client: httpx.Client, trigger: dict[str, object]) -> None:
    answer = client.put(f"{API}/schedules/t7", json={**EVERY, "trigger": trigger})

    assert answer.status_code == 201
    assert answer.json()["trigger"]["kind"] == trigger["kind"]


def test_a_schedule_that_never_fires_is_refused(client: httpx.Client, app: Mainspring) -> None:
    never = {"kind": "cron", "expression": "0 0 30 2 *"}

    assert client.put(f"{API}/schedules/t7", json={**EVERY, "trigger": never}).status_code == 422
    assert client.post(f"{API}/schedules/preview", json={"trigger": never}).status_code == 422
    assert app.audit.list() == []


def test_schedules_are_listed_page_by_page(client: httpx.Client) -> None:
    for name in ("a", "b", "c"):
        client.put(f"{API}/schedules/{name}", json=EVERY)

    first = client.get(f"{API}/schedules", params={"limit": 2}).json()
    second = client.get(f"{API}/schedules", params={"limit": 2, "after": first["next"]}).json()

    assert [[one["id"] for one in page["items"]] for page in (first, second)] == [["a", "b"], ["c"]]
    assert (first["next"], second["next"]) == ("b", None)


def test_a_schedule_is_held_and_let_go_on(client: httpx.Client) -> None:
    client.put(f"{API}/schedules/a/b", json=EVERY)

    paused = client.post(f"{API}/schedules/a/b/pause", json={"reason": "holidays"}).json()
    resumed = client.post(f"{API}/schedules/a/b/resume").json()

    assert (paused["paused"], paused["paused_reason"], resumed["paused"]) == (True, "holidays", False)
    assert paused["paused_by"].startswith("token:")


def test_a_schedule_fires_out_of_turn_and_is_made_up_for(client: httpx.Client) -> None:
    client.put(f"{API}/schedules/t7", json=EVERY)

    (job,) = client.post(f"{API}/schedules/t7/trigger").json()["jobs"]
    filled = client.post(
        f"{API}/schedules/t7/backfill", json={"start": "2026-11-01T00:00:00Z", "end": "2026-11-01T01:00:00Z"}
    )

    assert client.get(f"{API}/jobs/{job}").json()["task"] == "greet"
    assert (filled.status_code, len(filled.json()["jobs"])) == (201, 4)
    history = client.get(f"{API}/schedules/t7/history").json()["items"]
    assert sorted(tick["verdict"] for tick in history) == ["backfilled"] * 4 + ["triggered"]


def test_the_next_ticks_are_shown(client: httpx.Client) -> None:
    client.put(f"{API}/schedules/t7", json=EVERY)

    saved = client.get(f"{API}/schedules/t7/preview", params={"limit": 3}).json()["items"]
    unsaved = client.post(f"{API}/schedules/preview", json={"trigger": EVERY["trigger"], "limit": 3}).json()["items"]

    assert len(saved) == 3
    assert saved == unsaved


def test_a_schedule_is_removed(client: httpx.Client) -> None:
    client.put(f"{API}/schedules/t7", json=EVERY)

    assert client.delete(f"{API}/schedules/t7").status_code == 204
    assert client.delete(f"{API}/schedules/t7").status_code == 404


def test_a_workflow_is_made_of_nodes_that_name_each_other(client: httpx.Client, app: Mainspring) -> None:
    nodes = [
        {"id": "end", "task": "total", "args": [{"$result": "doubled"}], "after": ["hello"]},
        {"id": "doubled", "task": "double", "map": {"$result": "some"}},
        {"id": "some", "task": "numbers", "kwargs": {"count": 4}},
        {"id": "hello", "task": "greet", "args": ["Ada"], "queue": "mail"},
    ]

    answer = client.post(f"{API}/workflows", json={"name": "etl", "nodes": nodes, "output": "end"})
    drain(app)

    assert answer.status_code == 201
    workflow = f"{API}/workflows/{answer.json()['id']}"
    told = client.get(workflow).json()
    assert (told["state"], told["result"], told["counts"]) == ("succeeded", 12, {"succeeded": 4})
    assert client.get(f"{API}/jobs/{told['id']}").json()["result"] == 12
    assert len(client.get(f"{workflow}/jobs").json()["items"]) == 4
    assert [one["id"] for one in client.get(f"{API}/workflows").json()["items"]] == [told["id"]]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([{"id": "a", "task": "greet", "args": [{"$result": "b"}]}], "no node has the id 'b'"),
        ([{"id": "a", "task": "greet", "after": ["a"]}], "no circle"),
        ([{"id": "a", "task": "fail"}, {"id": "a", "task": "fail"}], "an id of its own"),
        ([{"id": "a", "task": "greet", "args": [1]}], "expected `str`"),
        ([{"id": "a", "task": "greet", "map": "abc"}], "a list"),
    ],
)
def test_a_workflow_that_can_not_be_made_is_refused(
    client: httpx.Client, app: Mainspring, nodes: list[object], words: str
) -> None:
    answer = client.post(f"{API}/workflows", json={"name": "etl", "nodes": nodes})

    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert app.jobs() == []


def test_a_job_that_is_no_workflow_is_told_to_be_none(client: httpx.Client) -> None:
    plain = client.post(f"{API}/jobs", json={"task": "fail"}).json()["id"]

    for answer in (client.get(f"{API}/workflows/{plain}"), client.post(f"{API}/workflows/{plain}/cancel")):
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:mainspring:workflow-not-found")
        assert answer.json()["detail"] == f"job {plain} is no workflow; look for it under /api/v1/jobs"


def test_a_workflow_whose_key_a_plain_job_has_is_refused(client: httpx.Client, app: Mainspring) -> None:
    plain = client.post(f"{API}/jobs", json={"task": "fail", "key": "k"}).json()["id"]

    answer = client.post(f"{API}/workflows", json={"name": "w", "nodes": [{"id": "a", "task": "fail"}], "key": "k"})

    assert (answer.status_code, answer.json()["type"]) == (409, "urn:mainspring:key-taken")
    assert plain in answer.json()["detail"]
    assert [str(job.id) for job in app.jobs()] == [plain]


def test_a_workflow_is_ruled_as_a_whole(client: httpx.Client) -> None:
    nodes = [{"id": "a", "task": "fail"}]
    made = client.post(f"{API}/workflows", json={"name": "w", "nodes": nodes, "key": "k"}).json()
    again = client.post(f"{API}/workflows", json={"name": "w", "nodes": nodes, "key": "k"})
    workflow = f"{API}/workflows/{made['id']}"

    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    deeds = ("pause", "resume", "cancel")
    assert [client.post(f"{workflow}/{deed}").status_code for deed in deeds] == [200] * 3
    plain = client.post(f"{API}/jobs", json={"task": "fail"}).json()["id"]
    assert client.get(f"{API}/workflows/{plain}").status_code == 404


def test_queues_and_tasks_are_paused_for_all(client: httpx.Client) -> None:
    client.post(f"{API}/jobs", json={"task": "fail", "queue": "mail"})

    for thing in ("queues/mail", "tasks/fail"):
        paused = client.post(f"{API}/{thing}/pause", json={"reason": "down"}).json()
        assert (paused["reason"], paused["by"].startswith("token:")) == ("down", True)
    (queue,) = client.get(f"{API}/queues").json()["items"]
    assert (queue["name"], queue["jobs"]["ready"], queue["paused"]["reason"]) == ("mail", 1, "down")
    for thing in ("queues/mail", "tasks/fail"):
        assert [client.post(f"{API}/{thing}/resume").json()["resumed"] for _ in range(2)] == [True, False]
    assert client.put(f"{API}/queues/mail", json={"ageing": "1m"}).status_code == 204
    assert client.get(f"{API}/queues").json()["items"][0]["ageing_seconds"] == 60


def test_tasks_and_workers_are_listed(client: httpx.Client, app: Mainspring) -> None:
    tasks = client.get(f"{API}/tasks").json()["items"]

    assert {"name": "greet", "queue": "default", "priority": 5, "parameters": ["name", "greeting"]} in tasks
    assert client.get(f"{API}/workers").json() == {"items": [], "of_fleet": True}
    with app.worker():
        (worker,) = client.get(f"{API}/workers").json()["items"]
        assert (worker["alive"], "greet" in worker["tasks"]) == (True, True)


def test_a_history_tells_what_became_of_the_jobs_of_a_team(
    client: httpx.Client, client_of: Client, app: Mainspring
) -> None:
    with app.worker():
        client.post(f"{API}/jobs", json={"task": "greet", "args": ["Ada"], "queue": "default"}).raise_for_status()
        until(lambda: all(job.state.final for job in app.jobs()))
    told = client.get(f"{API}/history", params={"over": "24h"}).json()

    assert (told["over"], told["span_seconds"], len(told["items"])) == ("24h", 900, 96)
    assert sum(one["succeeded"] for one in told["items"]) == 1
    assert told["items"][-1].keys() == {
        *("since", "succeeded", "failed", "retried", "ready", "oldest_ready_seconds"),
        *("wait_p50_seconds", "wait_p99_seconds"),
    }
    other = client.get(f"{API}/history", params={"queue": "mail"}).json()["items"]
    theirs = client_of(acme="viewer").get(f"{API}/history").json()["items"]
    assert sum(one["succeeded"] for one in [*other, *theirs]) == 0
    refused = client.get(f"{API}/history", params={"over": "2h"})
    assert (refused.status_code, "1h" in refused.text) == (422, True)


def test_dead_letters_are_grouped_replayed_and_discarded(client: httpx.Client, app: Mainspring) -> None:
    for _ in range(3):
        client.post(f"{API}/jobs", json={"task": "fail"})
    drain(app)

    (group,) = client.get(f"{API}/dead/groups").json()["items"]
    letters = client.get(f"{API}/dead", params={"group": group["fingerprint"][:8]}).json()["items"]
    replayed = client.post(f"{API}/dead/replay", json={"ids": [letters[0]["id"]]}).json()
    meant = client.get(f"{API}/dead/count", params={"group": group["fingerprint"]}).json()
    client.post(f"{API}/jobs", json={"task": "fail"})
    drain(app)
    wanted = {"group": group["fingerprint"], "finished_until": meant["finished_until"], "reason": "old"}
    discarded = client.post(f"{API}/dead/discard", json=wanted).json()

    assert (group["count"], len(letters)) == (3, 3)
    assert (replayed, discarded) == ({"found": 1, "done": 1}, {"found": 2, "done": 2})
    assert client.post(f"{API}/dead/discard", json={"task": "fail"}).json() == {"found": 2, "done": 2}
    assert client.get(f"{API}/dead").json() == {"items": [], "next": None}
    assert client.post(f"{API}/dead/replay", json={}).status_code == 422
    assert client.post(f"{API}/dead/replay", json={"group": "ffff"}).status_code == 404


def test_breakers_are_tripped_and_reset(client: httpx.Client) -> None:
    tripped = client.post(f"{API}/breakers/smtp/eu/trip", json={"lasting": "5m", "reason": "down"}).json()

    assert (tripped["key"], tripped["state"], tripped["reason"]) == ("smtp/eu", "open", "down")
    assert client.get(f"{API}/breakers").json()["items"] == [tripped]
    assert client.post(f"{API}/breakers/smtp/eu/reset").json()["state"] != "open"
    assert client.get(f"{API}/limits").json() == {"items": []}
    assert client.post(f"{API}/limits/smtp/release").json() == {"key": "smtp", "released": 0}


def test_a_token_is_made_shown_once_and_revoked(client: httpx.Client) -> None:
    made = client.post(f"{API}/tokens", json={"name": "shop", "grants": {"acme": "submitter"}, "expires": "90d"})
    text, token = made.json()["text"], made.json()["token"]
    shop = {"Authorization": f"Bearer {text}"}

    assert made.status_code == 201
    assert client.get(f"{API}/jobs", headers=shop).status_code == 200
    assert text.rpartition("_")[2] not in client.get(f"{API}/tokens").text
    assert client.get(f"{API}/tokens/{token['id']}").json()["grants"] == {"acme": "submitter"}
    assert client.post(f"{API}/tokens/{token['id']}/revoke").json()["revoked_at"] is not None


def test_the_admin_of_a_team_rules_its_tokens_only(client_of: Client, client: httpx.Client) -> None:
    acme = client_of(acme="admin")
    theirs = client.post(f"{API}/tokens", json={"name": "b", "grants": {"beta": "viewer"}}).json()["token"]["id"]
    shared = client.post(f"{API}/tokens", json={"name": "s", "grants": {"acme": "viewer", "beta": "viewer"}}).json()

    assert acme.post(f"{API}/tokens", json={"name": "a", "grants": {"acme": "viewer"}}).status_code == 201
    for grants in ({"beta": "viewer"}, {"*": "viewer"}, {"acme": "viewer", "beta": "viewer"}):
        assert acme.post(f"{API}/tokens", json={"name": "x", "grants": grants}).status_code == 422
    assert {tuple(one["grants"]) for one in acme.get(f"{API}/tokens").json()["items"]} == {("acme",)}
    for token in (theirs, shared["token"]["id"]):
        assert acme.post(f"{API}/tokens/{token}/revoke").status_code == 404


def test_every_change_is_on_record_with_who_asked_for_it(client: httpx.Client, app: Mainspring) -> None:
    job = client.post(f"{API}/jobs", json={"task": "fail"}).json()["id"]
    client.post(f"{API}/jobs/{job}/cancel", json={"reason": "enough"})

    last, first = client.get(f"{API}/audit").json()["items"]

    assert (first["action"], first["target"], first["team"]) == ("job.enqueue", job, "default")
    assert (last["action"], last["details"]) == ("job.cancel", {"reason": "enough"})
    assert last["actor"].startswith("token:")
    assert client.get(f"{API}/audit", params={"before": last["number"]}).json()["items"] == [first]
    assert app.audit.verify().whole


def test_the_admin_of_a_team_reads_what_is_on_record_for_it(client_of: Client) -> None:
    acme, beta = client_of(acme="admin"), client_of(beta="admin")
    acme.post(f"{API}/jobs", json={"task": "fail"})

    assert [one["team"] for one in acme.get(f"{API}/audit").json()["items"]] == ["acme"]
    assert beta.get(f"{API}/audit").json() == {"items": [], "next": None}
