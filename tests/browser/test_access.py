"""Who somebody is: he logs in and out, sees what is his team's, and no button for what he may not; by keyboard, too."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from mainspring import JobState, Mainspring
from mainspring.node import Node
from tests.browser.conftest import Opener
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def log_in(page: Page, token: str) -> None:
    page.goto("/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def test_somebody_logs_in_by_token_and_out(open_page: Opener, app: Mainspring) -> None:
    token, _ = app.tokens.create("Ada", {"acme": "operator"})
    job = app.within("acme").enqueue("import_prices", ["Acme"])
    page = open_page(forgiven={401})
    page.goto(f"/jobs/{job.id}")

    page.get_by_label("Token").fill(token[:-1])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("expected a token that is known")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("import_prices ready")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    page.goto(f"/jobs/{job.id}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")


def test_a_viewer_sees_no_button_that_he_may_not_use(page: Page, app: Mainspring) -> None:
    team = app.within("acme")
    job = team.enqueue("import_prices", ["Acme"])
    token, _ = app.tokens.create("auditor", {"acme": "viewer"})
    log_in(page, token)
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link", name="Jobs")).to_be_visible()
    for name in ("Limits", "Tokens", "Audit"):
        expect(pages.get_by_role("link", name=name)).to_have_count(0)

    for address in ("/jobs", f"/jobs/{job.id}", "/schedules", "/workflows", "/dead", "/queues", "/alerts"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("main").get_by_role("checkbox")).to_have_count(0)
        offered = page.get_by_role("main").get_by_role("button").all_inner_texts()
        assert set(offered) <= {"Find"}, address


def test_a_team_is_switched(page: Page, app: Mainspring) -> None:
    token, _ = app.tokens.create("Ada", {"acme": "operator", "beta": "viewer"})
    app.within("acme").enqueue("import_prices", ["Acme"], queue="anvils")
    app.within("beta").enqueue("import_prices", ["Beta"], queue="boots")
    log_in(page, token)
    expect(page.get_by_role("link", name="anvils")).to_be_visible()
    expect(page.get_by_role("link", name="boots")).to_have_count(0)

    page.get_by_label("Team").fill("beta")
    page.get_by_role("button", name="Switch").click()

    expect(page.get_by_role("link", name="boots")).to_be_visible()
    expect(page.get_by_role("link", name="anvils")).to_have_count(0)
    page.get_by_label("Team").fill("gamma")
    page.get_by_role("button", name="Switch").click()
    expect(page.get_by_role("status")).to_have_text("Nothing is known of a team named gamma; this is beta.")


def test_each_window_stays_in_the_team_that_it_shows(page: Page, app: Mainspring) -> None:
    token, _ = app.tokens.create("Ada", {"acme": "operator", "beta": "operator"})
    acme, beta = app.within("acme"), app.within("beta")
    acme.enqueue("import_prices", ["Acme"], queue="anvils")
    first = beta.enqueue("import_prices", ["Beta"], queue="boots")
    log_in(page, token)
    expect(page.get_by_role("link", name="anvils")).to_be_visible()
    other = page.context.new_page()
    other.goto("/jobs?team=beta")
    expect(other.get_by_role("cell", name="boots")).to_have_count(1)

    later = beta.enqueue("import_prices", ["Beta"], queue="boots")
    expect(other.get_by_role("cell", name="boots")).to_have_count(2)
    page.goto("/jobs")
    expect(page.get_by_role("cell", name="anvils")).to_have_count(1)
    expect(page.get_by_label("Team").first).to_have_value("acme")
    other.get_by_role("checkbox", name="All that fit").check()
    other.get_by_role("button", name="Cancel").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Cancel 2 jobs?")
    other.get_by_role("button", name="Cancel 2").click()
    expect(other.get_by_role("status")).to_have_text("2 jobs cancelled.")

    acme.enqueue("import_prices", ["Acme"], queue="anvils")
    expect(page.get_by_role("cell", name="anvils")).to_have_count(2)
    assert (first.state, later.state) == (JobState.CANCELLED, JobState.CANCELLED)
    assert {job.state for job in acme.jobs()} == {JobState.READY}


def focused(page: Page) -> Locator:
    return page.locator(":focus")


def tab_to(page: Page, wanted: Locator) -> None:
    """Go there by keyboard, and see on the way that one always sees where one is."""
    for _ in range(60):
        page.keyboard.press("Tab")
        outline = focused(page).evaluate(
            "one => getComputedStyle(one).outlineStyle + getComputedStyle(one).outlineWidth"
        )
        assert outline.startswith("solid"), outline
        if wanted.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError("it can't be reached by keyboard")


def test_a_job_is_cancelled_by_keyboard_alone(page: Page, app: Mainspring, worker: Node) -> None:
    token, _ = app.tokens.create("Ada", {"*": "admin"})
    job = app.enqueue("paint", [7])
    until_running(app)
    page.goto("/login")
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Overview")).to_be_visible()

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    tab_to(page, page.get_by_role("link", name=str(job.id)[-8:]).first)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("paint running")
    tab_to(page, page.get_by_role("button", name="Cancel"))
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("paint cancelled")
    assert job.state is JobState.CANCELLED


def until_running(app: Mainspring) -> None:
    until(lambda: app.jobs(state=JobState.RUNNING))
