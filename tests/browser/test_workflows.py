"""Workflows: somebody sees where one failed, and has it go on from there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from mainspring import JobState, Mainspring
from mainspring.node import Node
from tests.browser.tasks import Switches
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_a_workflow_goes_on_from_where_it_failed(page: Page, app: Mainspring, worker: Node, switches: Switches) -> None:
    with app.workflow("sales") as made:
        made.add("report", made.add("clean", made.add("gather")))
    run = made.enqueue()
    until(lambda: run.state is JobState.FAILED)
    page.goto("/")
    page.get_by_role("link", name="Workflows").click()
    page.get_by_role("row").filter(has_text="sales").get_by_role("link").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("sales failed")
    graph, times = (
        page.get_by_role("group", name="Jobs, and what comes after what"),
        page.get_by_role("group", name="When each job waited and ran"),
    )
    expect(graph.get_by_role("link")).to_have_count(3)
    expect(graph.get_by_role("link", name="clean")).to_contain_text("failed")
    expect(graph.get_by_role("link", name="report")).to_contain_text("cancelled")
    bars = times.locator("rect.ran")
    expect(bars).to_have_count(2)
    switches.fails = False
    failures = page.get_by_role("listitem").filter(has_text="there is no more soap")
    failures.get_by_role("button", name="Replay from here").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("sales succeeded")
    expect(graph.get_by_role("link", name="clean")).to_contain_text("succeeded")
    expect(graph.get_by_role("link", name="report")).to_contain_text("succeeded")
    expect(bars).to_have_count(3)
    expect(failures).to_have_count(0)
    graph.get_by_role("link", name="report").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("report succeeded")
    expect(page.get_by_role("link", name="clean")).to_be_visible()


def test_a_workflow_is_cancelled_with_a_count_first(page: Page, app: Mainspring) -> None:
    with app.workflow("sales") as made:
        made.add("report", made.add("clean", made.add("gather")))
    run = made.enqueue()
    page.goto(f"/workflows/{run.id}")

    page.get_by_role("link", name="Cancel…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cancel sales with 3 jobs?")
    page.get_by_role("button", name="Cancel 3 jobs").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("sales cancelled")
    assert run.state is JobState.CANCELLED
