"""`mainspring up --demo`: work to look at, in a database of its own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mainspring import JobState, Mainspring, every
from mainspring.cli.demo import open_demo
from mainspring.errors import InvalidValue
from mainspring.model.session import NewSession
from mainspring.model.trigger import After, At, Cron, Every
from tests.cli.program import assert_refused, eventually, in_process, mainspring, running
from tests.cli.projects import jobs_at, write
from tests.support.factories import new_id


def test_the_demo_shows_what_there_is_to_see_and_leaves_other_databases_alone(
    folder: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_URL", sqlite_url)
    url = f"sqlite:///{folder}/mainspring-demo.db"

    with running("up", "--demo", "--port", "0", "--grace", "0s", folder=folder) as up:
        (greeting,) = up.wait_for("The demo is at work: look at it on http://127.0.0.1:")
        with closing(Mainspring(url)) as app:
            eventually(lambda: app.jobs(task="import_catalogue", state="running"))
            eventually(lambda: app.jobs(task="take_back", state="blocked"))
            eventually(lambda: {group.task for group in app.dead.groups()} >= {"charge", "confirm"})
            eventually(lambda: [run for run in app.workflows() if run.state is JobState.SUCCEEDED])
            eventually(lambda: {limit.key for limit in app.limits.list()} == {"conveyor", "smtp"})
            eventually(lambda: [breaker.key for breaker in app.breakers.list()] == ["bank"])
            job = app.jobs(task="import_catalogue", state="running")[0]
            eventually(lambda: job.refresh().reached)
            assert {type(one.definition.trigger) for one in app.schedules.list()} == {After, At, Cron, Every}
            assert {alert.id for alert in app.alerts.list()} >= {"dead-letters", "mail-waits"}
            failed = app.dead.list()[0].snapshot.failure
            assert failed is not None
            assert "demo.py" in (failed.traceback or "")  # where a newcomer looks for what went wrong
            assert {job.snapshot.priority for job in app.jobs(limit=1_000)} >= {1, 5, 10}
        up.signal(signal.SIGINT)
        assert up.end() == 0

    assert "mainspring top --url sqlite:///mainspring-demo.db" in greeting
    assert "Traceback" not in up.output
    assert jobs_at(sqlite_url) == []


def test_what_the_demo_leaves_behind_is_bounded(folder: Path) -> None:
    with running("up", "--demo", "--port", "0", "--grace", "0s", folder=folder) as up:
        up.wait_for("The demo is at work")
        with closing(Mainspring(f"sqlite:///{folder}/mainspring-demo.db")) as app:
            (rule,) = app.retention.list()

    assert rule.count is not None
    assert rule.age is not None
    assert str(rule.covers) == "everything else"


def test_the_demo_can_be_started_again(folder: Path) -> None:
    for _ in range(2):
        with running("up", "--demo", "--port", "0", "--grace", "0s", folder=folder) as up:
            up.wait_for("The demo is at work")
            up.signal(signal.SIGTERM)
            assert up.end() == 0


def test_a_database_that_others_use_is_not_filled(folder: Path, url: str) -> None:
    write(folder / "tasks.py")
    mainspring("enqueue", "--app", "tasks", "--url", url, "who", folder=folder)

    done = mainspring("up", "--demo", "--port", "0", "--url", url, folder=folder)

    assert_refused(done, "expected a database for the demo alone", "'who'", "leave out --url")
    assert [job.task for job in jobs_at(url)] == ["who"]


def schedule(app: Mainspring) -> None:
    app.schedules.add("nightly", "who", every("1d"))


def work(app: Mainspring) -> None:
    app.client.store.open_session(NewSession(id=new_id(), name="host:1", queues=["default"], tasks=["who"]))


@pytest.mark.parametrize("use", [schedule, work])
def test_a_database_where_others_have_no_job_yet_is_not_filled(
    use: Callable[[Mainspring], None], folder: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.demo.open_shop", lambda: None)
    with closing(Mainspring(sqlite_url)) as app:
        use(app)
        with pytest.raises(InvalidValue, match="which is used for 'who' too"):
            open_demo(app)


def test_an_app_beside_the_demo_is_a_mistake(folder: Path) -> None:
    assert_refused(in_process("up", "--demo", "--app", "tasks"), "either an app or --demo, got both")
    assert not list(folder.iterdir())
