"""Schedules: somebody makes one by the form, sees when it would fire, and then that it does."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from mainspring import Mainspring, every
from mainspring.node import Node
from tests.browser.conftest import Opener
from tests.browser.tasks import Switches

pytestmark = pytest.mark.slow


def test_a_schedule_is_made_by_the_form_and_fires(
    page: Page, app: Mainspring, worker: Node, switches: Switches
) -> None:
    switches.fails = False
    page.goto("/schedules")
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("Id", exact=False).first.fill("prices")
    page.get_by_label("Task").fill("import_prices")
    page.get_by_label("Arguments by name").fill('{"supplier": "Acme"}')
    page.get_by_label("Cron expression").fill("30 9 * * mon-fri")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Preview").click()

    shown = page.get_by_role("status")
    expect(shown).to_contain_text("It would fire at 09:30 from Monday to Friday")
    expect(shown.get_by_role("row")).to_have_count(1 + 10)
    expect(shown).to_contain_text("Nothing is saved yet.")

    page.get_by_label("At a fixed rate").check()
    page.get_by_label("Every").fill("1s")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("prices active")
    expect(page.get_by_text("Every second")).to_be_visible()
    fired = page.get_by_role("row").filter(has_text="fired")
    expect(fired.nth(1)).to_be_visible()
    fired.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("import_prices succeeded")


def test_mistakes_are_marked_where_they_are(open_page: Opener) -> None:
    page = open_page(forgiven={422})
    page.goto("/schedules/-/new")
    page.get_by_label("Task").fill("import_prices")
    page.get_by_label("Cron expression").fill("61 * * * *")
    page.get_by_role("button", name="Preview").click()

    field = page.get_by_label("Cron expression")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("61"))
    expect(field).to_have_value("61 * * * *")


def test_a_schedule_is_triggered_paused_and_resumed(page: Page, app: Mainspring) -> None:
    app.schedules.add("prices", "import_prices", every("1h"), kwargs={"supplier": "Acme"})
    page.goto("/schedules")
    page.get_by_role("link", name="prices").click()

    page.get_by_label("Why").fill("stocktaking")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("prices paused")
    expect(page.get_by_text("stocktaking")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("prices active")
    page.get_by_role("button", name="Trigger now").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("import_prices ready")
    expect(page.get_by_role("status")).to_contain_text("made out of turn")
