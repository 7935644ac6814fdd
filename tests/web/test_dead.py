"""Dead letters on the dashboard: read by cause, replayed with care, and given up."""

from __future__ import annotations

import json
import re
import threading

import httpx
import pytest

from mainspring import JobState, Mainspring, Retry
from mainspring.api.problems import Problem
from mainspring.model.dead import Replayed
from mainspring.replay import Halt, Progress
from mainspring.testing import drain
from mainspring.web.replays import Replays
from tests.support.waiting import until
from tests.web.conftest import Browser, Visitor
from tests.web.test_jobs import PAYLOAD

HOW = {"canary": "5", "rate": "1000/s", "stop_at": "20", "patch": "", "reason": "mended"}


@pytest.fixture
def fault(app: Mainspring) -> dict[str, bool]:
    """What decides whether jobs of the task `shaky` fail."""
    state = {"there": True}

    @app.task(retry=Retry(max_attempts=1))
    def shaky(number: int, mended: bool = False) -> int:
        if state["there"] and not mended:
            raise ConnectionError(f"no route to host {number}")
        return number

    return state


def die(app: Mainspring, count: int) -> str:
    """Make dead letters of one cause, and return their group."""
    for number in range(count):
        app.enqueue("shaky", [number])
    drain(app)
    return app.dead.groups(task="shaky")[0].fingerprint


def meant(browser: Browser, group: str) -> str:
    """Return what a form says of when the letters died that were counted in it."""
    (instant,) = re.findall('name="finished_until" value="(.+?)"', browser.get(f"/dead/{group}/discard").text)
    return str(instant)


def replay(browser: Browser, group: str, **changes: str) -> httpx.Response:
    return browser.send_form(f"/dead/{group}/replay", **{**HOW, "finished_until": meant(browser, group), **changes})


def over(browser: Browser, group: str) -> bool:
    return "Last replay" in browser.get(f"/dead/{group}").text


def test_an_empty_place_says_what_it_is_for(visitor: Visitor) -> None:
    assert "No dead letters" in visitor().get("/dead").text
    assert "take away some of it" in visitor().get("/dead", params={"task": "nothing"}).text
    assert visitor().get("/dead/abcdef").status_code == 404


def test_causes_are_listed_and_found_by_task(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app, 3)
    app.enqueue("fail")
    drain(app)

    page = visitor().get("/dead").text
    assert f"/dead/{group}" in page
    assert "no luck" in page
    found = visitor().get("/dead", params={"task": "shaky"}).text
    assert '<td class="number">3</td>' in found
    assert "no luck" not in found


def test_a_cause_is_read_page_by_page(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app, 60)
    browser = visitor()

    first = browser.get(f"/dead/{group}").text
    older = first.split('rel="next" href="')[1].split('"')[0]
    second = browser.get(older).text

    assert "Traceback (most recent call last)" in first
    assert [page.count('href="/jobs/') for page in (first, second)] == [50, 10]
    assert browser.get(f"/dead/{group}", params={"before": "x"}).status_code == 422


def test_letters_are_replayed_while_others_look(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    team = app.within("acme")
    group = die(team, 8)
    fault["there"] = False
    browser = visitor(acme="operator")

    answer = replay(browser, group)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dead/{group}")
    page = browser.get(f"/dead/{group}").text
    assert "Replay under way" in page
    assert "8 dead letters has begun" in page
    assert replay(browser, group).status_code == 409
    with app.worker():
        until(lambda: over(browser, group))

    page = browser.get(f"/dead/{group}").text
    assert "8 of 8 replayed: 8 succeeded, 0 failed again" in page
    assert "No dead letter has this cause any more" in page
    assert "has begun" not in page
    assert "Last replay" not in visitor(beta="admin").get(f"/dead/{group}").text
    _, entry = (one for one in app.audit.list() if one.action == "dead.replay")
    told = json.loads(entry.details or "{}")
    assert (entry.target, told["found"], told["reason"]) == (group, 8, "mended")


def test_a_replay_stops_when_the_canary_fails(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app, 20)
    browser = visitor()
    with app.worker():
        replay(browser, group)
        until(lambda: over(browser, group))

    assert "Stopped, because" in browser.get(f"/dead/{group}").text
    assert app.dead.count(group) == 20


def test_a_person_stops_a_replay(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app, 20)
    browser = visitor()
    replay(browser, group)

    stopped = browser.send_form(f"/dead/{group}/stop")

    assert "what was replayed by then goes on" in browser.get(stopped.headers["location"]).text
    assert "Stopped, because anybody on this machine has stopped it." in browser.get(f"/dead/{group}").text
    assert app.dead.count(group) == 15
    assert app.audit.list()[0].action == "dead.stop"
    assert "No replay of it" in browser.get(browser.send_form(f"/dead/{group}/stop").headers["location"]).text


def test_arguments_are_changed_on_the_way(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app, 2)
    browser = visitor()
    with app.worker():
        replay(browser, group, patch='{"mended": true}')
        until(lambda: over(browser, group))

    assert {job.state for job in app.jobs(task="shaky")} == {JobState.SUCCEEDED}


@pytest.mark.parametrize(
    "wrong",
    [
        {"canary": "many"},
        {"canary": "99999"},
        {"rate": "fast"},
        {"stop_at": "200"},
        {"stop_at": "-1"},
        {"patch": "[1]"},
        {"patch": "{"},
        {"patch": '{"no_argument": 1}'},
        {"finished_until": ""},
        {"finished_until": "2026-11-15T09:00:00"},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_nothing_replayed(
    visitor: Visitor, app: Mainspring, fault: dict[str, bool], wrong: dict[str, str]
) -> None:
    group = die(app, 1)

    answer = replay(visitor(), group, **wrong)

    assert answer.status_code == 422
    assert app.dead.count(group) == 1


def test_letters_are_discarded_when_that_is_meant(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app, 3)
    browser = visitor()

    asked = browser.get(f"/dead/{group}/discard").text
    assert "Discard 3 dead letters?" in asked
    assert app.dead.count(group) == 3
    done = browser.send_form(f"/dead/{group}/discard", finished_until=meant(browser, group), reason="test data")

    assert "3 dead letters discarded." in browser.get(done.headers["location"]).text
    assert {job.state for job in app.jobs(task="shaky")} == {JobState.CANCELLED}
    assert app.audit.list()[0].action == "dead.discard"


def test_what_dies_while_somebody_makes_up_his_mind_is_left_alone(
    visitor: Visitor, app: Mainspring, fault: dict[str, bool]
) -> None:
    group = die(app, 1)
    browser = visitor()
    shown = browser.get(f"/dead/{group}").text
    asked = browser.get(f"/dead/{group}/discard").text
    (until,) = {*re.findall('name="finished_until" value="(.+?)"', shown + asked)}
    die(app, 4)

    done = browser.send_form(f"/dead/{group}/discard", finished_until=until)

    assert "Discard 1 dead letter?" in asked
    assert "1 dead letter discarded." in browser.get(done.headers["location"]).text
    assert app.dead.count(group) == 4
    replay(browser, group, finished_until=until)
    assert "0 of 0 replayed" in browser.get(f"/dead/{group}").text
    assert app.dead.count(group) == 4


def test_a_group_has_one_replay_at_a_time_however_it_is_named(
    visitor: Visitor, app: Mainspring, fault: dict[str, bool]
) -> None:
    group = die(app, 20)
    browser = visitor()
    names = (group, group[:8], group.upper())

    answers = [replay(browser, name) for name in names]

    assert [answer.status_code for answer in answers] == [303, 409, 409]
    assert answers[0].headers["location"] == f"/dead/{group}"
    assert ["Replay under way" in browser.get(f"/dead/{name}").text for name in names] == [True] * 3
    assert browser.send_form(f"/dead/{group[:8]}/stop").headers["location"] == f"/dead/{group}"
    assert app.dead.count(group) == 15


def test_no_more_replays_are_under_way_at_once_than_there_is_room_for() -> None:
    replays, begun = Replays(), threading.Semaphore(0)

    def work(tell: Progress, halt: Halt) -> Replayed:
        begun.release()
        while halt() is None:
            threading.Event().wait(0.01)
        return Replayed(found=0)

    for number in range(4):
        replays.start("default", f"group {number}", work)
    with pytest.raises(Problem) as refused:
        replays.start("acme", "group 4", work)
    first = replays.get("default", "group 0")
    assert first is not None
    first.stop("enough")
    first.wait(60)
    replays.start("acme", "group 4", work)
    replays.close()

    assert refused.value.status_code == 429
    assert begun._value == 5


def test_who_may_not_sees_no_button(visitor: Visitor, app: Mainspring, fault: dict[str, bool]) -> None:
    group = die(app.within("acme"), 1)

    for role, shown in (("submitter", False), ("operator", True)):
        page = visitor(acme=role).get(f"/dead/{group}").text
        assert (f"/dead/{group}/replay" in page) is shown
        assert (f"/dead/{group}/discard" in page) is shown
    assert visitor(beta="admin").get(f"/dead/{group}").status_code == 404


def test_whatever_a_letter_says_is_text(visitor: Visitor, app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def say(words: str) -> None:
        raise ValueError(words)

    app.enqueue("say", [PAYLOAD])
    drain(app)
    group = app.dead.groups(task="say")[0].fingerprint

    for path in ("/dead", f"/dead/{group}", f"/dead/{group}/discard"):
        page = visitor().get(path).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert not re.search(r"alert\(1\)</script>", page)


def test_a_server_that_stops_takes_its_replays_along(app: Mainspring, fault: dict[str, bool]) -> None:
    group, replays = die(app, 3), Replays()
    under_way = replays.start(
        "default", group, lambda tell, halt: app.dead.replay(group=group, progress=tell, halt=halt)
    )

    replays.close()

    assert under_way.over
    assert under_way.report is not None
    assert under_way.report.stopped == "the server has stopped"
