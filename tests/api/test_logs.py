"""What jobs have logged, over HTTP: page by page, by level, and searched for."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Context, Mainspring
from mainspring.testing import drain
from tests.api.conftest import Client

API = "/api/v1"


@pytest.fixture
def chatter(app: Mainspring) -> None:
    @app.task
    def chat(ctx: Context, words: str) -> None:
        for number in range(5):
            ctx.log.info(f"{words} {number}")
        ctx.log.warning(f"{words} 100% sure")


def chatted(client: httpx.Client, app: Mainspring, words: str = "hello") -> str:
    job = str(client.post(f"{API}/jobs", json={"task": "chat", "args": [words]}).json()["id"])
    drain(app)
    return job


def messages(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [line["message"] for line in answer.json()["items"]]


@pytest.mark.usefixtures("chatter")
def test_the_log_of_a_job_is_read_page_by_page(client: httpx.Client, app: Mainspring) -> None:
    logs = f"{API}/jobs/{chatted(client, app)}/logs"
    read, after = [], "0.0"
    while after:
        page = client.get(logs, params={"after": after, "limit": 4})
        read.append(messages(page))
        after = page.json()["next"]

    assert read == [["hello 0", "hello 1", "hello 2", "hello 3"], ["hello 4", "hello 100% sure"]]
    assert messages(client.get(logs, params={"limit": 2})) == ["hello 4", "hello 100% sure"]
    assert client.get(logs).json()["next"] is None


@pytest.mark.usefixtures("chatter")
def test_of_the_log_of_a_job_some_lines_are_read(client: httpx.Client, app: Mainspring) -> None:
    logs = f"{API}/jobs/{chatted(client, app)}/logs"

    assert messages(client.get(logs, params={"level": "warning"})) == ["hello 100% sure"]
    assert messages(client.get(logs, params={"contains": "0%"})) == ["hello 100% sure"]
    assert messages(client.get(logs, params={"contains": "o 3", "after": "0.0"})) == ["hello 3"]
    assert messages(client.get(logs, params={"level": "error", "after": "0.0"})) == []


@pytest.mark.parametrize("after", ["1", "1.", "a.b", "-1.0", "1.2.3", "9999999999.1"])
def test_a_place_in_a_log_that_is_none_is_refused(client: httpx.Client, after: str) -> None:
    job = client.post(f"{API}/jobs", json={"task": "fail"}).json()["id"]

    assert client.get(f"{API}/jobs/{job}/logs", params={"after": after}).status_code == 422


@pytest.mark.usefixtures("chatter")
def test_all_logs_of_a_team_are_searched(client_of: Client, app: Mainspring) -> None:
    acme, beta = client_of(acme="submitter"), client_of(beta="submitter")
    mine, theirs = chatted(acme, app, "hello"), chatted(beta, app, "servus")

    (found,) = acme.get(f"{API}/logs", params={"contains": "sure"}).json()["items"]

    assert (found["job"], found["task"], found["level"]) == (mine, "chat", "warning")
    assert len(messages(acme.get(f"{API}/logs", params={"task": "chat", "limit": 3}))) == 3
    assert messages(acme.get(f"{API}/logs", params={"contains": "servus"})) == []
    assert messages(beta.get(f"{API}/logs", params={"level": "warning"})) == ["servus 100% sure"]
    assert acme.get(f"{API}/jobs/{theirs}/logs").status_code == 404


@pytest.mark.usefixtures("chatter")
def test_logs_are_searched_since_an_instant_or_for_a_length_of_time(client: httpx.Client, app: Mainspring) -> None:
    chatted(client, app)

    for since in ("1h", "2020-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"):
        assert len(messages(client.get(f"{API}/logs", params={"since": since}))) == 6
    for since in ("2199-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"):
        assert client.get(f"{API}/logs", params={"since": since}).status_code == 200
    for since in ("soon", "2020-01-01", "-1h", "2020-01-01T00:00:00"):
        assert client.get(f"{API}/logs", params={"since": since}).status_code == 422
