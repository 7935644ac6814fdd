"""Queues and paused tasks on the dashboard: seen, paused with a reason, and resumed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mainspring import Mainspring
from tests.web.conftest import Visitor
from tests.web.test_jobs import PAYLOAD


def test_an_empty_place_says_what_to_do_next(visitor: Visitor) -> None:
    assert "No queues yet" in visitor().get("/queues").text


def test_queues_show_what_waits_and_who_paused_them(visitor: Visitor, app: Mainspring) -> None:
    for n in range(3):
        app.enqueue("greet", [str(n)], queue="mail")
    app.enqueue("greet", ["later"], queue="mail", run_after="1h")
    app.queues.pause("slow", reason="no disk left", by="ada@desk")
    app.queues.set("slow", ageing="10m")
    app.queues.give("slow", "default")
    browser = visitor()

    page = browser.get("/queues").text
    for words in ("ada@desk: no disk left", "10m a point", "unserved", "queue=mail&amp;state=ready"):
        assert words in page
    one = browser.get("/queues/slow").text
    assert "ada@desk: no disk left" in one
    assert "a point is worth 10m of waiting" in one
    assert browser.get("/queues/mial").status_code == 404
    assert "did you mean" in browser.get("/queues/mial").text


def test_a_queue_is_paused_with_a_reason_and_resumed(visitor: Visitor, app: Mainspring) -> None:
    app.enqueue("greet", ["Ada"], queue="mail/out")
    browser = visitor(default="operator")

    paused = browser.send_form("/queues/mail/out/pause", reason="moving")
    (queue,) = app.queues.list()
    assert (paused.status_code, paused.headers["location"]) == (303, "/queues")
    assert queue.pause is not None
    assert (queue.pause.reason, queue.pause.by.startswith("token:")) == ("moving", True)
    assert "Queue mail/out is paused." in browser.get("/queues").text
    browser.send_form("/queues/mail/out/resume")

    assert not app.queues.list()[0].paused
    assert "goes on" in browser.get("/queues").text
    browser.send_form("/queues/mail/out/resume")
    assert "was not paused" in browser.get("/queues").text
    assert [record.action for record in app.audit.list()] == ["queue.resume", "queue.resume", "queue.pause"]
    assert app.audit.list()[2].details == '{"reason":"moving"}'


@pytest.mark.parametrize(("said", "ageing"), [("10m", timedelta(minutes=10)), ("", None), ("off", None)])
def test_ageing_is_set(visitor: Visitor, app: Mainspring, said: str, ageing: timedelta | None) -> None:
    app.enqueue("greet", ["Ada"])
    app.queues.set("default", ageing="1h")

    assert visitor().send_form("/queues/default/set", ageing=said).status_code == 303
    assert app.queues.list()[0].ageing == ageing
    assert app.audit.list()[0].action == "queue.set"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/queues/default/set", {"ageing": "soon"}),
        ("/queues/default/set", {"ageing": "1ms"}),
        ("/queues/no name/pause", {}),
        ("/queues/default/pause", {"reason": "x" * 2_001}),
        ("/tasks/pause", {"task": "gret"}),
        ("/tasks/resume", {}),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_on_record(
    visitor: Visitor, app: Mainspring, path: str, fields: dict[str, str]
) -> None:
    answer = visitor().send_form(path, **fields)

    assert (answer.status_code, 'role="alert"' in answer.text) == (422, True)
    assert not app.audit.list()


def test_a_team_rules_its_own_queues_only(visitor: Visitor, app: Mainspring) -> None:
    app.queues.give("own", "acme")
    app.queues.give("theirs", "beta")
    app.within("acme").enqueue("greet", ["Ada"])
    browser = visitor(acme="operator")

    page = browser.get("/queues").text
    assert 'href="/queues/own">Pause' in page
    assert 'href="/queues/default">Pause' not in page
    assert "theirs" not in page
    assert "ruled by operators of team default" in browser.get("/queues/default").text
    assert browser.get("/queues/theirs").status_code == 404
    assert browser.send_form("/queues/default/pause").status_code == 403
    assert browser.send_form("/queues/own/pause").status_code == 303


def test_tasks_are_paused_for_the_whole_fleet(visitor: Visitor, app: Mainspring) -> None:
    operator = visitor(default="operator")

    assert operator.send_form("/tasks/pause", task="greet", reason="bank holiday").status_code == 303
    page = operator.get("/queues").text
    assert "bank holiday" in page
    assert 'action="/tasks/resume"' in page
    watcher = visitor(default="viewer").get("/queues").text
    assert "bank holiday" in watcher
    assert "/tasks/" not in watcher
    assert "bank holiday" not in visitor(acme="admin").get("/queues").text
    operator.send_form("/tasks/resume", task="greet")

    assert not app.paused_tasks.list()
    assert [record.action for record in app.audit.list()] == ["task.resume", "task.pause"]


def test_whatever_people_wrote_is_text(visitor: Visitor, app: Mainspring) -> None:
    app.queues.pause("mail", reason=PAYLOAD, by=PAYLOAD)
    app.paused_tasks.pause("greet", reason=PAYLOAD, by=PAYLOAD)

    for path in ("/queues", "/queues/mail"):
        page = visitor().get(path).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "{{7*7}}" in page
