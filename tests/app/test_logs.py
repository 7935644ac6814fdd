"""What jobs have logged, as an app and its users look for it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from mainspring import Context, Mainspring
from mainspring.errors import InvalidValue

LONG = "60s"


def test_a_job_and_an_app_find_what_was_logged(app: Mainspring, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    @app.task
    def mail(ctx: Context, to: str) -> None:
        ctx.log("mail to %s", to)
        logging.getLogger("smtp").warning("slow for %s", to)

    with app.worker():
        ada, bob = mail.enqueue("ada"), mail.enqueue("bob")
        for job in (ada, bob):
            job.result(timeout=LONG)

    assert [line.message for line in ada.logs(level="warning")] == ["slow for ada"]
    assert [line.message for line in ada.logs(contains="mail to")] == ["mail to ada"]
    assert {(line.job_id, line.task, line.message) for line in app.logs(contains="to b")} == {
        (bob.id, "mail", "mail to bob")
    }
    assert len(app.logs(level="info", task="mail", since=datetime.now(UTC) - timedelta(minutes=5))) == 4
    assert len(app.logs(limit=3)) == 3
    assert app.logs(task="other") == []


def test_a_loop_is_not_held_up_by_a_search(app: Mainspring) -> None:
    async def search() -> int:
        return len(await app.alogs(since="5m"))

    assert asyncio.run(search()) == 0


def test_what_is_logged_within_a_team_is_the_teams(app: Mainspring) -> None:
    @app.task
    def mail(ctx: Context, to: str) -> None:
        ctx.log("mail to %s", to)

    acme, beta = app.within("acme"), app.within("beta")
    with app.worker():
        for job in (acme.enqueue("mail", ["ada"]), beta.enqueue("mail", ["bob"])):
            job.result(timeout=LONG)

    assert [line.message for line in acme.logs()] == ["mail to ada"]
    assert [line.message for line in acme.logs(contains="bob")] == []
    assert app.within("default").logs() == []
    assert len(app.logs()) == 2


def test_what_can_not_be_searched_for_is_refused(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="expected since to have a time zone"):
        app.logs(since=datetime(2026, 1, 1))  # noqa: DTZ001 - the point
    with pytest.raises(InvalidValue, match="expected limit to be a whole number from 0 to 10,000"):
        app.logs(limit=10_001)
