"""Mistakes in requests are told in plain words: where they are, what was expected, and what came as it was written."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Mainspring

API = "/api/v1"
JOBS = f"{API}/jobs"
A_LENGTH = "a number of seconds, or a length of time such as '90s' or '1h30m', from 0 to 100 years"
AN_INSTANT = "an instant with a time zone, such as 2026-11-15T09:00:00Z"


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    return str(answer.json()["detail"])


def greeting(**more: object) -> dict[str, object]:
    return {"task": "greet", "args": ["Ada"], **more}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([1], "body: expected an object, got: [1]"),
        (greeting(task=""), 'body.task: expected text that is not empty, got: ""'),
        (greeting(task=None), "body.task: expected text, got: null"),
        (greeting(args=None), "body.args: expected a list, got: null"),
        (
            greeting(queue="a b"),
            "body.queue: expected 1 to 128 ASCII letters, digits or any of _.:/- (beginning with a letter, digit or "
            '_), got: "a b"',
        ),
        (greeting(weight=True), "body.weight: expected a whole number, got: true"),
        (greeting(weight=0), "body.weight: expected a number from 1 on, got: 0"),
        (
            greeting(priority="hihg"),
            'body.priority: expected a whole number from 0 to 100, or one of low, normal, high, urgent, got: "hihg"',
        ),
        (greeting(run_after="soon"), f'body.run_after: expected {A_LENGTH}, got: "soon"'),
        (greeting(expires=-1), f"body.expires: expected {A_LENGTH}, got: -1"),
        (greeting(expires="1" * 51 + "s"), f'body.expires: expected {A_LENGTH}, got: "{"1" * 51}s"'),
        (greeting(run_at="now"), f'body.run_at: expected {AN_INSTANT}, got: "now"'),
        (greeting(run_at="2026-01-01T00:00:00"), f'body.run_at: expected {AN_INSTANT}, got: "2026-01-01T00:00:00"'),
        (
            greeting(run_at="9999-01-01T00:00:00Z"),
            'body.run_at: expected an instant between 1970 and 2200, got: "9999-01-01T00:00:00Z"',
        ),
        (
            greeting(if_taken="keep"),
            "body.if_taken: expected 'return', 'replace' or 'reschedule', got: \"keep\"",
        ),
        (
            greeting(after=[{"job": 3}]),
            "body.after.0.job: expected an id such as 019a8e2c-6d1b-7c3e-8f4a-2b5d6e7f8091, got: 3",
        ),
        (
            greeting(after=[3]),
            "body.after.0: expected an id such as 019a8e2c-6d1b-7c3e-8f4a-2b5d6e7f8091 or an object, got: 3",
        ),
        (greeting(quue="x"), "body.quue: there is no such name, did you mean 'queue'?"),
    ],
)
def test_a_mistake_in_a_job_is_told_plainly(client: httpx.Client, body: object, told: str) -> None:
    assert refusal(client.post(JOBS, json=body)) == told


def test_what_may_be_one_of_several_is_one_mistake(client: httpx.Client) -> None:
    answer = client.post(JOBS, json=greeting(priority=[], after=[3], run_after={}))

    assert [one["at"] for one in answer.json()["errors"]] == ["body.priority", "body.run_after", "body.after.0"]


def test_a_name_that_is_like_no_other_is_told_with_those_that_there_are(client: httpx.Client) -> None:
    answer = client.post(f"{JOBS}/{_job(client)}/cancel", json={"zzz": 1})

    assert refusal(answer) == "body.zzz: there is no such name; known are reason"


def _job(client: httpx.Client) -> str:
    return str(client.post(JOBS, json=greeting()).json()["id"])


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        ({}, "body.trigger.kind: expected 'cron', 'every', 'after' or 'at', got: none"),
        ({"kind": "moon"}, "body.trigger.kind: expected 'cron', 'every', 'after' or 'at', got: \"moon\""),
        (
            {"kind": "evry"},
            "body.trigger.kind: expected 'cron', 'every', 'after' or 'at', got: \"evry\", did you mean 'every'?",
        ),
        ({"kind": 3}, "body.trigger.kind: expected 'cron', 'every', 'after' or 'at', got: 3"),
        (3, "body.trigger: expected an object, got: 3"),
        ({"kind": "every"}, "body.trigger.length: expected a value, got: none"),
        ({"kind": "every", "length": "moon"}, f'body.trigger.length: expected {A_LENGTH}, got: "moon"'),
        (
            {"kind": "after", "length": 9, "after": 1},
            "body.trigger.after: there is no such name; known are kind, length",
        ),
        ({"kind": "at", "wehn": 1}, "body.trigger.wehn: there is no such name, did you mean 'when'? (and 1 more)"),
        (
            {"kind": "at", "when": "9999-01-01T00:00:00Z"},
            'body.trigger.when: expected an instant between 1970 and 2200, got: "9999-01-01T00:00:00Z"',
        ),
    ],
)
def test_a_mistake_in_a_trigger_is_told_plainly(client: httpx.Client, trigger: object, told: str) -> None:
    assert refusal(client.put(f"{API}/schedules/s", json={"task": "fail", "trigger": trigger})) == told


def test_a_mistake_in_who_is_granted_what_is_told_plainly(client: httpx.Client) -> None:
    answer = client.post(f"{API}/tokens", json={"name": "n", "grants": {"A B": "viewer"}})

    assert refusal(answer).startswith("body.grants.A B: expected * or 1 to 40 lower-case letters, digits or hyphens")


def test_arguments_of_a_command_are_refused_without_patterns(client: httpx.Client) -> None:
    answer = client.post(JOBS, json={"task": "mainspring.command", "args": [["true"]], "kwargs": {"timeout": "soon"}})

    assert refusal(answer) == (
        "argument 'timeout': expected a number of seconds, or a length of time such as '90s' or '1h30m', got: 'soon'"
    )


@pytest.mark.parametrize("kwargs", [{"cwd": "tmp"}, {"env": {"1": "x"}}, {"timeout": "x"}])
def test_no_pattern_of_a_command_is_shown(client: httpx.Client, kwargs: dict[str, object]) -> None:
    answer = client.post(JOBS, json={"task": "mainspring.command", "args": [["true"]], "kwargs": kwargs})

    assert "regex" not in refusal(answer)


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        ({"kind": "moon", "url": "sesame"}, "kind: expected 'webhook' or 'email', got: \"moon\""),
        ({"url": "sesame"}, "kind: expected 'webhook' or 'email', got: none"),
        (
            {"kind": "email", "to": "ops"},
            'to: expected an address such as ops@example.org or a list, got: "ops"',
        ),
        ({"kind": "email", "to": ["a@b", "ops"]}, 'to.1: expected an address such as ops@example.org, got: "ops"'),
        (
            {"kind": "email", "to": "a@b", "on": ["end"]},
            "on.0: expected 'success', 'failure', 'retry', 'late', 'missed' or 'recovered', got: \"end\"",
        ),
        (
            {"kind": "webhook", "url": "sesame"},
            "url: expected a URL that begins with https:// or http:// and has no spaces, got: text that is not shown",
        ),
        (
            {"kind": "webhook", "url": "https://a", "secret": ["sesame", "sesame", "sesame"]},
            "secret: expected text or at most 2 of them, got: a list that is not shown",
        ),
        (
            {"kind": "webhook", "url": "https://a", "sesame": "sesame"},
            "expected no other names than kind, url, on, secret",
        ),
    ],
)
def test_of_channels_all_is_shown_but_what_may_be_secret(
    client: httpx.Client, channel: dict[str, object], told: str
) -> None:
    alone = client.put(f"{API}/notifications/n", json=channel)
    of_a_job = client.post(JOBS, json=greeting(notify=[channel]))

    for answer in (alone, of_a_job):
        assert told in refusal(answer)
        assert "sesame" not in answer.text


def test_of_a_secret_nothing_is_shown(client: httpx.Client) -> None:
    for body in ({"value": ["sesame"]}, {"value": "x", "on": "sesame"}, {"value": "x", "sesame": 1}):
        answer = client.put(f"{API}/secrets/s", json=body)
        assert answer.status_code == 422
        assert "sesame" not in answer.text


def test_which_of_many_jobs_is_wrong_is_told(client: httpx.Client, app: Mainspring) -> None:
    for wrong, code, told in (
        (greeting(args=[3]), "invalid-payload", "jobs.1: argument 'name': expected `str`, got `int`: 3"),
        ({"task": "greeet"}, "task-not-found", "jobs.1: no task is named 'greeet', did you mean 'greet'?"),
        (greeting(weight=0), "invalid-value", "body.jobs.1.weight: expected a number from 1 on, got: 0"),
    ):
        answer = client.post(f"{JOBS}/bulk", json={"jobs": [greeting(), wrong, greeting()]})
        assert refusal(answer) == told
        assert answer.json()["type"] == f"urn:mainspring:{code}"
    assert app.jobs() == []


def test_which_node_of_a_workflow_is_wrong_is_told(client: httpx.Client) -> None:
    nodes = [{"id": "a", "task": "fail"}, {"id": "b", "task": "greet", "args": [3]}]

    answer = client.post(f"{API}/workflows", json={"name": "w", "nodes": nodes})

    assert refusal(answer) == "node 'b': argument 'name': expected `str`, got `int`: 3"


@pytest.mark.parametrize(
    "body", [rb'{"task":"greet","args":["\ud800"]}', rb'{"task":"\udc00x"}', rb'{"a":"\\\ud83d\ud83d\ude00"}']
)
def test_half_of_a_pair_is_told_of(client: httpx.Client, body: bytes) -> None:
    answer = client.post(JOBS, content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["type"]) == (400, "urn:mainspring:malformed-json")
    assert "half of a surrogate pair" in answer.json()["detail"]


def test_whole_pairs_and_what_only_looks_like_one_are_fine(client: httpx.Client) -> None:
    body = rb'{"task":"greet","args":["\ud83d\ude00 \\ud800"]}'
    answer = client.post(JOBS, content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["args"] == ["\U0001f600 \\ud800"]
    broken = client.post(JOBS, content=body[:-1], headers={"Content-Type": "application/json"})
    assert "surrogate" not in broken.json()["detail"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/jobs?staet=failed", "query.staet: there is no such name, did you mean 'state'?"),
        ("/logs?since=soon", "query.since: expected an instant, or how long ago it is, such as '90m', got: \"soon\""),
        ("/logs?level=eror", "did you mean 'error'?"),
        ("/workers?zzz=1", "query.zzz: there is no such name; known are team"),
        ("/jobs?limit=0", 'query.limit: expected a number from 1 on, got: "0"'),
        ("/jobs?limit=many", 'query.limit: expected a whole number, got: "many"'),
        ("/jobs?before=x", 'query.before: expected an id such as 019a8e2c-6d1b-7c3e-8f4a-2b5d6e7f8091, got: "x"'),
    ],
)
def test_a_mistake_in_a_query_is_told(client: httpx.Client, path: str, told: str) -> None:
    assert refusal(client.get(f"{API}{path}")).endswith(told)


def test_what_is_created_quickly_has_its_query_looked_at_too(client: httpx.Client, app: Mainspring) -> None:
    assert "query.wait" in refusal(client.post(f"{JOBS}?wait=3", json=greeting()))
    assert app.jobs() == []


def test_a_team_may_be_named_in_any_query(client: httpx.Client) -> None:
    assert client.get(f"{JOBS}?team=acme").status_code == 200
    assert client.post(f"{JOBS}?team=acme", json=greeting()).json()["team"] == "acme"
