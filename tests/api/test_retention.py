"""Rules for retention over HTTP: an admin of a team makes them for its jobs, one everywhere for all."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Mainspring
from tests.api.conftest import Client

RETENTION = "/api/v1/retention"


def test_a_rule_is_set_takes_the_place_of_another_and_is_removed(client: httpx.Client, app: Mainspring) -> None:
    covers = {"queue": "mail", "state": "succeeded"}
    client.put(RETENTION, json={**covers, "age": "1d"})

    told = client.put(RETENTION, json={**covers, "age": "7d", "count": 100}).json()

    assert told == {"team": None, **covers, "age": "7d", "count": 100}
    assert client.get(RETENTION).json() == {"items": [told]}
    assert len(app.retention.list()) == 1
    assert client.delete(RETENTION, params={"queue": "mail"}).status_code == 404
    assert [client.delete(RETENTION, params=covers).status_code for _ in range(2)] == [204, 404]
    assert app.retention.list() == []
    last, *_ = client.get("/api/v1/audit").json()["items"]
    assert (last["action"], last["target"]) == ("retention.remove", "queue mail, state succeeded")


@pytest.mark.parametrize(
    "wrong",
    [{}, {"age": 0}, {"age": "soon"}, {"count": 0}, {"state": "ready", "age": "1d"}, {"team": "beta", "age": 9}],
)
def test_a_rule_that_makes_no_sense_is_refused(client: httpx.Client, app: Mainspring, wrong: dict[str, object]) -> None:
    assert client.put(RETENTION, json=wrong).status_code == 422
    assert app.retention.list() == []
    assert app.audit.list() == []


def test_an_admin_of_a_team_rules_over_its_jobs_only(client_of: Client, app: Mainspring) -> None:
    everywhere, acme, beta = client_of(everywhere="admin"), client_of(acme="admin"), client_of(beta="admin")
    default = client_of(default="admin")
    whole = everywhere.put(RETENTION, json={"age": "90d"}).json()

    mine = acme.put(RETENTION, json={"age": "1h"}).json()

    assert (whole["team"], mine["team"]) == (None, "acme")
    assert acme.get(RETENTION).json() == {"items": [mine]}
    assert beta.get(RETENTION).json() == {"items": []}
    assert everywhere.get(RETENTION).json() == {"items": [mine, whole]}
    for other in (beta, default):
        assert other.delete(RETENTION).status_code == 404
    assert everywhere.put(RETENTION, json={"age": "2h"}, params={"team": "beta"}).json()["team"] == "beta"
    assert acme.delete(RETENTION).status_code == 204
    assert {rule.covers.team for rule in app.retention.list()} == {None, "beta"}
