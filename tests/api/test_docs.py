"""What the documentation says of the API is so."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from mainspring import Mainspring, every
from mainspring.api.policy import PUBLIC, Policy, Where
from mainspring.metrics import render
from mainspring.model.token import Role
from mainspring.server import Server
from tests.api.test_access import ROUTES
from tests.api.test_framing import send

DOCS = Path(__file__).parents[2] / "docs"
WHERES = {Where.TEAM: "the team", Where.FLEET: "`default`", Where.EVERYWHERE: "`*`"}


def rights() -> list[str]:
    """Return the rows of the table of rights, as the policies of all routes have them."""
    looks: dict[tuple[Where, Role], set[str]] = {}
    deeds: dict[tuple[Where, Role], set[str]] = {}
    for _, path, policy in ROUTES:
        if policy is PUBLIC:
            continue
        kind = deeds if policy.records else looks
        kind.setdefault(_held(policy), set()).add(policy.records or _seen(path))
    return [
        f"| `{role}` in {WHERES[where]} | {_listed(looks.get((where, role)))} | {_listed(deeds.get((where, role)))} |"
        for where in Where
        for role in Role
        if (where, role) in looks or (where, role) in deeds
    ]


def _held(policy: Policy) -> tuple[Where, Role]:
    assert policy.role is not None
    return policy.where, policy.role


def _seen(path: str) -> str:
    """Return what is looked at: all of one kind of thing, as far as it is only looked at."""
    return path.removeprefix("/api/v1").split("/")[1]


def _listed(names: set[str] | None) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names or ()))


def snippet(name: str, begins: str) -> str:
    """Return the first piece of Python in a document that begins so."""
    found = re.search(rf"^```python\n({re.escape(begins)}.*?)^```", (DOCS / name).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_what_is_said_of_teams_works(app: Mainspring) -> None:
    exec(snippet("teams.md", "acme = "), {"app": app, "every": every})

    assert [one.id for one in app.within("acme").schedules.list()] == ["digest"]


def test_metrics_are_bytes(app: Mainspring) -> None:
    assert isinstance(render(app), bytes)
    assert "returns the text as bytes" in (DOCS / "observability.md").read_text()


@pytest.mark.parametrize(
    "request_line", ["", "Host: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n"], ids=["no host", "two lengths"]
)
def test_what_is_no_http_is_refused_in_plain_text(server: Server, request_line: str) -> None:
    answer = send(server, f"GET /healthz HTTP/1.1\r\n{request_line}\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 400")
    assert b"content-type: text/plain" in answer


def test_metrics_are_served_by_the_api(client: httpx.Client) -> None:
    assert client.get("/metrics").status_code == 200


def test_the_table_of_rights_is_what_routes_ask_for() -> None:
    table = re.findall(r"^\| `.*` in .*\|$", (DOCS / "teams.md").read_text(), re.MULTILINE)

    assert table == rights(), "\n".join(rights())
