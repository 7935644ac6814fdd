"""Jobs on the dashboard: found, read, and put right."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import escape, unescape
from uuid import uuid4

import httpx
import pytest

from mainspring import Context, JobState, Mainspring
from mainspring.model.ids import made_at
from mainspring.store import control, inspect
from mainspring.testing import drain
from mainspring.web import forms
from mainspring.web.look import exact
from mainspring.web.session import TEAM
from mainspring.web.views import bulk
from mainspring.web.views import jobs as jobs_views
from tests.web.conftest import Visitor

PAYLOAD = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}"


def confirmed(asked: httpx.Response) -> dict[str, str]:
    """Return what the form of a page that asks whether it is meant sends along."""
    form = asked.text.split('action="/jobs/bulk"')[1].split("</form>")[0]
    found = re.findall(r'type="hidden" name="(\w+)" value="(.*?)"', form)
    return {name: unescape(value) for name, value in found if name != "proof"}


def test_an_empty_place_says_what_to_do_next(visitor: Visitor) -> None:
    browser = visitor()

    assert "No jobs yet" in browser.get("/jobs").text
    assert "No worker is alive" in browser.get("/").text
    assert "No such job" in browser.get("/jobs", params={"task": "nothing"}).text


def test_jobs_are_found_page_by_page(visitor: Visitor, app: Mainspring) -> None:
    jobs = [app.enqueue("greet", [str(n)]) for n in range(60)]
    app.enqueue("numbers", [3], key="mine")
    browser = visitor()

    first = browser.get("/jobs", params={"task": "greet"})
    older = httpx.URL(first.text.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&"))
    second = browser.get(older)

    shown = [sum(f'href="/jobs/{job.id}"' in page.text for job in jobs) for page in (first, second)]
    assert shown == [50, 10]
    assert browser.get("/jobs", params={"key": "mine"}).text.count("/jobs/01") == 1
    assert browser.get("/jobs", params={"state": "nonsense"}).status_code == 422


def test_a_failed_job_is_read_and_replayed(visitor: Visitor, app: Mainspring) -> None:
    job = app.within("acme").enqueue("fail")
    drain(app)
    browser = visitor(acme="submitter")

    page = browser.get(f"/jobs/{job.id}").text
    assert "no luck" in page
    assert "ValueError" in page
    answer = browser.send_form(f"/jobs/{job.id}/replay", reason="mended")
    again = browser.get(answer.headers["location"])

    assert (answer.status_code, job.state.final) == (303, False)
    assert f"It is replayed, and now {job.state}." in again.text
    assert "It is replayed" not in browser.get(f"/jobs/{job.id}").text
    assert app.audit.list()[0].action == "job.replay"


def test_a_job_shows_its_log_steps_progress_and_result(visitor: Visitor, app: Mainspring) -> None:
    @app.task
    def order(ctx: Context, number: int) -> dict[str, int]:
        ctx.log.warning("charging %d", number)
        ctx.step("charge", abs, -number)
        return {"charged": number}

    job = order.enqueue(7)
    drain(app)

    page = visitor().get(f"/jobs/{job.id}").text

    for words in ("charging 7", "warning", "charge", "&#34;charged&#34;: 7", "succeeded", "attempt 1"):
        assert words in page


def test_of_a_long_log_the_last_lines_are_shown(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    def talk(ctx: Context) -> None:
        for number in range(7):
            ctx.log.info("board %d", number)

    job = talk.enqueue()
    drain(app)
    monkeypatch.setattr(jobs_views, "_LAST_LINES", 3)

    assert re.findall(r"board \d", visitor().get(f"/jobs/{job.id}").text) == ["board 4", "board 5", "board 6"]


def test_many_are_chosen_counted_and_then_done(visitor: Visitor, app: Mainspring) -> None:
    jobs = [app.enqueue("greet", [str(n)]) for n in range(3)]
    drain(app)
    waiting = [app.enqueue("greet", [str(n)], run_after="1h") for n in range(2)]
    chosen = [str(job.id) for job in (*jobs, *waiting)]
    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed="cancel", job=chosen, back="/jobs?task=greet")
    assert "Cancel 2 jobs?" in asked.text
    assert "3 of those chosen are in no state for that" in asked.text
    assert {job.state for job in waiting} == {JobState.SCHEDULED}
    done = browser.send_form("/jobs/bulk", **confirmed(asked))

    assert done.headers["location"] == "/jobs?task=greet"
    assert {job.state for job in waiting} == {JobState.CANCELLED}
    assert "2 jobs cancelled." in browser.get("/jobs").text
    record = app.audit.list()[0]
    details = json.loads(record.details)
    assert (record.action, record.target, details["deed"]) == ("job.bulk", "2 jobs", "cancel")
    assert sorted(details["jobs"]) == chosen[3:]


def test_jobs_are_found_by_time_and_by_error(visitor: Visitor, app: Mainspring) -> None:
    failed = app.enqueue("fail")
    drain(app)
    waiting = app.enqueue("greet", ["Ada"], run_after="1h")
    browser, now = visitor(), app.client.store.now()
    soon, past = (f"{now + way * timedelta(hours=1):%Y-%m-%dT%H:%M}" for way in (1, -1))

    def shown(**match: str) -> list[bool]:
        page = browser.get("/jobs", params=match)
        assert page.status_code == 200
        return [f'href="/jobs/{job.id}"' in page.text for job in (failed, waiting)]

    assert shown(error="VALUEERROR: no") == shown(finished_since=past) == [True, False]
    assert shown(since=past, until=soon) == shown(since="1h") == [True, True]
    assert shown(since=soon) == shown(until=past) == shown(finished_until=past) == shown(error="oops") == [False, False]
    assert f'name="since" value="{past}"' in browser.get("/jobs", params={"since": past}).text


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("since", "9999-12-31T23:59", "expected since to lie between 1970 and 2200, got: 9999-12-31T23:59:00+00:00"),
        (
            "finished_until",
            "yester<day>",
            "expected finished_until to be an instant like 2026-11-18T09:00Z, or a length",
        ),
        ("until", "101w1x", "of time like 90m for how long ago that was, got: &#39;101w1x&#39;"),
    ],
)
def test_a_filter_that_makes_no_sense_comes_back_as_it_was_typed(
    visitor: Visitor, app: Mainspring, name: str, text: str, sentence: str
) -> None:
    job = app.enqueue("greet", ["Ada"])
    page = visitor().get("/jobs", params={"task": "greet", "state": "ready", "error": "oops", name: text})

    assert page.status_code == 422
    assert sentence in page.text
    assert str(job.id) not in page.text
    for value in ('name="task" value="greet"', "<option selected>ready<", 'name="error" value="oops"'):
        assert value in page.text
    assert f'name="{name}" value="{escape(text)}"' in page.text


def test_a_page_that_finds_nothing_soon_says_how_far_it_looked(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = app.enqueue("numbers", [3])
    jobs = [app.enqueue("greet", [str(n)]) for n in range(9)]
    browser = visitor()
    monkeypatch.setattr(inspect, "LOOKED", 5)

    first = browser.get("/jobs", params={"task": "numbers"}).text
    older = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")

    assert f"Nothing fits what you look for back to {exact(made_at(jobs[3].id))}." in first
    assert f'href="/jobs/{wanted.id}"' in browser.get(older).text


def test_all_that_fit_are_counted_and_then_done(visitor: Visitor, app: Mainspring) -> None:
    mail = [app.enqueue("greet", [str(n)], queue="mail", run_after="1h") for n in range(60)]
    other, failed = app.enqueue("greet", ["Ada"], run_after="1h"), app.enqueue("fail", queue="mail")
    drain(app)
    browser, back = visitor(), "/jobs?queue=mail&team=default"

    asked = browser.send_form("/jobs/choose", deed="cancel", all="yes", back=back)
    late = app.enqueue("greet", ["late"], queue="mail", run_after="1h")
    browser.send_form("/jobs/bulk", **confirmed(asked), reason="enough")

    assert "Cancel 60 jobs?" in asked.text
    assert {job.state for job in mail} == {JobState.CANCELLED}
    assert (other.state, late.state, failed.state) == (JobState.SCHEDULED, JobState.SCHEDULED, JobState.FAILED)
    assert "60 jobs cancelled." in browser.get("/jobs").text
    record = app.audit.list()[0]
    assert (record.action, record.target) == ("job.bulk", "60 jobs")
    assert '"match":{"queue":"mail","team":"default"}' in record.details


@pytest.mark.parametrize(
    ("deed", "was", "is_then"),
    [("pause", JobState.SCHEDULED, JobState.PAUSED), ("resume", JobState.PAUSED, JobState.SCHEDULED)],
)
def test_all_that_fit_are_held_and_let_go(
    visitor: Visitor, app: Mainspring, deed: str, was: JobState, is_then: JobState
) -> None:
    jobs = [app.enqueue("greet", [str(n)], run_after="1h") for n in range(3)]
    for job in jobs:
        if was is JobState.PAUSED:
            job.pause()

    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed=deed, all="yes", back=f"/jobs?state={was}")
    browser.send_form("/jobs/bulk", **confirmed(asked))

    assert [job.state for job in jobs] == [is_then] * 3
    assert f"3 jobs {deed}d." in browser.get("/jobs").text


def test_one_that_is_held_anew_meanwhile_is_not_told_as_resumed(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, resume = [app.enqueue("greet", [str(n)], run_after="1h") for n in range(3)], control.resume
    for job in jobs:
        job.pause()
    monkeypatch.setattr(control, "resume", lambda db, ids: resume(db, ids) | {jobs[0].id: JobState.PAUSED})
    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed="resume", all="yes", back="/jobs")
    browser.send_form("/jobs/bulk", **confirmed(asked))

    assert "2 jobs resumed. 1 could not be." in browser.get("/jobs").text


@pytest.mark.parametrize("back", ["https://evil.example/jobs", "//evil.example/jobs", "/login"])
def test_who_acts_on_many_goes_back_to_jobs(visitor: Visitor, back: str) -> None:
    browser = visitor()

    for path in ("/jobs/choose", "/jobs/bulk"):
        answer = browser.send_form(path, deed="cancel", back=back)
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")


def test_nothing_is_done_about_what_was_not_counted(visitor: Visitor, app: Mainspring) -> None:
    waiting, cancelled = [app.enqueue("greet", [str(n)], run_after="1h") for n in range(3)], app.enqueue("fail")
    cancelled.cancel()
    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed="replay", all="yes", back="/jobs?state=cancelled")
    for job in waiting:
        job.cancel()
    browser.send_form("/jobs/bulk", **confirmed(asked))

    assert "Replay 1 job?" in asked.text
    assert "1 job replayed." in browser.get("/jobs").text
    assert {job.state for job in waiting} == {JobState.CANCELLED}
    assert cancelled.state is JobState.READY


def test_what_was_counted_and_fits_no_more_is_left(visitor: Visitor, app: Mainspring) -> None:
    jobs = [app.enqueue("greet", [str(n)], run_after="1h") for n in range(3)]
    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed="cancel", all="yes", back="/jobs?state=scheduled")
    jobs[0].pause()
    browser.send_form("/jobs/bulk", **confirmed(asked))

    assert [job.state for job in jobs] == [JobState.PAUSED, JobState.CANCELLED, JobState.CANCELLED]
    assert "2 jobs cancelled. 1 could not be." in browser.get("/jobs").text


def test_as_many_as_are_taken_at_once_fit_into_a_form() -> None:
    ids = [uuid4() for _ in range(bulk.MOST)]

    carried = bulk._packed(ids)

    assert len(carried) < forms.LARGEST * 0.9  # and the address to go back to, and why
    assert bulk._unpacked(carried) == ids


def test_without_a_state_only_what_failed_is_replayed(visitor: Visitor, app: Mainspring) -> None:
    failed, cancelled = app.enqueue("fail"), app.enqueue("fail", run_after="1h")
    drain(app)
    cancelled.cancel()
    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed="replay", all="yes", back="/jobs?task=fail")
    browser.send_form("/jobs/bulk", **confirmed(asked))
    assert (failed.state, cancelled.state) == (JobState.READY, JobState.CANCELLED)
    asked = browser.send_form("/jobs/choose", deed="replay", all="yes", back="/jobs?task=fail&state=cancelled")
    browser.send_form("/jobs/bulk", **confirmed(asked))
    assert cancelled.state is not JobState.CANCELLED


def test_no_more_are_done_at_once_than_are_counted(
    visitor: Visitor, app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST", 4)
    jobs = [app.enqueue("greet", [str(n)], run_after="1h") for n in range(6)]
    browser = visitor()

    asked = browser.send_form("/jobs/choose", deed="cancel", all="yes", back="/jobs")
    browser.send_form("/jobs/bulk", **confirmed(asked))

    assert "Cancel 4 jobs, of more that fit?" in asked.text
    assert [job.state for job in jobs] == [JobState.SCHEDULED] * 2 + [JobState.CANCELLED] * 4
    assert "4 jobs cancelled. There are more that fit." in browser.get("/jobs").text


def test_who_may_see_what_is_anybodys_looks_at_all_teams(visitor: Visitor, app: Mainspring) -> None:
    own, theirs = app.enqueue("greet", ["Ada"]), app.within("acme").enqueue("greet", ["Bob"])
    admin, other = visitor("admin"), visitor(acme="admin", beta="admin", default="admin")

    both = admin.get("/jobs", params={"team": "*"}).text
    assert f'href="/jobs/{own.id}?team=default"' in both
    assert f'href="/jobs/{theirs.id}?team=acme"' in both
    assert 'form="bulk"' not in both
    alone = admin.get("/jobs").text
    assert ('form="bulk"' in alone, f"/jobs/{theirs.id}" in alone) == (True, False)
    refused = other.get("/jobs", params={"team": "*"})
    assert (refused.status_code, str(theirs.id) in refused.text) == (403, False)


def test_who_finds_jobs_has_chosen_no_team_by_that(visitor: Visitor, app: Mainspring) -> None:
    app.enqueue("greet", ["Ada"])
    admin, led = visitor("admin"), {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "document"}

    for chosen, field in ((None, ""), ("acme", "acme")):
        if chosen:
            admin.cookies.set(TEAM, chosen, domain="127.0.0.1", path="/")
        form = admin.get("/jobs", headers=led).text.split('role="search"')[1].split("</form>")[0]
        asked = dict(re.findall(r'name="(\w+)" value="(.*?)"', form))
        found = admin.get("/jobs", params=asked, headers=led)
        assert (asked["team"], admin.cookies.get(TEAM)) == (field, chosen)
        assert ("greet" in found.text) == (chosen is None)


def test_who_is_led_to_a_job_of_another_team_stays_there(visitor: Visitor, app: Mainspring) -> None:
    theirs = app.within("acme").enqueue("greet", ["Bob"], run_after="1h")
    admin = visitor("submitter")

    assert admin.get(f"/jobs/{theirs.id}").status_code == 404
    for site, dest in ((None, None), ("cross-site", "document"), ("none", "document"), ("same-origin", "empty")):
        headers = {} if site is None or dest is None else {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": dest}
        seen = admin.get(f"/jobs/{theirs.id}?team=acme", headers=headers)
        assert (seen.status_code, "mainspring_team" in admin.cookies) == (200, False), (site, dest)
    led = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "document"}
    assert admin.get(f"/jobs/{theirs.id}?team=acme", headers=led).status_code == 200
    assert admin.send_form(f"/jobs/{theirs.id}/cancel").status_code == 303
    assert theirs.state is JobState.CANCELLED
    assert app.audit.list()[0].team == "acme"


def test_who_looks_at_another_team_without_staying_there_is_led_to_what_is_its(
    visitor: Visitor, app: Mainspring
) -> None:
    theirs = app.within("acme").enqueue("greet", ["Bob"], queue="mail")
    admin = visitor("viewer")

    assert f'href="/jobs/{theirs.id}?team=acme"' in admin.get("/jobs?team=acme").text
    assert 'href="/jobs?queue=mail&amp;team=acme"' in admin.get(f"/jobs/{theirs.id}?team=acme").text


def test_what_is_done_to_many_is_done_in_the_team_that_the_page_showed(visitor: Visitor, app: Mainspring) -> None:
    ours, theirs = (app.within(team).enqueue("greet", ["Ada"], run_after="1h") for team in ("acme", "beta"))
    browser = visitor(acme="submitter", beta="submitter")
    browser.cookies.set(TEAM, "acme", domain="127.0.0.1", path="/")

    page = browser.get("/jobs?team=beta&state=scheduled")
    asked = browser.press(page, "/jobs/choose", deed="cancel", all="yes", back="/jobs?task=greet")
    browser.cookies.set(TEAM, "acme", domain="127.0.0.1", path="/")  # as in another window
    done = browser.press(asked, "/jobs/bulk", **confirmed(asked))

    assert (str(theirs.id) in asked.text, str(ours.id) in asked.text) == (True, False)
    assert (theirs.state, ours.state) == (JobState.CANCELLED, JobState.SCHEDULED)
    assert [(entry.action, entry.team) for entry in app.audit.list()] == [("job.bulk", "beta")]
    told = browser.get(done.headers["location"]).text
    assert ("1 job cancelled." in told, str(theirs.id) in told) == (True, True)


@pytest.mark.parametrize("path", ["/jobs/bulk", "/jobs/{id}/cancel"])
def test_a_reason_is_no_longer_than_the_apis(visitor: Visitor, app: Mainspring, path: str) -> None:
    job = app.enqueue("greet", ["Ada"], run_after="1h")
    refused = visitor().send_form(path.format(id=job.id), deed="cancel", job=str(job.id), reason="x" * 2_001)

    assert (refused.status_code, "at most 2,000 characters, got 2,001" in refused.text) == (422, True)
    assert job.state is JobState.SCHEDULED


@pytest.mark.parametrize(
    "fields",
    [{"deed": "explode"}, {"deed": "cancel", "jobs": "no-ids"}, {"deed": "cancel", "jobs": "\N{BULLET}"}, {}],
    ids=["no deed of ours", "no ids", "no letters", "nothing"],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(visitor: Visitor, fields: dict[str, str]) -> None:
    answer = visitor().send_form("/jobs/bulk", **fields)

    assert answer.status_code == 422
    assert "expected" in answer.text


def test_whatever_a_job_says_is_text(visitor: Visitor, app: Mainspring) -> None:
    @app.task
    def say(ctx: Context, words: str) -> str:
        ctx.log.info(words)
        ctx.progress(1, 2, words)
        raise ValueError(words)

    job = app.enqueue("say", [PAYLOAD], key=PAYLOAD)
    drain(app)

    for path in ("/jobs", f"/jobs/{job.id}", "/"):
        page = visitor().get(path).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "{{7*7}}" in page or path != f"/jobs/{job.id}"
