"""Standing: a page that can't be kept up to date says so, and why, until it can."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from mainspring import Mainspring
from mainspring.server import Server
from mainspring.web.session import TOKEN
from tests.browser.chromium import opened

pytestmark = pytest.mark.slow


@pytest.fixture
def unheard(browser: Browser, server: Server) -> Iterator[Page]:
    """A page whose complaints are what the test is after."""
    context, _ = opened(browser, base_url=server.url)
    yield context.new_page()
    context.close()


def test_a_page_says_that_the_server_is_away_and_catches_up_when_it_is_back(
    unheard: Page, app: Mainspring, server: Server
) -> None:
    app.enqueue("import_prices", ["Acme"], run_after="1h")
    unheard.goto("/jobs")
    expect(unheard.get_by_role("row")).to_have_count(2)
    away = unheard.get_by_text("the server does not answer")
    expect(away).to_be_hidden()

    server.stop()
    expect(away).to_be_visible()
    expect(away).to_contain_text("Not up to date since ")
    expect(away.locator("time")).to_contain_text(":")
    app.enqueue("import_prices", ["Beta"], run_after="1h")
    again = Server(app, "127.0.0.1", urlsplit(server.url).port or 0)
    again.start()
    try:
        expect(unheard.get_by_role("row")).to_have_count(3)
        expect(away).to_be_hidden()
    finally:
        again.stop()


def test_a_page_says_that_its_token_lets_nobody_in_any_more(unheard: Page, app: Mainspring, server: Server) -> None:
    text, token = app.tokens.create("Ada", {"acme": "viewer"})
    unheard.context.add_cookies([{"name": TOKEN, "value": text, "url": server.url}])
    unheard.goto("/jobs?task=paint")
    out = unheard.get_by_text("You are logged out")
    expect(out).to_be_hidden()

    app.tokens.revoke(token.id)
    expect(out).to_be_visible()
    unheard.get_by_role("link", name="log in again").click()

    expect(unheard.get_by_role("heading", level=1)).to_have_text("Log in")
    expect(unheard.locator("[name=next]")).to_have_value("/jobs?task=paint")
