"""Who is let in: every route by its policy, and nobody by anything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from mainspring import Mainspring
from mainspring.api.app import check_policies, make_api
from mainspring.api.policy import PUBLIC, Policy, Where, needs, policy_of
from mainspring.api.routing import Guarded, Routes
from mainspring.model.token import Role
from mainspring.server import Server
from mainspring.store import teams
from tests.api.conftest import Client
from tests.support.waiting import until

JOBS, FLOWS = "/api/v1/jobs", "/api/v1/workflows"
WRONG = f"ms_{'a' * 12}_{'A' * 43}"


def walk() -> Iterator[tuple[str, str, Policy]]:
    """Yield each route of the API: its method, its path, and its policy."""
    for route in make_api(Mainspring("sqlite:///nowhere.db")).routes:
        assert isinstance(route, Guarded)
        for method in route.methods or ():
            yield method, route.path, policy_of(route.endpoint)


ROUTES = sorted(walk(), key=lambda route: route[:2])
GUARDED = [route for route in ROUTES if route[2] is not PUBLIC]


def ask(client: httpx.Client, method: str, path: str, **more: str) -> httpx.Response:
    """Ask for *path* with ids that nothing has; what it may say does not matter to who is let in."""
    filled = re.sub(r"\{(\w+)(:path)?\}", lambda name: str(uuid4()) if name[1] == "job_id" else "nothing", path)
    return client.request(method, filled.replace("tokens/nothing", f"tokens/{'a' * 12}"), headers=more)


def test_only_health_and_the_description_are_open_to_anybody() -> None:
    assert {path for _, path, policy in ROUTES if policy is PUBLIC} == {"/healthz", "/openapi.json", "/readyz"}


def test_what_changes_anything_is_recorded_and_what_is_only_looked_at_is_not() -> None:
    only_looks = {("POST", "/api/v1/schedules/preview")}

    for method, path, policy in GUARDED:
        assert (policy.records is not None) == (method != "GET" and (method, path) not in only_looks), path


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., httpx.Client]]:
    """One server for the walk along all routes: makes clients by what their tokens grant, each once."""
    app = Mainspring(f"sqlite:///{tmp_path_factory.mktemp('walk') / 'mainspring.db'}")
    app.tokens.create("first", {"acme": "viewer"})  # as soon as there is one, all need one
    server = Server(app, "127.0.0.1", 0)
    server.start()
    clients: dict[str, httpx.Client] = {}

    def client(**grants: str) -> httpx.Client:
        name = str(sorted(grants.items()))
        if name not in clients:
            given = {"*" if team == "everywhere" else team: role for team, role in grants.items()}
            shown = {"Authorization": f"Bearer {app.tokens.create('walk', given)[0]}"} if grants else {}
            clients[name] = httpx.Client(base_url=server.url, headers=shown, trust_env=False)
        return clients[name]

    yield client
    for opened in clients.values():
        opened.close()
    server.stop()
    app.close()


@pytest.mark.parametrize(("method", "path", "policy"), GUARDED, ids=str)
def test_every_route_asked_by_whoever_may_not(
    walked: Callable[..., httpx.Client], method: str, path: str, policy: Policy
) -> None:
    anybody, beta = walked(), walked(beta="admin")
    assert ask(anybody, method, path).status_code == 401
    for shown in (f"Bearer {WRONG}", "Bearer", "Basic YTpi", WRONG):
        answer = ask(anybody, method, path, Authorization=shown)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")

    others = ask(beta, method, path, **{"Mainspring-Team": "acme"})
    assert (others.status_code, others.json()["type"]) == (404, "urn:mainspring:team-not-found")

    for grants in too_small(policy):
        answer = ask(walked(**grants), method, path)
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:mainspring:role-too-small"), grants


def too_small(policy: Policy) -> Iterator[dict[str, str]]:
    """Yield what tokens may grant that is not enough for *policy*."""
    assert policy.role is not None
    roles = list(Role)
    for role in roles[: roles.index(policy.role)]:
        yield {"acme": role}
        yield {"everywhere": role}
    if policy.where is not Where.TEAM:
        yield {"acme": "admin"}
    if policy.where is Where.EVERYWHERE:
        yield {"default": "admin"}


def test_a_route_without_a_policy_can_not_be_made() -> None:
    api = FastAPI()
    api.router.route_class = Guarded

    with pytest.raises(TypeError, match="says nothing of who may use it"):
        api.get("/open")(lambda: None)


def test_a_route_that_is_made_past_the_guard_is_found() -> None:
    api = FastAPI(openapi_url=None)
    api.get("/open")(lambda: None)

    with pytest.raises(TypeError, match="no route that anybody guards"):
        check_policies(api)


def test_a_change_that_is_not_recorded_is_a_mistake_of_ours(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = Routes("forgetful")
    forgetful.post("/forget", needs(Role.VIEWER, records="thing.forget"))(_forget)
    monkeypatch.setattr("mainspring.api.app.ROUTES", [forgetful])
    server = Server(app, "127.0.0.1", 0)
    server.start()

    assert httpx.post(f"{server.url}/api/v1/forget").status_code == 500

    server.stop()


async def _forget() -> None:
    """Do something, and tell nobody."""


def test_a_team_is_named_in_a_header_or_in_the_address(client_of: Client, app: Mainspring) -> None:
    both = client_of(acme="submitter", beta="submitter")

    assert both.get(JOBS).json()["type"] == "urn:mainspring:team-missing"
    both.post(JOBS, json={"task": "fail"}, headers={"Mainspring-Team": "acme"})
    both.post(JOBS, json={"task": "fail"}, params={"team": "beta"})
    assert [job.snapshot.team for job in app.jobs()] == ["beta", "acme"]
    assert both.get(JOBS, params={"team": "beta"}, headers={"Mainspring-Team": "acme"}).status_code == 422
    assert both.get(JOBS, params={"team": "No Team"}).status_code == 422


def test_what_is_another_teams_is_not_there(client_of: Client) -> None:
    acme, beta = client_of(acme="admin"), client_of(beta="admin")
    wanted = {"task": "fail", "key": "k", "idempotency_key": "i"}
    job = acme.post(JOBS, json=wanted).json()
    every = {"task": "fail", "trigger": {"kind": "every", "length": "1h"}}
    acme.put("/api/v1/schedules/mine", json=every)
    workflow = acme.post("/api/v1/workflows", json={"name": "w", "nodes": [{"id": "a", "task": "fail"}]}).json()["id"]

    for path in ("", "/attempts", "/logs", "/explain", "/steps", "/events"):
        assert beta.get(f"{JOBS}/{job['id']}{path}").status_code == 404
    for deed in ("cancel", "pause", "resume", "replay"):
        assert beta.post(f"{JOBS}/{job['id']}/{deed}").status_code == 404
        assert beta.post(f"/api/v1/workflows/{workflow}/{deed}").status_code == 404
    assert beta.post(f"{JOBS}/{job['id']}/signal", json={"name": "n"}).status_code == 404
    assert beta.post(JOBS, json={"task": "fail", "after": [job["id"]]}).status_code == 404
    assert beta.post("/api/v1/dead/replay", json={"ids": [job["id"]]}).status_code == 404
    for deed in ("pause", "resume", "trigger"):
        assert beta.post(f"/api/v1/schedules/mine/{deed}").status_code == 404
    assert beta.delete("/api/v1/schedules/mine").status_code == 404
    assert beta.get(f"/api/v1/workflows/{workflow}/jobs").status_code == 404
    for listing in ("jobs", "schedules", "workflows", "dead", "queues"):
        assert beta.get(f"/api/v1/{listing}").json()["items"] == []
    theirs = beta.post(JOBS, json=wanted)
    assert (theirs.status_code, theirs.json()["key"]) == (201, "k")
    assert acme.get(f"{JOBS}/{job['id']}").json() == job


def test_a_queue_that_all_share_is_not_ruled_by_one_team(client_of: Client) -> None:
    acme = client_of(acme="operator")

    assert acme.post("/api/v1/queues/mail/pause").json()["type"] == "urn:mainspring:not-allowed"
    assert client_of(default="operator").post("/api/v1/queues/mail/pause").status_code == 200
    owner = client_of(everywhere="admin").put("/api/v1/queues/ours/owner", json={"team": "acme"})
    assert owner.status_code == 204
    assert acme.post("/api/v1/queues/ours/pause").status_code == 200


def test_a_team_is_held_to_what_it_may_have(client_of: Client) -> None:
    admin, acme = client_of(everywhere="admin"), client_of(acme="operator")
    admin.put("/api/v1/teams/acme", json={"max_pending": 1, "max_schedules": 0})

    assert acme.post(JOBS, json={"task": "fail"}).status_code == 201
    assert acme.post(JOBS, json={"task": "fail"}).status_code == 429
    assert acme.post(f"{JOBS}/bulk", json={"jobs": [{"task": "fail"}]}).status_code == 429
    workflow = {"name": "w", "nodes": [{"id": "a", "task": "fail"}]}
    assert acme.post("/api/v1/workflows", json=workflow).status_code == 429
    every = {"task": "fail", "trigger": {"kind": "every", "length": "1h"}}
    assert acme.put("/api/v1/schedules/mine", json=every).status_code == 429
    assert admin.post(JOBS, json={"task": "fail"}).status_code == 201
    assert acme.get("/api/v1/teams").json()["items"][0]["max_pending"] == 1
    assert admin.delete("/api/v1/teams/acme").status_code == 204
    assert acme.post(JOBS, json={"task": "fail"}).status_code == 201


def test_a_token_that_was_revoked_lets_nobody_in(client_of: Client, app: Mainspring) -> None:
    client_of(everywhere="admin")
    acme = client_of(acme="viewer")
    assert acme.get(JOBS).status_code == 200

    app.tokens.revoke(app.tokens.list()[-1].id)

    until(lambda: acme.get(JOBS).status_code == 401)


def test_without_any_token_this_machine_may_do_everything(open_client: httpx.Client, app: Mainspring) -> None:
    assert open_client.post(JOBS, json={"task": "fail"}).status_code == 201
    assert open_client.put("/api/v1/teams/acme", json={"max_pending": 1}).status_code == 200
    assert open_client.get(JOBS, headers={"Authorization": "Bearer"}).status_code == 401
    assert open_client.get(JOBS, headers={"Authorization": f"Bearer {WRONG}"}).status_code == 401

    app.tokens.create("first", {"acme": "viewer"})

    until(lambda: open_client.get(JOBS).status_code == 401)


def test_when_the_last_token_is_gone_nobody_is_let_in_without_one(open_client: httpx.Client, app: Mainspring) -> None:
    _, token = app.tokens.create("ci", {"*": "admin"})
    app.tokens.revoke(token.id)

    until(lambda: open_client.get(JOBS).status_code == 401)
    assert open_client.post("/api/v1/tokens", json={"name": "x", "grants": {"*": "admin"}}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example:8400"},
        {"Host": "192.168.0.1"},
        {"Host": "localhost@evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_without_any_token_a_page_from_elsewhere_may_do_nothing(
    open_client: httpx.Client, app: Mainspring, headers: dict[str, str]
) -> None:
    assert open_client.post(JOBS, json={"task": "fail"}, headers=headers).status_code == 403
    assert open_client.get(JOBS, headers=headers).status_code == 403
    assert app.jobs() == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8400", "127.0.0.1", "127.1.2.3:80", "[::1]:8400"])
def test_this_machine_has_many_names(open_client: httpx.Client, host: str) -> None:
    headers = {"Host": host, "Sec-Fetch-Site": "same-origin", "Origin": f"http://{host}"}

    assert open_client.get(JOBS, headers=headers).status_code == 200


def test_an_address_that_others_reach_is_not_served_without_the_token_of_an_admin(app: Mainspring) -> None:
    app.tokens.create("small", {"*": "operator"})

    with pytest.raises(ValueError, match="`mainspring tokens create`"):
        Server(app, "0.0.0.0", 0)


def test_an_address_that_others_reach_needs_a_token_even_when_all_are_revoked(app: Mainspring) -> None:
    _, token = app.tokens.create("admin", {"*": "admin"})
    server = Server(app, "0.0.0.0", 0)
    server.start()
    app.tokens.revoke(token.id)
    local = server.url.replace("0.0.0.0", "127.0.0.1")

    assert httpx.get(f"{local}{JOBS}", headers={"Host": "localhost"}).status_code == 401

    server.stop()


def test_who_asks_again_hears_of_his_job_though_the_team_may_have_no_more(client_of: Client) -> None:
    admin, acme = client_of(everywhere="admin"), client_of(acme="operator")
    admin.put("/api/v1/teams/acme", json={"max_pending": 4})
    single = {"task": "fail", "idempotency_key": "once"}
    bulk = {"jobs": [{"task": "fail", "key": "mine"}]}
    workflow = {"name": "w", "key": "run", "nodes": [{"id": "a", "task": "fail"}]}

    def ask() -> list[httpx.Response]:
        return [acme.post(JOBS, json=single), acme.post(f"{JOBS}/bulk", json=bulk), acme.post(FLOWS, json=workflow)]

    first, again = ask(), ask()

    assert [one.status_code for one in first] == [201, 201, 201]
    assert [one.status_code for one in again] == [200, 201, 200]
    assert [again[0].json()["id"], again[2].json()["id"]] == [first[0].json()["id"], first[2].json()["id"]]
    assert again[1].json()["items"] == [{"id": first[1].json()["items"][0]["id"], "created": False}]
    assert acme.post(f"{JOBS}/bulk", json={"jobs": [*bulk["jobs"], {"task": "fail"}]}).status_code == 429


def test_all_jobs_count_that_come_of_a_request(client_of: Client) -> None:
    admin, acme = client_of(everywhere="admin"), client_of(acme="operator")
    admin.put("/api/v1/teams/acme", json={"max_pending": 5})
    every = {"task": "fail", "trigger": {"kind": "every", "length": "1h", "start": "2026-01-01T00:00:00Z"}}
    acme.put("/api/v1/schedules/hourly", json=every)
    day = {"start": "2026-02-01T00:00:00Z", "end": "2026-02-02T00:00:00Z"}

    nodes = [{"id": "a", "task": "double", "map": [1, 2, 3, 4]}]
    assert acme.post(FLOWS, json={"name": "w", "nodes": nodes}).status_code == 429
    assert acme.post("/api/v1/schedules/hourly/backfill", json=day).status_code == 429
    nodes[0]["map"] = [1, 2, 3]
    assert acme.post(FLOWS, json={"name": "w", "nodes": nodes}).status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("alerts/x", {"rule": {"kind": "dead"}}),
        ("secrets/x", {"value": "a long value"}),
        ("notifications/x", {"kind": "email", "to": "ops@example.org", "on": ["failure"]}),
    ],
)
def test_a_team_has_no_more_of_what_costs_others(
    client_of: Client, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, object]
) -> None:
    monkeypatch.setattr(teams, "MOST", {"rule": 0, "alert": 0, "secret": 0})
    acme = client_of(acme="admin")

    refused = acme.put(f"/api/v1/{path}", json=body)

    assert (refused.status_code, refused.json()["type"]) == (429, "urn:mainspring:quota-exceeded")
    described = acme.get("/openapi.json").json()["paths"]
    (route,) = [one for name, one in described.items() if name.startswith(f"/api/v1/{path[:-2]}/{{") and "put" in one]
    assert "429" in route["put"]["responses"]
