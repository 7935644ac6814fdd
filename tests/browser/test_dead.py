"""Dead letters: somebody looks at what many jobs died of, and has a few try again before the rest."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from mainspring import JobState, Mainspring
from mainspring.node import Node
from tests.browser.conftest import Opener
from tests.browser.tasks import Switches
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def died(app: Mainspring, count: int) -> None:
    for number in range(count):
        app.enqueue("import_prices", [f"supplier {number}"])
    until(lambda: len(app.jobs(state=JobState.FAILED)) == count)


def test_dead_letters_are_replayed_a_few_first(page: Page, app: Mainspring, worker: Node, switches: Switches) -> None:
    died(app, 6)
    page.goto("/dead")
    cause = page.get_by_role("row").filter(has_text="ConnectionError")
    expect(cause).to_have_count(1)
    expect(cause.get_by_role("cell", name="6", exact=True)).to_be_visible()
    cause.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ConnectionError")
    expect(page.get_by_label("Traceback")).to_contain_text("switches.check(")

    switches.fails = False
    page.get_by_label("Try first").fill("2")
    page.get_by_label("Rate of the others").fill("100/s")
    page.get_by_role("button", name="Replay 6").click()

    expect(page.get_by_role("region", name="Replay")).to_contain_text("6 of 6 replayed: 6 succeeded")
    assert {job.state for job in app.jobs(task="import_prices")} == {JobState.SUCCEEDED}
    page.get_by_role("link", name="Dead letters").first.click()
    expect(page.get_by_text("No dead letters")).to_be_visible()


def test_a_replay_stops_when_the_first_fail_again(page: Page, app: Mainspring, worker: Node) -> None:
    died(app, 6)
    page.goto("/dead")
    page.get_by_role("row").filter(has_text="ConnectionError").get_by_role("link").click()

    page.get_by_label("Try first").fill("2")
    page.get_by_role("button", name="Replay 6").click()

    expect(page.get_by_role("region", name="Replay")).to_contain_text("2 of 6 replayed: 0 succeeded, 2 failed again")
    expect(page.get_by_text("Stopped, because")).to_be_visible()
    expect(page.get_by_role("button", name="Replay 6")).to_be_visible()


def test_what_is_not_worth_it_is_discarded_with_a_count_first(open_page: Opener, app: Mainspring, worker: Node) -> None:
    died(app, 3)
    page = open_page()
    page.goto("/dead")
    page.get_by_role("row").filter(has_text="ConnectionError").get_by_role("link").click()
    page.get_by_role("link", name="Discard 3…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Discard 3 dead letters?")
    page.get_by_role("button", name="Discard 3 dead letters").click()

    expect(page.get_by_role("status")).to_have_text("3 dead letters discarded.")
    expect(page.get_by_text("No dead letters")).to_be_visible()
