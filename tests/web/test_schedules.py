"""Schedules on the dashboard: read, made by a form, held, fired, made up for, and removed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import httpx
import pytest
from msgspec import to_builtins

from mainspring import Mainspring, Webhook, after, at, cron, every
from mainspring.keys import new_key
from mainspring.model.schedule import Origin
from mainspring.testing import drain
from tests.web.conftest import Browser, Visitor

PAYLOAD = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}"
LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)
FORM = {"id": "mine", "task": "greet", "args": '["Ada"]', "kind": "cron", "expression": "0 9 * * mon-fri"}


def now() -> datetime:
    return datetime.now(UTC)


def shown(answer: httpx.Response) -> str:
    return unescape(answer.text)


def test_an_empty_place_says_what_to_do_next(visitor: Visitor) -> None:
    browser = visitor()

    assert "No schedules yet" in browser.get("/schedules").text
    assert "Nothing fires in the coming week" in browser.get("/schedules/-/heat").text
    assert "No tick is to come" in browser.get("/").text
    assert browser.get("/schedules/nothing").status_code == 404


def test_schedules_are_listed_page_by_page(visitor: Visitor, app: Mainspring) -> None:
    for number in range(30):
        app.schedules.add(f"s/{number:02}", "greet", cron("0 9 * * mon-fri", "Europe/Berlin"), args=["Ada"])
    app.schedules.pause("s/03", reason="the vendor is down", by="ada")
    browser = visitor()

    first = browser.get("/schedules")
    second = browser.get(unescape(first.text.split('rel="next" href="')[1].split('"')[0]))

    assert [page.text.count('<a href="/schedules/s/') for page in (first, second)] == [25, 5]
    for words in ("at 09:00 from Monday to Friday (Europe/Berlin)", "Paused by ada", "the vendor is down", "held"):
        assert words in first.text
    assert re.search(r"\d{4}-\d\d-\d\d 09:00 CES?T", first.text)
    assert 'rel="next"' not in second.text
    assert "No more schedules" in browser.get("/schedules", params={"after": "z"}).text


def test_one_that_has_had_no_success_is_overdue(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", at(now() - timedelta(hours=1)), args=["Ada"], expect_success_within="1s")

    for path in ("/schedules", "/schedules/s"):
        assert ">overdue<" in visitor().get(path).text


def test_a_schedule_shows_what_it_is_and_what_became_of_its_ticks(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("a/b.c:d", "greet", cron("30 2 * * *", "Europe/Berlin"), args=["Ada"], notes="ask Ada first")
    app.schedules.backfill("a/b.c:d", LONG_AGO, LONG_AGO + timedelta(days=3))
    job = app.schedules.trigger("a/b.c:d")
    browser = visitor()

    page = shown(browser.get("/schedules/a/b.c:d"))

    assert page.count(">backfilled<") == 3
    assert f'href="/jobs/{job.id}"' in page
    for words in ("At 02:30 every day (Europe/Berlin).", "ask Ada first", '["Ada"]', "by a call", "triggered: "):
        assert words in page
    assert len(re.findall(r"02:30 CES?T</td>", page)) >= 9
    older = browser.get("/schedules/a/b.c:d", params={"before": LONG_AGO.isoformat()})
    assert "No tick has come yet" in older.text
    assert browser.get("/schedules/a/b.c:d", params={"before": "nonsense"}).status_code == 422


def test_history_is_read_page_by_page(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", every("1m"), args=["Ada"])
    app.schedules.backfill("s", LONG_AGO, LONG_AGO + timedelta(hours=1))
    browser = visitor()

    first = browser.get("/schedules/s")
    second = browser.get(unescape(first.text.split('rel="next" href="')[1].split('"')[0]))

    assert [page.text.count(">backfilled<") for page in (first, second)] == [50, 10]


def test_a_schedule_is_paused_with_a_reason_and_resumed(visitor: Visitor, app: Mainspring) -> None:
    app.within("acme").schedules.add("s", "greet", every("1h"), args=["Ada"])
    browser = visitor(acme="operator")

    assert browser.send_form("/schedules/-/pause", schedule="s", reason="too loud").status_code == 303
    page = browser.get("/schedules/s").text
    assert "too loud" in page
    assert "/schedules/-/resume" in page
    assert "/schedules/-/pause" not in page
    assert app.audit.list()[0].details == '{"reason":"too loud"}'
    assert browser.send_form("/schedules/-/resume", schedule="s").status_code == 303

    assert not app.within("acme").schedules.get("s").paused
    assert [entry.action for entry in app.audit.list()[:2]] == ["schedule.resume", "schedule.pause"]


def test_a_schedule_is_triggered(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", every("1h"), args=["Ada"])

    answer = visitor().send_form("/schedules/-/trigger", schedule="s")
    drain(app)

    (job,) = app.jobs(task="greet")
    assert answer.headers["location"] == f"/jobs/{job.id}"
    assert app.audit.list()[0].action == "schedule.trigger"


def test_a_schedule_is_removed_after_one_was_asked(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", every("1h"), args=["Ada"])
    browser = visitor()

    asked = browser.get("/schedules/-/remove?schedule=s")
    assert "Remove 1 schedule?" in asked.text
    assert len(app.schedules.list()) == 1
    answer = browser.send_form("/schedules/-/remove", schedule="s")

    assert answer.headers["location"] == "/schedules"
    assert not app.schedules.list()
    assert app.audit.list()[0].action == "schedule.remove"
    assert browser.send_form("/schedules/-/remove", schedule="s").status_code == 404


def test_a_backfill_says_how_many_before_it_acts(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", cron("0 9 * * *", "Asia/Tokyo"), args=["Ada"])
    browser, today = visitor(), now()
    time = {"from": f"{today - timedelta(days=6):%Y-%m-%d}T09:00", "to": f"{today - timedelta(days=3):%Y-%m-%d}T09:00"}

    asked = browser.get("/schedules/-/backfill", params={"schedule": "s"} | time)
    assert "Backfill 3 ticks?" in asked.text
    assert not app.jobs()
    answer = browser.send_form("/schedules/-/backfill", schedule="s", **time)

    assert answer.headers["location"] == "/schedules/s"
    assert "Enqueued 3 jobs." in browser.get("/schedules/s").text
    assert {job.snapshot.tick.hour for job in app.jobs() if job.snapshot.tick} == {0}
    assert app.audit.list()[0].action == "schedule.backfill"
    browser.send_form("/schedules/-/backfill", schedule="s", **time)
    assert "Enqueued 0 jobs; 3 ticks had one already." in browser.get("/schedules/s").text
    ahead = {"from": "2100-01-01T00:00", "to": "2100-01-02T00:00"}
    assert "Nothing to backfill" in browser.get("/schedules/-/backfill", params={"schedule": "s"} | ahead).text


@pytest.mark.parametrize("time", [{}, {"from": "x", "to": "y"}, {"from": "2020-01-02", "to": "2020-01-01"}], ids=str)
def test_a_stretch_of_time_that_is_none_is_refused(visitor: Visitor, app: Mainspring, time: dict[str, str]) -> None:
    app.schedules.add("s", "greet", every("1h"), args=["Ada"])
    browser = visitor()

    asked, sent = (
        browser.get("/schedules/-/backfill", params={"schedule": "s"} | time),
        browser.send_form("/schedules/-/backfill", schedule="s", **time),
    )

    assert (asked.status_code, sent.status_code) == (422, 422)
    assert "expected" in asked.text


def test_too_many_ticks_are_refused_before_anything_is_made(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", every("1s"), args=["Ada"])
    answer = visitor().get("/schedules/-/backfill", params={"schedule": "s", "from": "2020-01-01", "to": "2021-01-01"})

    assert answer.status_code == 422
    assert "at most 10,000 ticks" in answer.text


# --- The form -----------------------------------------------------------------------------------------------


def test_a_schedule_is_made_by_the_form(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor(acme="operator")
    form = browser.get("/schedules/-/new").text
    assert '<option value="greet">' in form
    assert '<option value="mainspring.http">' in form
    more = {"tz": "Europe/Berlin", "overlap": "skip", "misfire": "catch_up", "grace": "2h", "jitter": "5m"}
    more |= {"expect_success_within": "1d", "notes": "one\r\ntwo", "queue": "mail", "priority": "high", "max_runs": "7"}
    more |= {"start": "2030-07-01T09:00", "end": "2031-07-01T09:00", "kwargs": '{"greeting": "Hi"}'}

    answer = browser.send_form("/schedules/-/new", **FORM, **more)

    assert (answer.status_code, answer.headers["location"]) == (303, "/schedules/mine")
    made = app.within("acme").schedules.get("mine").definition
    assert made.trigger == cron("0 9 * * mon-fri", "Europe/Berlin")
    assert (made.overlap, made.misfire, made.queue, made.priority) == ("skip", "catch_up", "mail", 10)
    assert (made.grace, made.jitter) == (timedelta(hours=2), timedelta(minutes=5))
    assert (made.expect_success_within, made.notes, made.max_runs) == (timedelta(days=1), "one\ntwo", 7)
    assert made.start == datetime(2030, 7, 1, 7, tzinfo=UTC)
    assert made.payload == '{"args":["Ada"],"kwargs":{"greeting":"Hi"}}'
    entry = app.audit.list()[0]
    assert (entry.action, entry.target, entry.team) == ("schedule.add", "mine", "acme")


@pytest.mark.parametrize(
    ("fields", "trigger"),
    [
        ({"kind": "every", "every": "15m"}, every("15m")),
        (
            {"kind": "every", "every": "15m", "counted_from": "2026-01-01T09:00", "tz": "Asia/Tokyo"},
            every("15m", datetime(2026, 1, 1, tzinfo=UTC)),
        ),
        ({"kind": "after", "after": "30s", "every": "nonsense"}, after("30s")),
        ({"kind": "at", "at": "2030-01-01T09:00", "tz": "Asia/Tokyo"}, at(datetime(2030, 1, 1, tzinfo=UTC))),
        ({"kind": "at", "at": "2030-01-01T09:00Z", "tz": "Asia/Tokyo"}, at(datetime(2030, 1, 1, 9, tzinfo=UTC))),
    ],
    ids=["every", "every from", "after", "at", "at by its own clocks"],
)
def test_every_kind_of_trigger_can_be_put_in(
    visitor: Visitor, app: Mainspring, fields: dict[str, str], trigger: object
) -> None:
    assert visitor().send_form("/schedules/-/new", **FORM | fields).status_code == 303
    assert app.schedules.get("mine").definition.trigger == trigger


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"id": ""}, "expected it to be filled in"),
        ({"id": "no good"}, "expected the id of a schedule to be"),
        ({"id": "taken"}, "expected an id that is not taken"),
        ({"task": "gret"}, "did you mean 'greet'?"),
        ({"args": "[1"}, "expected a JSON list like [1, 2], got: '[1'"),
        ({"args": "{}"}, "expected a JSON list"),
        ({"args": "[" * 5_000}, "expected a JSON list"),
        ({"kwargs": "[]"}, "expected a JSON object"),
        ({"kwargs": '{"nobody": 1}'}, "nobody"),
        ({"expression": "61 * * * *"}, '"61" is no minute'),
        ({"expression": ""}, "expected it to be filled in for this kind"),
        ({"tz": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
        ({"kind": "never"}, "expected a kind of trigger"),
        ({"kind": "every", "every": "0s"}, "expected every to be at least 0.1 s"),
        ({"kind": "at", "at": "tomorrow"}, "expected at to be a time like"),
        ({"grace": "soon"}, "expected grace to be a duration"),
        ({"jitter": "-1s"}, "expected jitter to be a duration"),
        ({"max_runs": "0"}, "expected max_runs to be a whole number from 1 on"),
        ({"max_runs": "9" * 5_000}, "whole number"),
        ({"priority": "urgent!"}, "expected priority to be"),
        ({"overlap": "explode"}, "expected overlap to be one of"),
        ({"start": "2030-02-02", "end": "2030-01-01"}, "expected end to come after start"),
        ({"notes": "x" * 3_000}, "expected notes to be text"),
    ],
    ids=str,
)
def test_mistakes_are_shown_at_the_form_and_what_was_put_in_is_kept(
    visitor: Visitor, app: Mainspring, fields: dict[str, str], sentence: str
) -> None:
    app.schedules.add("taken", "greet", every("1h"), args=["Ada"])
    answer = visitor().send_form("/schedules/-/new", **{"queue": "kept-queue"} | FORM | fields)

    assert answer.status_code == 422
    assert sentence in shown(answer)
    assert 'value="kept-queue"' in answer.text
    assert [one.id for one in app.schedules.list()] == ["taken"]
    assert not app.audit.list()


def test_a_team_that_may_have_no_more_is_told_so_at_the_form(visitor: Visitor, app: Mainspring) -> None:
    app.teams.set("acme", max_schedules=0)
    answer = visitor(acme="operator").send_form("/schedules/-/new", **FORM)

    assert answer.status_code == 429
    assert 'value="mine"' in answer.text
    assert not app.schedules.list()


def values(browser: Browser, path: str) -> dict[str, str]:
    """Return what the form at *path* is filled with, as a browser would send it."""
    page = browser.get(path).text.split('<form method="post" action="/schedules/')[1]
    found = dict(re.findall(r'<input[^>]*? ?name="(\w+)" value="([^"]*)"', page))
    found |= dict(re.findall(r'<textarea name="(\w+)"[^>]*>([^<]*)</textarea>', page))
    for name, options in re.findall(r'<select name="(\w+)"[^>]*>(.*?)</select>', page):
        found[name] = re.findall(r"<option selected>([^<]*)", options)[0]
    found["kind"] = re.findall(r'name="kind" value="(\w+)" checked', page)[0]
    return {name: unescape(value) for name, value in found.items() if name != "proof"}


@pytest.mark.parametrize(
    "trigger",
    [
        cron("*/5 9-17 * * mon-fri", "Europe/Berlin"),
        every("1h30m", datetime(2026, 1, 1, 9, 0, 0, 123, tzinfo=UTC)),
        after("90s"),
        at(datetime(2030, 1, 1, 9, tzinfo=UTC)),
    ],
    ids=str,
)
def test_to_save_what_the_form_shows_changes_nothing(visitor: Visitor, app: Mainspring, trigger: object) -> None:
    before = app.schedules.add(
        "a/b",
        "greet",
        trigger,  # type: ignore[arg-type]
        args=["Ada", "<b>\"'&"],
        queue="mail",
        priority=3,
        overlap="buffer_one",
        misfire="skip",
        grace="1h",
        jitter="2m",
        # The clocks of Berlin show this hour twice, and this is the second time.
        start=datetime(2029, 10, 28, 1, 30, tzinfo=UTC),
        end=datetime(2040, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
        max_runs=9,
        expect_success_within="3d",
        notes="one\ntwo",
        notify=[Webhook("https://example.org/hook")],
    )
    browser = visitor()

    answer = browser.send_form("/schedules/-/edit", **values(browser, "/schedules/-/edit?schedule=a/b"))

    assert answer.headers["location"] == "/schedules/a/b"
    assert to_builtins(app.schedules.get("a/b").definition) == to_builtins(before.definition)


def test_a_schedule_is_changed_by_the_form_whatever_id_is_sent(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", every("1h"), args=["Ada"])
    browser = visitor()

    answer = browser.send_form("/schedules/-/edit", schedule="s", **FORM | {"kind": "every", "every": "2h"})
    refused = browser.send_form("/schedules/-/edit", schedule="s", **FORM | {"expression": "nonsense"})

    assert (answer.status_code, refused.status_code) == (303, 422)
    assert 'action="/schedules/-/edit"' in refused.text
    assert [(one.id, one.definition.trigger) for one in app.schedules.list()] == [("s", every("2h"))]
    assert browser.send_form("/schedules/-/edit", schedule="nothing", **FORM).status_code == 404


IDS = ["new", "heat", "preview", "a/remove", "a/edit", "a/backfill", "_/x", "9"]


@pytest.mark.parametrize("schedule_id", IDS)
def test_a_schedule_has_a_page_whatever_its_id(visitor: Visitor, app: Mainspring, schedule_id: str) -> None:
    app.schedules.add(schedule_id, "greet", every("1h"), args=["Ada"], notes="this is the one")
    browser = visitor()
    listed = browser.get("/schedules").text

    page = browser.get(f"/schedules/{schedule_id}")
    browser.press(page, "/schedules/-/pause", schedule=schedule_id)

    assert f'href="/schedules/{schedule_id}"' in listed
    assert "this is the one" in page.text
    assert app.schedules.get(schedule_id).paused
    assert "this is the one" in browser.get("/schedules/-/edit", params={"schedule": schedule_id}).text


def test_one_that_is_defined_in_code_says_that_it_comes_back(visitor: Visitor, app: Mainspring) -> None:
    @app.schedule(every("1h"), id="coded")
    @app.task
    def coded() -> None: ...

    app.schedules.sync()
    assert app.schedules.get("coded").origin is Origin.CODE

    for path in ("edit", "remove"):
        assert "It is defined in code" in visitor().get(f"/schedules/-/{path}?schedule=coded").text


def test_a_preview_shows_words_and_times_and_saves_nothing(visitor: Visitor, app: Mainspring) -> None:
    browser = visitor()
    nightly = {"kind": "cron", "expression": "30 2 * * *", "tz": "Europe/Berlin", "start": "2030-03-30T00:00"}

    answer = browser.send_form("/schedules/-/preview", **nightly)

    assert answer.status_code == 200
    page = shown(answer)
    assert "It would fire at 02:30 every day (Europe/Berlin)." in page
    assert page.count(" CEST</td>") == 9
    assert "02:30 does not exist that day; runs right after the gap" in page
    assert 'value="30 2 * * *"' in page
    for fields in (
        {"kind": "cron", "expression": "nonsense"},
        {"kind": "every", "every": "1h", "id": "x", "task": "nobody"},
    ):
        wrong = browser.send_form("/schedules/-/preview", **fields)
        assert (wrong.status_code, "expected" in wrong.text or "nobody" in wrong.text) == (422, True)
    follows = browser.send_form("/schedules/-/preview", kind="after", after="1m")
    assert "depends on when the job before has ended" in follows.text
    past = browser.send_form("/schedules/-/preview", kind="at", at="2020-01-01T00:00")
    assert "it would never fire" in past.text
    assert not app.schedules.list()
    assert not app.audit.list()


def test_arguments_that_are_encrypted_must_be_written_again(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())

    @app.task(encrypt=True)
    def hidden(word: str = "") -> None: ...

    app.schedules.add("s", "hidden", every("1h"), args=["shibboleth"])
    browser = visitor()

    form = values(browser, "/schedules/-/edit?schedule=s")
    assert "shibboleth" not in str(form) + browser.get("/schedules/s").text
    kept = app.schedules.get("s").definition.payload
    assert browser.send_form("/schedules/-/edit", **form).status_code == 422
    assert app.schedules.get("s").definition.payload == kept
    assert browser.send_form("/schedules/-/edit", **form | {"kwargs": "{}"}).status_code == 303
    assert app.schedules.get("s").definition.payload != kept


# --- All together -------------------------------------------------------------------------------------------


def test_the_busy_hours_of_the_week_are_shown(visitor: Visitor, app: Mainspring) -> None:
    for number in range(12):
        app.schedules.add(f"s{number}", "greet", cron("0 9 * * mon"), args=["Ada"])
    app.schedules.add("quiet", "greet", cron("0 3 * * *"), args=["Ada"])

    page = visitor().get("/schedules/-/heat").text

    assert "Mon 09:00: up to 12 in a minute" in page
    assert "Tue 03:00: up to 1 in a minute" in page
    assert "Tue 04:00: up to 0 in a minute" in page
    assert "about as busy" not in page


def test_what_jitter_makes_an_average_is_no_count(visitor: Visitor, app: Mainspring) -> None:
    for number in range(5):
        app.schedules.add(f"s{number}", "greet", cron("0 9 * * mon"), args=["Ada"], jitter="4m")

    page = visitor().get("/schedules/-/heat").text

    assert "Mon 09:00: up to 2 in a minute" in page
    assert '<td class="number">about 1</td><td class="number">about 1</td>' in page
    assert "1.25" not in page


def test_hours_of_one_shade_are_said_to_be_alike(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("steady", "greet", cron("* * * * *"), args=["Ada"])

    page = visitor().get("/schedules/-/heat").text

    assert "Every hour is about as busy as any other: up to 1 in a minute." in page


def test_the_overview_shows_what_fires_next(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("later", "greet", every("100d"), args=["Ada"])
    app.schedules.add("sooner", "greet", every("1h"), args=["Ada"])
    app.within("acme").schedules.add("theirs", "greet", every("1h"), args=["Ada"])

    page = visitor(default="viewer").get("/").text.split("Next ticks")[1]

    assert page.index("/schedules/sooner") < page.index("/schedules/later")
    assert "theirs" not in page


def test_who_may_only_look_sees_no_button_and_nobody_what_is_another_teams(visitor: Visitor, app: Mainspring) -> None:
    app.within("acme").schedules.add("s", "greet", every("1h"), args=["Ada"])
    viewer = visitor(acme="viewer")

    pages = [viewer.get(path).text for path in ("/schedules", "/schedules/s")]
    assert not [word for word in ("/edit", "/trigger", "/pause", "/remove", "/new") for page in pages if word in page]
    assert viewer.get("/schedules/-/edit?schedule=s").status_code == 403
    beta = visitor(beta="admin")
    assert beta.get("/schedules/s").status_code == 404
    assert beta.send_form("/schedules/-/remove", schedule="s").status_code == 404
    assert "/schedules/s" not in beta.get("/schedules").text


def test_whatever_people_wrote_is_text(visitor: Visitor, app: Mainspring) -> None:
    app.schedules.add("s", "greet", cron("0 9 * * *"), args=[PAYLOAD], notes=PAYLOAD)
    app.schedules.pause("s", reason=PAYLOAD, by=PAYLOAD)
    browser = visitor()

    pages = [
        browser.get(path)
        for path in ("/schedules", "/schedules/s", "/schedules/-/edit?schedule=s", "/schedules/-/remove?schedule=s")
    ]
    pages.append(browser.get("/schedules/-/backfill", params={"schedule": "s", "from": PAYLOAD, "to": PAYLOAD}))
    wrong = dict.fromkeys((*FORM, "tz", "notes", "start", "grace", "priority", "max_runs", "queue"), PAYLOAD)
    pages += [browser.send_form(path, **wrong) for path in ("/schedules/-/new", "/schedules/-/preview")]

    for page in pages:
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
