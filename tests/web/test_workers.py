"""Workers on the dashboard: who is there, and at what."""

from __future__ import annotations

import threading

from mainspring import JobState, Mainspring
from tests.support.waiting import until
from tests.web.conftest import Visitor


def test_no_worker_is_there_yet(visitor: Visitor) -> None:
    assert "Start one: mainspring worker" in visitor().get("/workers").text
    assert "They work for all teams" in visitor(acme="viewer").get("/workers").text


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
