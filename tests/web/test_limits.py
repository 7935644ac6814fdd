"""Limits and breakers on the dashboard: how they stand, released, tripped and reset."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from mainspring import Breaker, JobState, Limit, Mainspring
from mainspring.model.breaker import Phase
from mainspring.testing import drain
from tests.support.waiting import until
from tests.web.conftest import Visitor
from tests.web.test_jobs import PAYLOAD

KEY = " a b/c?d=1&e#f "


def test_an_empty_place_says_what_to_do_next(visitor: Visitor) -> None:
    page = visitor().get("/limits").text

    assert "No job has come to a limit lately" in page
    assert "No breaker has been tripped" in page


def test_limits_show_what_they_allow_and_who_waits_and_are_released(visitor: Visitor, app: Mainspring) -> None:
    @app.task(limits=[Limit("tenant:{name}", rate="1/h")])
    def mail(name: str) -> None:
        pass

    jobs = [mail.enqueue(KEY) for _ in range(3)]
    with app.worker():
        until(lambda: sorted(job.state for job in jobs) == [JobState.BLOCKED] * 2 + [JobState.SUCCEEDED])
    browser = visitor(default="operator")
    page = browser.get("/limits").text
    address = f"/limits/release?key={quote(f'tenant:{KEY}')}"

    assert "1 every 60m, 1 together" in page
    assert f'action="{address}"'.replace("&", "&amp;") in page
    assert browser.send_form(address).headers["location"] == "/limits"
    assert "2 jobs of limit" in browser.get("/limits").text
    assert {job.state for job in jobs} == {JobState.SUCCEEDED, JobState.READY}
    assert (app.audit.list()[0].action, app.audit.list()[0].target) == ("limit.release", f"tenant:{KEY}")


def test_a_breaker_is_tripped_and_reset_which_asks_first(visitor: Visitor, app: Mainspring) -> None:
    @app.task(breaker=Breaker("smtp"))
    def mail() -> None:
        pass

    browser = visitor(default="operator")
    tripped = browser.send_form("/limits/breakers/trip", key="smtp", lasting="5m", reason="trial")
    jobs = [mail.enqueue() for _ in range(2)]
    with app.worker():
        until(lambda: {job.state for job in jobs} == {JobState.BLOCKED})

    page = browser.get("/limits").text
    assert tripped.status_code == 303
    assert "Breaker smtp is open for 5m." in page
    assert ": trial" in page
    asked = browser.get("/limits/breakers/reset", params={"key": "smtp"}).text
    assert "2 jobs wait for it" in asked
    assert app.breakers.get("smtp").phase is Phase.OPEN
    browser.send_form("/limits/breakers/reset?key=smtp", all="yes")

    drain(app)
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert app.breakers.get("smtp").phase is Phase.CLOSED
    assert [record.action for record in app.audit.list()] == ["breaker.reset", "breaker.trip"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/limits/release", {}),
        ("/limits/breakers/reset", {}),
        ("/limits/breakers/trip", {"lasting": "5m"}),
        ("/limits/breakers/trip", {"key": "smtp", "lasting": "0s"}),
        ("/limits/breakers/trip", {"key": "smtp", "lasting": "a while"}),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_on_record(
    visitor: Visitor, app: Mainspring, path: str, fields: dict[str, str]
) -> None:
    answer = visitor().send_form(path, **fields)

    assert (answer.status_code, "expected" in answer.text) == (422, True)
    assert not app.audit.list()


def test_they_are_the_whole_fleets(visitor: Visitor, app: Mainspring) -> None:
    app.breakers.trip("smtp")

    assert visitor(acme="admin").get("/limits").status_code == 403
    watcher = visitor(default="viewer").get("/limits").text
    assert "smtp" in watcher
    assert "/trip" not in watcher
    assert "Reset" not in watcher
    # The role counts that one has there, whatever team one looks at.
    assert visitor(default="operator", acme="viewer").get("/limits", params={"team": "acme"}).text.count("/trip") == 1


def test_whatever_people_wrote_is_text(visitor: Visitor, app: Mainspring) -> None:
    app.breakers.trip(PAYLOAD, reason=PAYLOAD, by=PAYLOAD)
    browser = visitor()

    for page in (browser.get("/limits"), browser.get("/limits/breakers/reset", params={"key": PAYLOAD})):
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "{{7*7}}" in page.text
