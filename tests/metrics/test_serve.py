"""Metrics over HTTP: to this host, or to whoever has the token, and nothing but metrics."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidValue
from mainspring.metrics import MetricsServer, serve

TOKEN = "0123456789abcdef"


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Mainspring]:
    made = Mainspring(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def server(app: Mainspring, request: pytest.FixtureRequest) -> Iterator[MetricsServer]:
    made = serve(app, [0], token=getattr(request, "param", None))
    assert made is not None
    yield made
    made.close()


def get(server: MetricsServer, path: str = "/metrics", authorization: str | None = None) -> tuple[int, str, str]:
    headers = {} if authorization is None else {"Authorization": authorization}
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.headers["Content-Type"], reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_are_served_and_nothing_else(server: MetricsServer) -> None:
    status, kind, text = get(server)

    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "mainspring_database_up 1.0\n" in text
    assert get(server, "/")[0] == 404
    assert get(server, "/metrics/../etc/passwd")[0] == 404


@pytest.mark.parametrize("server", [TOKEN], indirect=True)
@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", TOKEN, "Bearer ünï"]
)
def test_without_the_token_nobody_is_told_anything(server: MetricsServer, given: str | None) -> None:
    status, _, text = get(server, authorization=given and given.encode().decode("latin-1"))

    assert (status, text) == (401, "a token is needed\n")


@pytest.mark.parametrize("server", [TOKEN], indirect=True)
def test_with_the_token_they_are_served(server: MetricsServer) -> None:
    assert get(server, authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_others_than_this_host_are_not_served_without_a_token(app: Mainspring, host: str) -> None:
    with pytest.raises(InvalidValue, match="expected metrics to be served to this host only"):
        serve(app, [0], host=host)


@pytest.mark.parametrize("token", ["", "short"])
def test_a_token_that_can_be_guessed_is_refused(app: Mainspring, token: str) -> None:
    with pytest.raises(InvalidValue, match="expected a token for metrics of 16 characters or more"):
        serve(app, [0], token=token)


def test_the_first_port_that_is_free_is_taken(app: Mainspring, server: MetricsServer) -> None:
    assert serve(app, [server.port]) is None

    other = serve(app, [server.port, 0])
    assert other is not None
    assert other.port != server.port
    other.close()
