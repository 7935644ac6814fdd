"""Keeping up: in however many windows, and without taking anything out of the hands of who is at work in one."""

from __future__ import annotations

import re
from threading import Event

import pytest
from playwright.sync_api import Page, Response, expect

from mainspring import Context, Mainspring, Retry

pytestmark = pytest.mark.slow

HIDE = 'Object.defineProperty(document, "hidden", { get: () => window.away === true });'
LOOK = "away => { window.away = away; document.dispatchEvent(new Event('visibilitychange')); }"


def brought(answer: Response) -> bool:
    """Whether it is the page that its script has asked for."""
    return answer.url.endswith("/jobs") and answer.request.resource_type == "fetch"


def enqueue_two(app: Mainspring, page: Page) -> None:
    """Have something happen. When the page asks for the second time, it has done with the first."""
    for supplier in ("Acme", "Beta"):
        with page.expect_response(brought) as answer:
            app.enqueue("import_prices", [supplier], run_after="1h")
        answer.value.finished()


def test_twenty_windows_are_kept_up_to_date(page: Page, app: Mainspring) -> None:
    page.goto("/jobs")
    pages = [page, *(page.context.new_page() for _ in range(19))]
    for other in pages[1:]:
        other.goto("/jobs")

    app.enqueue("import_prices", ["Acme"], run_after="1h")

    for one in pages:
        expect(one.get_by_role("row")).to_have_count(2)


def test_windows_that_nobody_looks_at_keep_nothing_from_the_others(page: Page, app: Mainspring) -> None:
    page.context.add_init_script(HIDE)
    jobs = [app.enqueue("import_prices", [str(n)], run_after="1h") for n in range(9)]
    pages = []
    for job in jobs:
        pages.append(page.context.new_page())
        pages[-1].goto(f"/jobs/{job.id}")
        pages[-1].evaluate(LOOK, True)

    jobs[0].cancel()
    pages[0].evaluate(LOOK, False)

    expect(pages[0].get_by_role("heading", level=1)).to_have_text("import_prices cancelled")


def test_what_came_while_somebody_was_at_work_is_shown_once_he_is_done(page: Page, app: Mainspring) -> None:
    chosen = app.enqueue("import_prices", ["Acme"], run_after="1h")
    page.goto("/jobs")
    box = page.get_by_role("checkbox", name=re.compile(str(chosen.id)[-8:]))
    box.check()

    enqueue_two(app, page)
    expect(page.get_by_role("row")).to_have_count(2)
    box.uncheck()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("heading", level=1).click()

    expect(page.get_by_role("row")).to_have_count(4)


def test_words_that_somebody_has_marked_stay_marked(page: Page, app: Mainspring) -> None:
    app.enqueue("import_prices", ["Acme"], run_after="1h")
    page.goto("/jobs")
    page.get_by_role("cell", name="import_prices", exact=True).evaluate("one => getSelection().selectAllChildren(one)")

    enqueue_two(app, page)
    assert page.evaluate("getSelection().toString()") == "import_prices"
    page.evaluate("getSelection().removeAllRanges()")

    expect(page.get_by_role("row")).to_have_count(4)


def test_what_somebody_has_opened_stays_open(page: Page, app: Mainspring) -> None:
    turns = [Event() for _ in range(3)]

    @app.task(retry=Retry(max_attempts=4, base="1s"))
    def stumble(ctx: Context) -> None:
        turns[ctx.attempt - 1].wait()
        raise ValueError(f"stumbled {ctx.attempt} times")

    job = stumble.enqueue()
    with app.worker(concurrency=1):
        page.goto(f"/jobs/{job.id}")
        turns[0].set()
        page.locator("summary").click()
        page.get_by_role("heading", level=1).click()
        turns[1].set()

        expect(page.locator("#job-error")).to_contain_text("stumbled 2 times")
        expect(page.get_by_label("Traceback")).to_be_visible()
        turns[2].set()
        job.cancel()
