"""The audit log on the dashboard: page by page, and whether a page is as it was written."""

from __future__ import annotations

import sqlite3

import pytest

from mainspring import Mainspring
from mainspring.model.audit import Entry
from tests.web.conftest import Visitor
from tests.web.test_jobs import PAYLOAD


def test_an_empty_log_says_so(visitor: Visitor) -> None:
    assert "Nothing is on record" in visitor().get("/audit").text
    assert "Nothing earlier is on record" in visitor().get("/audit", params={"before": "1"}).text


def test_entries_are_shown_page_by_page_the_last_first(visitor: Visitor, app: Mainspring) -> None:
    app.audit.record([Entry("ada", "queue.pause", f"mail-{n}", details={"reason": f"why {n}"}) for n in range(60)])
    browser = visitor()

    first, second = browser.get("/audit").text, browser.get("/audit", params={"before": "11"}).text

    assert 'href="/audit?before=11"' in first
    assert "why 59" in first
    assert "why 10" in first
    assert "mail-9<" not in first
    assert first.index("mail-59") < first.index("mail-58")
    assert second.count("mail-") == 10
    assert 'rel="next"' not in second
    assert "none missing between them" in first
    assert "none missing between them" in second


@pytest.mark.parametrize(
    "deed",
    [
        "UPDATE mainspring_audit SET actor = 'eve' WHERE seq = 3",
        "DELETE FROM mainspring_audit WHERE seq = 2",
        "DELETE FROM mainspring_audit WHERE seq = 1",
    ],
)
def test_what_was_changed_or_removed_is_seen(visitor: Visitor, app: Mainspring, sqlite_url: str, deed: str) -> None:
    app.audit.record([Entry("ada", "queue.pause", f"mail-{n}") for n in range(5)])
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute(deed)

    page = visitor().get("/audit").text

    assert "does not follow the one before it" in page
    assert "none missing" not in page


def test_a_team_sees_its_own(visitor: Visitor, app: Mainspring) -> None:
    app.audit.record([Entry("ada", "queue.pause", team, team) for team in ("acme", "beta", "acme")])

    page = visitor(acme="admin").get("/audit").text

    assert "beta" not in page
    assert page.count("queue.pause") == 2
    assert "none missing" not in page
    assert visitor(acme="operator").get("/audit").status_code == 403


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "²"])
def test_what_is_no_number_is_refused(visitor: Visitor, before: str) -> None:
    assert visitor().get("/audit", params={"before": before}).status_code == 422


def test_whatever_is_on_record_is_text(visitor: Visitor, app: Mainspring) -> None:
    app.audit.record([Entry(PAYLOAD, "queue.pause", PAYLOAD, details={PAYLOAD: PAYLOAD, "more": [PAYLOAD]})])

    page = visitor().get("/audit").text

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "{{7*7}}" in page
