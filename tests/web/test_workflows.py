"""Workflows on the dashboard: how far they are, drawn, and ruled as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring import JobState, Mainspring, Retry
from mainspring.testing import drain
from mainspring.workflow_handle import WorkflowHandle
from tests.web.conftest import Visitor
from tests.web.test_jobs import PAYLOAD


def doubled(app: Mainspring, count: int = 3, key: str | None = None) -> WorkflowHandle[Any]:
    """Enqueue a workflow of three nodes: numbers, each doubled, and their total."""
    with app.workflow("sums", key=key) as made:
        made.add("total", made.map("double", made.add("numbers", count)))
    found = app.job(made.enqueue().id)
    assert isinstance(found, WorkflowHandle)
    return found


@pytest.fixture
def shaky(app: Mainspring) -> dict[str, bool]:
    """What decides whether jobs of the task `shaky` fail."""
    state = {"fails": True}

    @app.task(retry=Retry(max_attempts=1))
    def shaky(words: str = "no luck") -> str:
        if state["fails"]:
            raise ValueError(words)
        return words

    return state


def broken(app: Mainspring, words: str = "no luck") -> WorkflowHandle[Any]:
    """Enqueue a workflow whose first job fails, so that the second is cancelled, and run it."""
    with app.workflow("broken") as made:
        made.add("greet", made.add("shaky", words))
    found = app.job(made.enqueue().id)
    drain(app)
    assert isinstance(found, WorkflowHandle)
    assert found.state is JobState.FAILED
    return found


def test_an_empty_place_says_what_to_do_next(visitor: Visitor) -> None:
    assert "No workflows yet" in visitor().get("/workflows").text


def test_workflows_are_listed_page_by_page_with_how_far_they_are(visitor: Visitor, app: Mainspring) -> None:
    first = doubled(app, key="mine")
    drain(app)
    others = [doubled(app) for _ in range(30)]
    browser = visitor()

    page = browser.get("/workflows").text
    older = page.split('rel="next" href="')[1].split('"')[0]
    last = browser.get(older).text

    shown = [sum(f'href="/workflows/{one.id}"' in text for one in (first, *others)) for text in (page, last)]
    assert shown == [25, 6]
    assert "0 of 3" in page
    assert "under way" in page
    assert "3 of 3" in last
    assert "mine" in last
    assert browser.get("/workflows", params={"before": "x"}).status_code == 422


def test_a_workflow_is_drawn(visitor: Visitor, app: Mainspring) -> None:
    run = doubled(app, 30)
    drain(app)
    jobs = run.members()

    page = visitor().get(f"/workflows/{run.id}").text

    assert page.count('class="edge"') == 2
    assert page.count('<a class="node succeeded"') == 6  # in the graph, and along time
    assert page.count('height="46"') == 3 + 2  # as many jobs lie below the one that stands for them
    assert "30 of 30" in page
    assert page.count('class="ran"') == 3
    for job in jobs:
        assert f'"/{"workflows" if job.plan else "jobs"}/{job.id}"' in page
    within = visitor().get(f"/workflows/{jobs[1].id}").text
    assert f'within <a class="id" href="/workflows/{run.id}"' in within
    assert "Younger" not in within


def test_a_workflow_of_very_many_is_told_in_short(visitor: Visitor, app: Mainspring) -> None:
    with app.workflow("wide") as made:
        for number in range(110):
            made.add("double", made.add("double", number))
    run = made.enqueue()
    browser = visitor()

    page = browser.get(f"/workflows/{run.id}").text
    more = page.split('rel="next" href="')[1].split('"')[0]

    assert "220 jobs are too many to draw" in page
    assert "<svg class=" not in page
    assert browser.get(more).text.count('<td><a class="id" href="/jobs/') == 50
    assert browser.get(f"/workflows/{run.id}", params={"after": "x"}).status_code == 422


def test_one_whose_jobs_are_not_made_yet_says_so(visitor: Visitor, app: Mainspring) -> None:
    @app.workflow
    def later(wf: Any) -> None:
        wf.add("greet", "Ada")

    run = app.enqueue("later")
    drain(app)

    assert "greet" in visitor().get(f"/workflows/{run.id}").text


def test_what_is_no_workflow_is_not_there(visitor: Visitor, app: Mainspring) -> None:
    job = app.enqueue("greet", ["Ada"])
    browser = visitor()

    assert browser.get(f"/workflows/{job.id}").status_code == 404
    assert browser.send_form(f"/workflows/{job.id}/cancel").status_code == 404
    assert job.state is JobState.READY


def test_jobs_lead_to_their_workflow(visitor: Visitor, app: Mainspring) -> None:
    run = doubled(app)

    for job_id in (run.id, run.members()[0].id):
        assert f'href="/workflows/{run.id}"' in visitor().get(f"/jobs/{job_id}").text


def test_a_workflow_is_paused_resumed_and_cancelled(visitor: Visitor, app: Mainspring) -> None:
    team = app.within("acme")
    run = doubled(team)
    browser = visitor(acme="submitter")
    address = f"/workflows/{run.id}"

    told = browser.get(browser.send_form(f"{address}/pause").headers["location"])
    assert "It is paused, and now paused." in told.text
    assert {job.state for job in run.members()} == {JobState.PAUSED}
    assert f"{address}/resume" in browser.get(address).text
    browser.send_form(f"{address}/resume")
    assert JobState.PAUSED not in {job.state for job in run.members()}
    assert "Cancel sums with 3 jobs?" in browser.get(f"{address}/cancel").text
    browser.send_form(f"{address}/cancel", reason="not today")

    assert run.state is JobState.CANCELLED
    assert "not today" in browser.get(address).text
    wanted = ["workflow.cancel", "workflow.resume", "workflow.pause"]
    assert [entry.action for entry in app.audit.list() if entry.action.startswith("workflow.")] == wanted


def test_a_workflow_is_replayed_from_where_it_failed(visitor: Visitor, app: Mainspring, shaky: dict[str, bool]) -> None:
    run = broken(app)
    browser = visitor()
    page = browser.get(f"/workflows/{run.id}").text
    assert "no luck" in page
    assert f"/workflows/{run.id}/cancel" not in page
    shaky["fails"] = False

    browser.send_form(f"/workflows/{run.id}/replay", reason="mended")
    drain(app)

    assert run.state is JobState.SUCCEEDED
    assert browser.send_form(f"/workflows/{run.id}/replay").status_code == 409


def test_a_job_of_it_is_replayed_and_brings_the_rest_back(
    visitor: Visitor, app: Mainspring, shaky: dict[str, bool]
) -> None:
    run = broken(app)
    first, second = run.members()
    stranger = app.enqueue("fail")
    drain(app)
    browser = visitor()
    page = browser.get(f"/workflows/{run.id}").text
    assert f"/workflows/{run.id}/jobs/{first.id}/replay" in page
    assert f"/workflows/{run.id}/jobs/{second.id}/replay" in page
    shaky["fails"] = False

    assert browser.send_form(f"/workflows/{run.id}/jobs/{stranger.id}/replay").status_code == 404
    answer = browser.send_form(f"/workflows/{run.id}/jobs/{first.id}/replay")
    drain(app)

    assert answer.headers["location"] == f"/workflows/{run.id}"
    assert run.state is JobState.SUCCEEDED
    assert app.audit.list()[0].action == "job.replay"


def test_what_was_undone_is_offered_no_replay(visitor: Visitor, app: Mainspring, shaky: dict[str, bool]) -> None:
    with app.workflow("trip") as made:
        flight = made.add("greet", "Ada").on_failure("greet", "nobody")
        made.add("shaky", flight)
    run = made.enqueue()
    drain(app)

    page = visitor().get(f"/workflows/{run.id}").text

    assert "to undo" in page
    assert "/replay" not in page


def test_who_may_not_sees_no_button(visitor: Visitor, app: Mainspring) -> None:
    run = doubled(app.within("acme"))

    page = visitor(acme="viewer").get(f"/workflows/{run.id}").text
    assert "/cancel" not in page
    assert "/pause" not in page
    assert "sums" not in visitor(beta="admin").get("/workflows").text
    assert visitor(beta="admin").get(f"/workflows/{run.id}").status_code == 404


def test_whatever_people_wrote_is_text(visitor: Visitor, app: Mainspring, shaky: dict[str, bool]) -> None:
    with app.workflow("broken", key=PAYLOAD) as made:
        made.add("greet", made.add("shaky", PAYLOAD))
    run = made.enqueue()
    drain(app)
    browser = visitor()
    browser.send_form(f"/workflows/{run.id}/replay", reason=PAYLOAD)

    for path in ("/workflows", f"/workflows/{run.id}", f"/workflows/{run.id}/cancel"):
        page = browser.get(path).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "{{7*7}}" in page or path.endswith("cancel")
