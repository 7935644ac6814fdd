"""Workers on the dashboard: who is there, and at what."""

from __future__ import annotations

import threading

from mainspring import JobState, Mainspring
from tests.support.waiting import until
from tests.web.conftest import Visitor


def test_no_worker_is_there_yet(visitor: Visitor) -> None:
    assert "mainspring worker --app" in visitor().get("/workers").text
    assert "They work for all teams" in visitor(acme="viewer").get("/workers").text


def test_a_team_that_is_shown_no_workers_is_not_told_that_there_are_none(visitor: Visitor) -> None:
    for words in ("workers alive", "No worker is alive"):
        assert words in visitor(default="viewer").get("/").text
        assert words not in visitor(acme="viewer").get("/").text


def test_workers_show_what_they_serve_and_run(visitor: Visitor, app: Mainspring) -> None:
    over = threading.Event()

    @app.task(queue="mail")
    def wait() -> None:
        over.wait(30)

    job = wait.enqueue()
    with app.worker(queues={"mail": 1}):
        try:
            until(lambda: job.state is JobState.RUNNING)
            page = visitor().get("/workers").text
        finally:
            over.set()

    assert "alive" in page
    assert "mail" in page
    assert f'href="/jobs/{job.id}"' in page
    assert "greet" in page
