"""A browser, and a server with a worker, for tests that do what people do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mainspring import Mainspring
from mainspring.node import Node
from mainspring.server import Server
from tests.browser.chromium import Complaints, launched, opened
from tests.browser.shop import Shop, filled
from tests.browser.shop import add_tasks as add_shop_tasks
from tests.browser.tasks import Switches, add_tasks

Opener = Callable[..., Page]

_PATIENCE = 30_000
"""Milliseconds for which a page may take to show what it should: the machine may be busy with other tests."""


# Not for the session: as long as it lives, a loop runs in the main thread, where other tests start loops of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=_PATIENCE)
    with launched() as one:
        yield one


@pytest.fixture
def switches() -> Iterator[Switches]:
    made = Switches()
    yield made
    made.go.set()


@pytest.fixture
def app(sqlite_url: str, switches: Switches) -> Iterator[Mainspring]:
    made = Mainspring(f"{sqlite_url}?synchronous=normal")
    add_tasks(made, switches)
    yield made
    made.close()


@pytest.fixture
def server(app: Mainspring) -> Iterator[Server]:
    made = Server(app, "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def worker(app: Mainspring, switches: Switches) -> Iterator[Node]:
    """A worker that hears soon of what people want of its jobs, and is let go when the test is over."""
    with app.worker(concurrency=4, lease="3s", grace="1s") as node:
        yield node
        switches.go.set()


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator[Opener]:
    """Opens pages, each in a context of its own: `open_page(forgiven={401})`. None may complain."""
    made: list[tuple[Page, Complaints]] = []

    def make(**options: Any) -> Page:
        context, complaints = opened(browser, base_url=server.url, **options)
        context.set_default_timeout(_PATIENCE)
        page = context.new_page()
        made.append((page, complaints))
        return page

    yield make
    for page, _ in made:
        page.context.close()
    assert [one for _, complaints in made for one in complaints] == []


@pytest.fixture
def page(open_page: Opener) -> Page:
    return open_page()


@pytest.fixture(scope="package")
def shop_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('shop') / 'shop.db'}?synchronous=normal"


@pytest.fixture(scope="package")
def shop(shop_url: str) -> Shop:
    """A shop with something to see on every page, for tests that only look."""
    return filled(shop_url)


@pytest.fixture(scope="package")
def shop_server(shop_url: str, shop: Shop) -> Iterator[Server]:
    app = Mainspring(shop_url)
    add_shop_tasks(app)
    server = Server(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop()
    app.close()
