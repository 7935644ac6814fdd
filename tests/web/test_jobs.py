"""Jobs on the dashboard: found, read, and put right."""

from __future__ import annotations

import httpx
import pytest

from mainspring import Context, JobState, Mainspring
from mainspring.testing import drain
from tests.web.conftest import Visitor

PAYLOAD = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}"


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
    done = browser.send_form("/jobs/bulk", deed="cancel", job=chosen[3:], back="/jobs?task=greet")

    assert done.headers["location"] == "/jobs?task=greet"
    assert {job.state for job in waiting} == {JobState.CANCELLED}
    assert "2 jobs cancelled." in browser.get("/jobs").text
    assert app.audit.list()[0].action == "job.bulk"


@pytest.mark.parametrize(
    "fields",
    [{"deed": "explode"}, {"deed": "cancel", "job": "no-id"}, {}],
    ids=["no deed of ours", "no id", "nothing"],
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
