"""Jobs over HTTP."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import httpx
import pytest

from mainspring import Mainspring
from mainspring.store import inspect
from mainspring.testing import drain

JOBS = "/api/v1/jobs"


def created(client: httpx.Client, **wanted: object) -> str:
    answer = client.post(JOBS, json={"task": "greet", "args": ["Ada"], **wanted})
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


def test_a_job_that_is_created_is_there_with_what_was_said(client: httpx.Client, app: Mainspring) -> None:
    answer = client.post(
        JOBS,
        json={"task": "greet", "args": ["Ada"], "kwargs": {"greeting": "Hi"}, "queue": "mail", "priority": "high"},
    )

    assert answer.status_code == 201
    told = answer.json()
    assert (told["task"], told["args"], told["kwargs"]) == ("greet", ["Ada"], {"greeting": "Hi"})
    assert (told["queue"], told["priority"], told["state"], told["team"]) == ("mail", 10, "ready", "default")
    assert client.get(f"{JOBS}/{told['id']}").json() == told
    drain(app)
    assert client.get(f"{JOBS}/{told['id']}").json()["result"] == "Hi, Ada!"


def test_wishes_are_granted(client: httpx.Client) -> None:
    parent = created(client, run_after="1h")
    told = client.post(
        JOBS, json={"task": "greet", "args": ["Ada"], "after": [{"job": parent, "if_failed": "run"}], "queue": None}
    ).json()

    assert client.get(f"{JOBS}/{parent}").json()["state"] == "scheduled"
    assert told["state"] == "blocked"
    assert told["parents"] == [{"id": parent, "if_failed": "run"}]


@pytest.mark.parametrize("named", ["key", "idempotency_key"])
def test_a_second_job_with_the_key_of_the_first_is_the_first(client: httpx.Client, named: str) -> None:
    wanted = {"task": "greet", "args": ["Ada"], named: "once"}

    first, second = client.post(JOBS, json=wanted), client.post(JOBS, json=wanted)

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


def test_an_idempotency_key_may_come_in_a_header(client: httpx.Client) -> None:
    answers = [
        client.post(JOBS, json={"task": "greet", "args": ["Ada"]}, headers={"Idempotency-Key": "once"})
        for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 200]
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_two_idempotency_keys_that_differ_are_refused(client: httpx.Client, app: Mainspring) -> None:
    wanted = {"task": "greet", "args": ["Ada"], "idempotency_key": "a1"}

    refused = client.post(JOBS, json=wanted, headers={"Idempotency-Key": "b1"})
    taken = client.post(JOBS, json=wanted, headers={"Idempotency-Key": "a1"})

    assert (refused.status_code, taken.status_code, len(app.jobs())) == (422, 201, 1)
    assert "got 'b1' and 'a1'; send one of the two" in refused.json()["detail"]


def test_jobs_of_many_clients_are_each_created_once(client: httpx.Client, app: Mainspring) -> None:
    with ThreadPoolExecutor(20) as pool:
        ids = list(pool.map(lambda n: created(client, args=[str(n)]), range(100)))

    assert len(set(ids)) == 100
    assert {job.snapshot.id for job in app.jobs(limit=1_000)} == set(map(UUID, ids))


def test_one_that_is_refused_does_not_touch_those_that_come_with_it(client: httpx.Client, app: Mainspring) -> None:
    start = threading.Barrier(20)

    def ask(number: int) -> int:
        start.wait()
        wanted: object = number if number % 2 else str(number)
        return client.post(JOBS, json={"task": "greet", "args": [wanted]}).status_code

    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(ask, range(20)))

    assert sorted(statuses) == [201] * 10 + [422] * 10
    assert len(app.jobs(limit=1_000)) == 10


def test_many_jobs_are_created_in_one_call(client: httpx.Client, app: Mainspring) -> None:
    jobs = [{"task": "greet", "args": [str(n)]} for n in range(999)] + [{"task": "double", "args": [3], "key": "k"}]

    answer = client.post(f"{JOBS}/bulk", json={"jobs": jobs})

    assert answer.status_code == 201
    items = answer.json()["items"]
    assert len({item["id"] for item in items}) == 1_000
    assert all(item["created"] for item in items)
    assert app.job(items[1]["id"]).snapshot.payload == '{"args":["1"],"kwargs":{}}'
    again = client.post(f"{JOBS}/bulk", json={"jobs": jobs[-1:]}).json()["items"]
    assert again == [{"id": items[-1]["id"], "created": False}]
    assert [entry.action for entry in app.audit.list()] == ["job.enqueue_many"] * 2


def test_of_many_jobs_none_is_created_when_one_is_refused(client: httpx.Client, app: Mainspring) -> None:
    answer = client.post(f"{JOBS}/bulk", json={"jobs": [{"task": "greet", "args": ["Ada"]}, {"task": "greet"}]})

    assert answer.status_code == 422
    assert app.jobs() == []


def test_more_jobs_than_a_call_takes_are_refused(client: httpx.Client) -> None:
    answer = client.post(f"{JOBS}/bulk", json={"jobs": [{"task": "greet", "args": ["Ada"]}] * 1_001})

    assert answer.status_code == 422


def test_a_listing_goes_on_where_it_ended(client: httpx.Client) -> None:
    ids = [created(client) for _ in range(5)]

    first = client.get(JOBS, params={"limit": 2}).json()
    second = client.get(JOBS, params={"limit": 2, "before": first["next"]}).json()
    third = client.get(JOBS, params={"limit": 2, "before": second["next"]}).json()

    assert [job["id"] for page in (first, second, third) for job in page["items"]] == ids[::-1]
    assert third["next"] is None


def test_a_listing_shows_what_is_asked_for(client: httpx.Client) -> None:
    wanted = created(client, queue="mail", key="k")
    created(client)
    created(client, run_after="1h")

    for match in ({"queue": "mail"}, {"key": "k"}):
        assert [job["id"] for job in client.get(JOBS, params=match).json()["items"]] == [wanted]
    assert len(client.get(JOBS, params={"state": "scheduled"}).json()["items"]) == 1
    assert client.get(JOBS, params={"task": "double"}).json() == {"items": [], "next": None}


def test_a_listing_goes_by_time_and_by_error(client: httpx.Client, app: Mainspring) -> None:
    failed, waiting = created(client, task="fail", args=[]), created(client, run_after="1h")
    drain(app)
    ended = client.get(f"{JOBS}/{failed}").json()["finished_at"]

    def listed(**match: str) -> list[str]:
        return [job["id"] for job in client.get(JOBS, params=match).json()["items"]]

    assert listed(since="1h") == [waiting, failed]
    assert listed(until="1h") == listed(finished_until=ended) == listed(error="had luck") == []
    assert listed(finished_since=ended) == listed(error="VALUEERROR: no") == [failed]
    for wrong in ({"since": "2026-01-01T00:00:00"}, {"until": "soon"}, {"error": ""}):
        assert client.get(JOBS, params=wrong).status_code == 422


def test_a_listing_that_finds_nothing_soon_says_where_to_go_on(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [created(client, task="numbers", args=[1]), *(created(client) for _ in range(9))]
    monkeypatch.setattr(inspect, "LOOKED", 5)

    first = client.get(JOBS, params={"task": "numbers"}).json()
    second = client.get(JOBS, params={"task": "numbers", "before": first["next"]}).json()

    assert first == {"items": [], "next": ids[4]}
    assert ([job["id"] for job in second["items"]], second["next"]) == (ids[:1], None)


def test_a_job_is_held_let_go_on_cancelled_and_replayed(client: httpx.Client) -> None:
    job = f"{JOBS}/{created(client)}"

    states = [client.post(f"{job}/{deed}").json()["state"] for deed in ("pause", "resume", "cancel", "replay")]

    assert states == ["paused", "ready", "cancelled", "ready"]
    client.post(f"{job}/cancel", json={"reason": "enough"})
    assert client.get(job).json()["reason"] == "enough"


def test_a_job_that_has_succeeded_is_not_replayed(client: httpx.Client, app: Mainspring) -> None:
    job = created(client)
    drain(app)

    answer = client.post(f"{JOBS}/{job}/replay")

    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:mainspring:replay-refused"


def test_what_became_of_a_job_is_told(client: httpx.Client, app: Mainspring) -> None:
    job = created(client, task="fail", args=[])
    assert [reason["code"] for reason in client.get(f"{JOBS}/{job}/explain").json()["items"]] == ["no_worker"]
    drain(app)

    (attempt,) = client.get(f"{JOBS}/{job}/attempts").json()["items"]
    assert (attempt["outcome"], attempt["error"]["message"]) == ("failed", "no luck")
    assert client.get(f"{JOBS}/{job}/steps").json() == {"items": []}
    assert client.get(f"{JOBS}/{job}/logs").json()["items"] == []


def test_a_signal_reaches_a_job_that_has_not_ended(client: httpx.Client) -> None:
    job = created(client)

    assert client.post(f"{JOBS}/{job}/signal", json={"name": "rating", "value": "fine"}).status_code == 204
    client.post(f"{JOBS}/{job}/cancel")
    assert client.post(f"{JOBS}/{job}/signal", json={"name": "rating"}).status_code == 409


@pytest.mark.parametrize("path", ["", "/attempts", "/logs", "/explain", "/steps", "/events"])
def test_what_is_not_there_is_not_found(client: httpx.Client, path: str) -> None:
    answer = client.get(f"{JOBS}/{uuid4()}{path}")

    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:mainspring:job-not-found"


def test_a_parent_that_is_not_there_is_refused(client: httpx.Client) -> None:
    assert client.post(JOBS, json={"task": "greet", "args": ["Ada"], "after": [str(uuid4())]}).status_code == 404


def test_a_wait_ends_when_the_job_does(client: httpx.Client, app: Mainspring) -> None:
    job = created(client)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.get, f"{JOBS}/{job}", params={"wait": 60})
        drain(app)

        assert waiting.result().json()["result"] == "Hello, Ada!"


def test_a_wait_that_is_over_shows_the_job_as_it_is(client: httpx.Client) -> None:
    assert client.get(f"{JOBS}/{created(client)}", params={"wait": 0.01}).json()["state"] == "ready"
