"""A server on a database of the test's own, and clients that show tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import httpx
import pytest

from mainspring import Mainspring, Retry
from mainspring.server import Server

Client = Callable[..., httpx.Client]


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Mainspring]:
    """An app with a few tasks, on SQLite: what differs between databases is tested below the API."""
    made = Mainspring(sqlite_url)
    add_tasks(made)
    yield made
    made.close()


def add_tasks(app: Mainspring) -> None:
    @app.task
    def greet(name: str, greeting: str = "Hello") -> str:
        return f"{greeting}, {name}!"

    @app.task
    def numbers(count: int) -> list[int]:
        return list(range(count))

    @app.task
    def double(number: int) -> int:
        return 2 * number

    @app.task
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(retry=Retry(max_attempts=1))
    def fail() -> None:
        raise ValueError("no luck")


@pytest.fixture
def server(app: Mainspring) -> Iterator[Server]:
    """The API of the app, served on loopback."""
    made = Server(app, "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def open_client(server: Server) -> Iterator[httpx.Client]:
    """A client that shows no token."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


@pytest.fixture
def client_of(app: Mainspring, server: Server) -> Iterator[Client]:
    """Makes clients whose tokens grant what is asked for: `client_of(acme="viewer")`; `everywhere=` for all teams."""
    opened: list[httpx.Client] = []

    def make(everywhere: str | None = None, **grants: str) -> httpx.Client:
        given: Mapping[str, str] = grants if everywhere is None else {"*": everywhere, **grants}
        text, _ = app.tokens.create("test", given)
        client = httpx.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {text}"}, trust_env=False, timeout=60
        )
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def client(client_of: Client) -> httpx.Client:
    """A client that may do everything for every team."""
    return client_of(everywhere="admin")
