"""On a phone: what matters most is seen without moving sideways, and a form ends with its buttons."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from mainspring import Mainspring
from mainspring.model.alert import dead
from mainspring.node import Node
from tests.browser.conftest import Opener

pytestmark = pytest.mark.slow


@pytest.fixture
def phone(open_page: Opener) -> Page:
    return open_page(viewport={"width": 390, "height": 844})


def edges(part: Locator) -> dict[str, float]:
    found: dict[str, float] = part.evaluate("one => one.getBoundingClientRect().toJSON()")
    return found


@pytest.mark.parametrize("where", ["/jobs", "/jobs?team=*"])
def test_the_state_of_jobs_is_seen_beside_their_task(phone: Page, app: Mainspring, where: str) -> None:
    app.enqueue("import_prices", ["Acme"], run_after="1h")
    phone.goto(where)

    table = phone.get_by_role("group", name="Table")
    expect(table).to_be_visible()
    assert table.evaluate("one => one.scrollWidth > one.clientWidth")  # or there would be nothing to prove
    assert edges(table.get_by_text("scheduled", exact=True))["right"] <= edges(table)["right"]


@pytest.mark.parametrize(("where", "columns"), [("/alerts", [2, 3]), ("/workers", [2, 3, 6])])
def test_words_in_a_table_are_not_one_to_a_line(
    phone: Page, app: Mainspring, worker: Node, where: str, columns: list[int]
) -> None:
    app.alerts.add("letters", dead(1))
    phone.goto(where)

    cells = phone.get_by_role("row").nth(1).get_by_role("cell")
    expect(cells.first).to_be_visible()
    for column in columns:
        assert edges(cells.nth(column))["width"] >= 200


def test_a_schedule_is_saved_below_all_that_is_asked_of_it(phone: Page) -> None:
    phone.goto("/schedules/-/new")

    last = edges(phone.get_by_label("Notes"))["bottom"]
    for name in ("Save", "Preview"):
        assert edges(phone.get_by_role("button", name=name))["top"] > last
