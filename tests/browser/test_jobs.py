"""Jobs: somebody finds out why one failed, puts it right, and rules those that run or wait."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from mainspring import JobState, Mainspring
from mainspring.node import Node
from tests.browser.conftest import Opener
from tests.browser.tasks import Switches
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_a_failed_job_is_found_understood_and_replayed(
    page: Page, app: Mainspring, worker: Node, switches: Switches
) -> None:
    failed = app.enqueue("import_prices", ["Acme"])
    until(lambda: failed.state is JobState.FAILED)
    page.goto("/")

    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Jobs").click()
    page.get_by_label("State").select_option("failed")
    page.get_by_role("row").filter(has_text="import_prices").get_by_role("link").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("import_prices failed")
    expect(page.get_by_text("Acme does not answer", exact=True)).to_be_visible()
    expect(page.get_by_text("switches.check(")).to_be_visible()
    expect(page.get_by_label("Log")).to_contain_text("asking Acme for prices")

    switches.fails = False
    page.get_by_role("button", name="Replay").click()

    # It is not loaded again by hand: what comes of it shows by itself.
    expect(page.get_by_role("status")).to_contain_text("replayed")
    expect(page.get_by_role("heading", level=1)).to_have_text("import_prices succeeded")
    expect(page.get_by_text("all prices of Acme are in")).to_be_visible()
    expect(page.get_by_text("Acme does not answer", exact=True)).to_have_count(0)


def test_one_that_does_not_run_says_why(page: Page, app: Mainspring) -> None:
    job = app.enqueue("import_prices", ["Acme"])
    app.queues.pause("default", reason="stocktaking", by="Ada")

    page.goto(f"/jobs/{job.id}")

    expect(page.get_by_role("heading", name="Why it does not run")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("stocktaking")


def test_what_a_job_says_is_shown_while_it_runs(page: Page, app: Mainspring, worker: Node, switches: Switches) -> None:
    app.queues.pause("default")
    job = app.enqueue("paint", [7])
    page.goto(f"/jobs/{job.id}")
    expect(page.get_by_role("heading", level=1)).to_have_text("paint ready")

    app.queues.resume("default")
    expect(page.get_by_role("heading", level=1)).to_have_text("paint running")
    switches.words.put("the third board is dry")

    expect(page.get_by_label("Log")).to_contain_text("the third board is dry")
    assert job.state is JobState.RUNNING


def test_a_running_job_is_cancelled(page: Page, app: Mainspring, worker: Node) -> None:
    job = app.enqueue("paint", [7])
    page.goto(f"/jobs/{job.id}")
    expect(page.get_by_role("heading", level=1)).to_have_text("paint running")
    expect(page.get_by_role("progressbar", name="painting: 1 of 7")).to_be_visible()

    page.get_by_role("button", name="Cancel").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("paint cancelled")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.get_by_role("button", name="Replay")).to_be_visible()
    assert job.state is JobState.CANCELLED


def test_a_job_is_paused_and_resumed(page: Page, app: Mainspring, worker: Node, switches: Switches) -> None:
    job = app.enqueue("paint", [7])
    page.goto(f"/jobs/{job.id}")
    expect(page.get_by_role("heading", level=1)).to_have_text("paint running")

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("paint paused")
    expect(page.get_by_role("heading", name="Why it does not run")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    switches.go.set()

    expect(page.get_by_role("heading", level=1)).to_have_text("paint succeeded")
    expect(page.get_by_text("7 boards painted")).to_be_visible()


def test_many_are_cancelled_and_replayed_with_a_count_first(page: Page, app: Mainspring, switches: Switches) -> None:
    jobs = [app.enqueue("import_prices", [name], run_after="1h") for name in ("Acme", "Beta", "Gamma")]
    page.goto("/jobs")

    for job in jobs[:2]:
        page.get_by_role("row").filter(has_text=str(job.id)[-8:]).get_by_role("checkbox").check()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cancel 2 jobs?")
    assert {job.state for job in jobs} == {JobState.SCHEDULED}
    page.get_by_label("Why").fill("ordered twice")
    page.get_by_role("button", name="Cancel 2").click()

    expect(page.get_by_role("status")).to_have_text("2 jobs cancelled.")
    assert [job.state for job in jobs] == [JobState.CANCELLED, JobState.CANCELLED, JobState.SCHEDULED]

    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Replay 2 jobs?")
    expect(page.get_by_text("1 of those chosen is in no state for that")).to_be_visible()
    page.get_by_role("button", name="Replay 2").click()

    expect(page.get_by_role("status")).to_have_text("2 jobs replayed.")
    assert JobState.CANCELLED not in {job.state for job in jobs}


def test_what_somebody_has_chosen_stays_while_others_come(page: Page, app: Mainspring) -> None:
    chosen = app.enqueue("import_prices", ["Acme"], run_after="1h")
    page.goto("/jobs")
    box = page.get_by_role("checkbox", name=re.compile(str(chosen.id)[-8:]))
    box.check()

    with page.expect_response(lambda answer: answer.url.endswith("/jobs") and answer.request.resource_type == "fetch"):
        app.enqueue("import_prices", ["Beta"], run_after="1h")
    expect(box).to_be_checked()
    box.uncheck()
    page.get_by_role("heading", level=1).click()
    app.enqueue("import_prices", ["Gamma"], run_after="1h")

    expect(page.get_by_role("row")).to_have_count(4)


@pytest.mark.parametrize("where", ["/", "/jobs"])
def test_what_happens_is_shown_without_loading_the_page_again(open_page: Opener, app: Mainspring, where: str) -> None:
    page = open_page()
    page.goto(where)
    page.evaluate("window.loadedOnce = true")
    app.enqueue("import_prices", ["Acme"], queue="freight")

    expect(page.get_by_text("freight").first).to_be_visible()
    assert page.evaluate("window.loadedOnce") is True
