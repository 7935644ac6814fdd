"""A dashboard with something to see, and visitors who are logged in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from mainspring import Mainspring
from mainspring.server import Server
from mainspring.web.session import TEAM, TOKEN, proof_of
from tests.api.conftest import add_tasks

Visitor = Callable[..., "Browser"]


class Browser(httpx.Client):
    """A client that sends what a browser would, and forms as from a page of the team that was chosen last."""

    token: str | None = None

    def press(self, page: httpx.Response, path: str, **fields: str | list[str]) -> httpx.Response:
        """Send the form that leads from *page* to *path*."""
        (proof,) = set(
            re.findall(rf'action="{re.escape(path)}">\s*<input type="hidden" name="proof" value="(.*?)"', page.text)
        )
        return self.send_form(path, proof=proof, **fields)

    def send_form(self, path: str, **fields: str | list[str]) -> httpx.Response:
        proof = proof_of(self.token, self.cookies.get(TEAM))
        return self.post(path, data={"proof": proof, **fields}, headers={"Sec-Fetch-Site": "same-origin"})


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Mainspring]:
    made = Mainspring(f"{sqlite_url}?synchronous=normal")
    add_tasks(made)
    yield made
    made.close()


@pytest.fixture
def server(app: Mainspring) -> Iterator[Server]:
    made = Server(app, "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def visitor(app: Mainspring, server: Server) -> Iterator[Visitor]:
    """Makes browsers: `visitor()` has no token, `visitor(acme="viewer")` has logged in with one that grants that."""
    opened: list[Browser] = []

    def make(everywhere: str | None = None, **grants: str) -> Browser:
        given = grants if everywhere is None else {"*": everywhere, **grants}
        browser = Browser(base_url=server.url, trust_env=False, timeout=30)
        if given:
            browser.token, _ = app.tokens.create("test", given)
            browser.cookies.set(TOKEN, browser.token)
        opened.append(browser)
        return browser

    yield make
    for browser in opened:
        browser.close()
