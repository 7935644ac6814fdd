"""The browser itself: that there is one, and that nothing it complains of goes unheard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from mainspring.server import Server
from tests.browser.chromium import find_browser, opened
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_without_a_browser_one_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_TEST_BROWSER", "/nowhere/chromium")

    with pytest.raises(AssertionError, match="got none at '/nowhere/chromium'; install one with `make chromium`"):
        find_browser()


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.error('no luck')", "console: no luck"),
        ("setTimeout(() => { throw new Error('no luck') })", "script: no luck"),
        ("fetch('/nowhere')", "answer: 404"),
        ("fetch('http://127.0.0.1:1/').catch(() => {})", "policy: connect-src"),
        ("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')", "policy: style-src"),
        ("document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:1/' }))", "policy: img-src"),
    ],
)
def test_all_that_goes_wrong_is_heard(browser: Browser, server: Server, script: str, complaint: str) -> None:
    context, complaints = opened(browser, base_url=server.url)
    page = context.new_page()
    page.goto("/jobs")
    assert complaints == []

    def heard() -> bool:
        page.wait_for_timeout(5)  # events come in while one waits for the browser, and not otherwise
        return any(one.startswith(complaint) for one in complaints)

    page.evaluate(f"() => {{ {script} }}")

    until(heard)
    context.close()
