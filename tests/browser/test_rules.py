"""Every page keeps to the rules that let everybody use it, light and dark, wide and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from mainspring.server import Server
from mainspring.web.session import TOKEN
from tests.browser.chromium import opened
from tests.browser.shop import Shop
from tests.browser.tour import stops

pytestmark = pytest.mark.slow

RULES = (Path(__file__).parent / "rules.js").read_text()
LOOKS = [(light, size) for light in ("light", "dark") for size in ((1280, 800), (390, 844))]


def broken(page: Page) -> list[str]:
    """Return which rules the page breaks, and where."""
    found: list[str] = page.evaluate(RULES)
    return [f"{page.url}: {one}" for one in found]


@pytest.mark.parametrize(("light", "size"), LOOKS, ids=lambda given: str(given))
def test_every_page_keeps_to_the_rules(
    browser: Browser, shop: Shop, shop_server: Server, light: str, size: tuple[int, int]
) -> None:
    width, height = size
    context, complaints = opened(
        browser, base_url=shop_server.url, color_scheme=light, viewport={"width": width, "height": height}
    )
    context.add_cookies([{"name": TOKEN, "value": shop.secret, "url": shop_server.url}])
    page = context.new_page()
    found = []
    for address in stops(shop).values():
        page.goto(address)
        found += broken(page)
    context.close()

    assert found == []
    assert complaints == []


def test_pages_that_answer_a_form_keep_to_them(browser: Browser, shop: Shop, shop_server: Server) -> None:
    context, complaints = opened(browser, {401, 404, 422}, base_url=shop_server.url)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Token").fill("ms_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.wait_for_load_state()
    found = broken(page)
    page.get_by_label("Token").fill(shop.secret)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("link", name="Overview")).to_be_visible()

    page.goto("/schedules/-/new")
    page.get_by_label("Cron expression").fill("0 9 * * mon-fri")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    found += broken(page)
    page.get_by_label("Cron expression").fill("never")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found += broken(page)

    page.goto("/jobs?state=failed")
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("?")
    found += broken(page)

    page.goto("/tokens")
    page.get_by_label("Name").fill("a trial")
    page.get_by_role("button", name="Make").click()
    expect(page.get_by_label("The token")).to_be_visible()
    found += broken(page)
    page.goto("/jobs/00000000-0000-7000-8000-000000000000")
    expect(page.get_by_role("alert")).to_be_visible()
    found += broken(page)
    context.close()

    assert found == []
    assert complaints == []


def test_pages_with_nothing_on_them_keep_to_them(page: Page) -> None:
    found = []
    for address in ("/", "/jobs", "/schedules", "/workflows", "/dead", "/queues", "/workers", "/limits", "/alerts"):
        page.goto(address)
        found += broken(page)

    assert found == []


BAD = """
<html><body><h2>too deep</h2><main><input><button></button><img src="data:,"><a href="#">a</a>
<p id="twice" style="color: #999">pale</p><p id="twice" tabindex="3">x</p><table><tr><td>1</td></tr></table>
<div style="width: 3000px">wide</div><div style="overflow: auto; height: 9px">hidden<br>hidden</div>
<button style="width: 9px; height: 9px; padding: 0; outline: none">x</button></main></body></html>
"""


def test_the_rules_find_what_is_wrong(browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_content(BAD)
    found = {one.partition(":")[0].partition(",")[0] for one in page.evaluate(RULES)}
    context.close()

    assert found >= {
        *("the page says no language", "the title does not end with our name", "there is not exactly one h1"),
        *("a level of headings is left out", "a landmark is missing or there twice", "an id is there twice"),
        *("the order of tabs is meddled with", "a field has no label", "a button or link has no name"),
        *("an image says not what it shows", "a table has no headers", "words are hard to read"),
        *("the page is wider than the screen", "what scrolls can't be reached by keyboard"),
        *("it is too small to be hit", "one does not see that it is focused", "it has a style or a script of its own"),
    }
