"""Reading: all that is on a page is there without script, and on PostgreSQL as on SQLite."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from mainspring import JobState, Mainspring
from mainspring.server import Server
from mainspring.web.session import TOKEN
from tests.browser.chromium import opened
from tests.browser.shop import Shop
from tests.browser.tasks import Switches, add_tasks
from tests.browser.tour import stops
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SEEN = {
    "overview": "dead letters",
    "jobs": "send_receipt",
    "job": "charged",
    "job-failed": "the bank did not answer",
    "job-running": "importing articles: 7,312 of 12,400",
    "job-waiting": "maintenance",
    "job-durable": "hand to the carrier",
    "schedules": "sync-leipzig",
    "schedule": "Every 2 hours",
    "schedule-edit": "Time zone",
    "workflows": "nightly",
    "workflow": "write_report",
    "workflow-failed": "no font at",
    "dead": "TimeoutError",
    "dead-group": "tasks.py",
    "queues": "the bank has announced maintenance",
    "queue": "10m of waiting",
    "workers": "mill-1",
    "limits": "maintenance until noon",
    "alerts": "many-failures",
    "tokens": "nightly build",
    "audit": "breaker.trip",
}


def test_every_page_can_be_read_without_script(browser: Browser, shop: Shop, shop_server: Server) -> None:
    context, complaints = opened(browser, base_url=shop_server.url, java_script_enabled=False)
    context.add_cookies([{"name": TOKEN, "value": shop.secret, "url": shop_server.url}])
    page = context.new_page()
    for name, address in stops(shop).items():
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("main")).to_contain_text(SEEN.get(name, ""))
    page.goto("/jobs")
    page.get_by_label("State").select_option("failed")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("failed")
    context.close()

    assert complaints == []


def test_it_is_the_same_on_postgresql(browser: Browser, postgres_url: str) -> None:
    app, switches = Mainspring(postgres_url), Switches()
    add_tasks(app, switches)
    server = Server(app, "127.0.0.1", 0)
    server.start()
    context, complaints = opened(browser, base_url=server.url)
    page = context.new_page()
    with app.worker(concurrency=2, lease="3s"):
        failed = app.enqueue("import_prices", ["Acme"])
        until(lambda: failed.state is JobState.FAILED)
        for address in (
            "/",
            "/schedules",
            "/workflows",
            "/queues",
            "/workers",
            "/limits",
            "/alerts",
            "/audit",
            "/dead",
        ):
            page.goto(address)
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
        page.get_by_role("row").filter(has_text="ConnectionError").get_by_role("link").click()
        page.get_by_role("row").filter(has_text="does not answer").get_by_role("link").click()
        switches.fails = False
        page.get_by_role("button", name="Replay").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("import_prices succeeded")
        expect(page.get_by_text("all prices of Acme are in")).to_be_visible()
    context.close()
    server.stop()
    app.close()

    assert complaints == []
