"""Alerts and notifications on the dashboard: how they stand, added by forms, tried and removed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring import Mainspring
from mainspring.alerts import age, dead, depth, error_rate, lag, missed_schedules, missing_workers, stuck
from mainspring.model.alert import RULES, Depth, ErrorRate, Rule
from mainspring.model.channel import Email, Event, Webhook
from mainspring.web.rules import KINDS, fields_of, in_words
from tests.web.conftest import Visitor
from tests.web.test_jobs import PAYLOAD

HOOK = "https://chat.example.org/T00/B00/hidden-path"


def test_an_empty_place_says_what_to_do_next(visitor: Visitor) -> None:
    page = visitor(acme="admin").get("/alerts").text

    assert "No alerts yet" in page
    assert "Nobody is told" in page


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (stuck("2h", task="greet"), "a job of task greet runs for longer than 2h"),
        (lag(), "what is due is not made ready within 30s"),
        (depth("mail", 1), "more than 1 job waiting in queue mail"),
        (age("mail"), "a job of queue mail waits for longer than 10m"),
        (
            error_rate(0.125, queue="mail"),
            "more than 12.5% of the jobs in queue mail that ended within 10m failed, of 20 or more",
        ),
        (dead(), "any job failed for good within 1h"),
        (dead(5), "more than 5 jobs failed for good within 1h"),
        (missing_workers(), "fewer than 1 worker for a queue in which jobs are ready"),
        (missing_workers("mail", 2), "fewer than 2 workers for queue mail"),
        (missed_schedules(), "a schedule missed ticks within 1h, or the success that it should have had"),
    ],
)
def test_a_rule_is_told_in_words(rule: Rule, words: str) -> None:
    assert in_words(rule) == words


def test_every_kind_of_rule_has_a_form(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor(acme="operator")

    assert set(KINDS) == set(RULES)
    for kind in KINDS:
        page = browser.get("/alerts/add", params={"kind": kind})
        assert page.status_code == 200
        given = {one.name: one.default or "mail" for one in fields_of(kind)}
        assert all(f'name="{name}"' in page.text for name in given)
        assert browser.send_form("/alerts/add", kind=kind, alert=f"my-{kind}", **given).status_code == 303
    assert len(app.within("acme").alerts.list()) == len(KINDS)
    assert browser.get("/alerts/add", params={"kind": "weather"}).status_code == 422


def test_an_alert_is_added_shown_and_removed_which_asks_first(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor(acme="operator")
    given = {"kind": "error_rate", "alert": "errors", "above": "5%", "over": "", "at_least": "7", "every": "1m"}

    added = browser.send_form("/alerts/add", **given, hold="5m", to="ops@example.org, b@example.org", url=HOOK)
    alert = app.within("acme").alerts.get("errors")
    assert added.headers["location"] == "/alerts"
    assert alert.definition.rule == ErrorRate(0.05, timedelta(minutes=10), 7)
    assert (alert.definition.every, alert.definition.hold) == (timedelta(minutes=1), timedelta(minutes=5))
    assert alert.definition.notify == (Webhook(HOOK), Email(["ops@example.org", "b@example.org"]))
    page = browser.get("/alerts").text
    assert "more than 5% of the jobs" in page
    assert "2 channels" in page
    assert "hidden-path" not in page
    asked = browser.get("/alerts/remove", params={"alert": "errors"}).text
    assert "Remove alert errors?" in asked
    assert "hidden-path" not in asked
    browser.send_form("/alerts/remove", alert="errors")

    assert not app.within("acme").alerts.list()
    assert browser.send_form("/alerts/remove", alert="errors").status_code == 404
    assert [record.action for record in app.audit.list()] == ["alert.remove", "alert.put"]
    assert "hidden-path" not in app.audit.list()[1].details


def test_what_is_there_is_defined_anew_only_if_that_is_meant(visitor: Visitor, app: Mainspring) -> None:
    app.alerts.add("mail", depth("mail", 5), notify=[Email("ops@example.org")])
    browser = visitor()
    given = {"kind": "depth", "alert": "mail", "queue": "mail", "above": "9"}

    refused = browser.send_form("/alerts/add", **given)
    assert (refused.status_code, "is there already" in refused.text) == (422, True)
    assert app.alerts.get("mail").definition.rule == Depth("mail", 5)
    assert browser.send_form("/alerts/add", **given, anew="yes").status_code == 303
    assert app.alerts.get("mail").definition.rule == Depth("mail", 9)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "weather"},
        {"kind": "depth", "above": "5"},
        {"kind": "depth", "queue": "mail", "above": "many"},
        {"kind": "age", "queue": "mail", "above": "0s"},
        {"kind": "error_rate", "above": "half"},
        {"kind": "error_rate", "above": "100%"},
        {"kind": "dead", "every": "1ms"},
        {"kind": "dead", "alert": "@acme/x"},
        {"kind": "dead", "alert": ""},
        {"kind": "dead", "to": "nobody"},
        {"kind": "dead", "url": "hidden-path"},
    ],
)
def test_what_makes_no_sense_is_refused(visitor: Visitor, app: Mainspring, fields: dict[str, str]) -> None:
    answer = visitor().send_form("/alerts/add", **{"alert": "mine", **fields})

    assert (answer.status_code, "expected" in answer.text) == (422, True)
    assert "hidden-path" not in answer.text
    assert "mine" not in [alert.id for alert in app.alerts.list()]


def test_who_may_do_it_everywhere_rules_what_looks_at_everybodys_jobs(visitor: Visitor, app: Mainspring) -> None:
    app.within("acme").alerts.add("theirs", dead())
    app.alerts.add("all", dead())

    page = visitor("operator").get("/alerts").text
    assert "alert=all" in page
    assert "theirs" in page
    assert "alert=theirs" not in page
    team = visitor("operator").get("/alerts", params={"team": "acme"}).text
    assert "alert=theirs" in team
    assert "alert=all" not in team
    watcher = visitor(acme="viewer").get("/alerts").text
    assert "theirs" in watcher
    assert "Remove" not in watcher
    assert "Add an alert" not in watcher
    assert "theirs" not in visitor(beta="admin").get("/alerts").text


def test_notifications_are_added_by_forms_and_removed_which_asks_first(visitor: Visitor, app: Mainspring) -> None:
    browser, told = visitor(acme="admin"), app.within("acme").notifications
    for kind in ("webhook", "email"):
        assert browser.get("/alerts/notifications/add", params={"kind": kind}).status_code == 200

    hook = {"kind": "webhook", "notification": "chat", "url": HOOK, "secret": "hidden-word"}
    browser.send_form("/alerts/notifications/add", **hook, on=["failure", "late"])
    mail = {"kind": "email", "notification": "ops", "to": "a@example.org b@example.org", "subject": "{task} is {state}"}
    browser.send_form("/alerts/notifications/add", **mail)

    assert told.get("chat").channel == Webhook(HOOK, on=[Event.FAILURE, Event.LATE], secret="hidden-word")
    assert told.get("ops").channel == Email(["a@example.org", "b@example.org"], subject="{task} is {state}")
    page = browser.get("/alerts").text
    for words in ("https://chat.example.org", "failure, late", "signed", "a@example.org, b@example.org"):
        assert words in page
    asked = browser.get("/alerts/notifications/remove", params={"notification": "chat"}).text
    assert "Remove notification chat?" in asked
    browser.send_form("/alerts/notifications/remove", notification="chat")
    assert [rule.id for rule in told.list()] == ["ops"]
    records = app.audit.list()
    assert [record.action for record in records] == ["notification.remove", *["notification.put"] * 2]
    for text in (page, asked, *(record.details for record in records)):
        assert "hidden-word" not in text


def test_a_notification_that_is_there_is_changed_only_if_that_is_meant(visitor: Visitor, app: Mainspring) -> None:
    app.notifications.add("ops", Email("ops@example.org"))
    browser = visitor()
    given = {"kind": "email", "notification": "ops", "to": "new@example.org"}

    assert browser.send_form("/alerts/notifications/add", **given).status_code == 422
    assert browser.send_form("/alerts/notifications/add", **given, anew="yes").status_code == 303
    assert app.notifications.get("ops").channel.place == "new@example.org"


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "pigeon"},
        {"kind": "webhook", "url": "hidden-path"},
        {"kind": "webhook", "url": "https://user:hidden@example.org/"},
        {"kind": "webhook", "url": HOOK, "on": "rain"},
        {"kind": "email", "to": "nobody"},
        {"kind": "email", "to": ""},
        {"kind": "email", "to": "a@example.org", "text": "{weather}"},
        {"kind": "email", "to": "a@example.org", "notification": "no name"},
    ],
)
def test_a_notification_that_makes_no_sense_is_refused(
    visitor: Visitor, app: Mainspring, fields: dict[str, str]
) -> None:
    answer = visitor().send_form("/alerts/notifications/add", **{"notification": "mine", **fields})

    assert (answer.status_code, "expected" in answer.text) == (422, True)
    assert "hidden" not in answer.text.replace('type="hidden"', "")
    assert not app.notifications.list()


def test_a_channel_is_tried_and_what_came_of_it_told(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAINSPRING_SMTP_URL", raising=False)
    app.within("acme").notifications.add("ops", Email("ops@example.org"))
    browser = visitor(acme="admin")

    failed = browser.send_form("/alerts/notifications/test", notification="ops")
    assert (failed.status_code, "did not arrive" in failed.text) == (502, True)
    assert app.audit.list()[0].action == "notification.test"
    monkeypatch.setattr("mainspring.notifications.send_test", lambda *_: {})
    tried = browser.send_form("/alerts/notifications/test", notification="ops")
    assert tried.headers["location"] == "/alerts"
    assert "has arrived" in browser.get("/alerts").text
    assert browser.send_form("/alerts/notifications/test", notification="nothing").status_code == 404


def test_notifications_are_for_admins_to_see(visitor: Visitor, app: Mainspring) -> None:
    app.within("acme").notifications.add("ops", Email("ops@example.org"))

    assert "ops@example.org" in visitor(acme="admin").get("/alerts").text
    assert "ops@example.org" not in visitor(acme="operator").get("/alerts").text
    assert "ops@example.org" not in visitor(beta="admin").get("/alerts").text
    assert visitor(acme="operator").get("/alerts/notifications/add").status_code == 403


def test_whatever_an_alert_says_is_text(visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    app.alerts.add("mail", dead())
    monkeypatch.setattr("mainspring.web.views.alerts.in_words", lambda _: PAYLOAD)
    browser = visitor()

    for page in (browser.get("/alerts"), browser.get("/alerts/remove", params={"alert": "mail"})):
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "{{7*7}}" in page.text
