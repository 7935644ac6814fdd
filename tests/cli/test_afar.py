"""The same commands against the address of a database and against that of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from mainspring import Context, Email, Mainspring, Webhook, every
from mainspring.alerts import dead
from mainspring.api.documents import JobDocument, WorkflowDocument
from mainspring.api.routes.alerts import AlertDocument
from mainspring.api.routes.notifications import NotificationDocument
from mainspring.documents.told import ToldAlert, ToldJob, ToldNotification, ToldWorkflow
from mainspring.keys import new_key
from mainspring.model.session import NewSession
from mainspring.server import Server
from mainspring.testing import drain
from tests.api.conftest import add_tasks
from tests.cli.program import assert_refused, in_process
from tests.support.factories import new_id

LISTINGS = (
    "jobs list",
    "jobs list --state failed",
    "jobs show {failed}",
    "jobs show {done}",
    "jobs show {waiting}",
    "jobs show {flow}",
    "jobs logs {said}",
    "jobs logs {said} --level warning",
    "why {waiting}",
    "workflows list",
    "workflows show {flow}",
    "dead groups",
    "dead list",
    "schedules list",
    "schedules show hourly",
    "schedules history hourly",
    "schedules preview hourly -n 3",
    "schedules lint",
    "queues",
    "workers",
    "limits",
    "breakers",
    "alerts list",
    "alerts show dead",
    "notifications list",
    "secrets list",
    "tasks",
    "tokens list",
    "teams list",
    "audit list",
    "retention list",
)
AGO = re.compile(r"(\d+\w ago|now) *")
MEASURED = {"oldest_ready_seconds", "estimate_seconds", "last_used_at"}
"""What is another moment by moment."""


@pytest.fixture
def app(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mainspring]:
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())
    made = Mainspring(url)
    add_tasks(made)

    @made.task
    def say(ctx: Context) -> None:
        ctx.log.info("one")
        ctx.log.warning("two")

    yield made
    made.close()


@pytest.fixture
def server(app: Mainspring) -> Iterator[Server]:
    made = Server(app, "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def token(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> str:
    """A token for everything, which commands show."""
    text, _ = app.tokens.create("me", {"*": "admin"})
    monkeypatch.setenv("MAINSPRING_TOKEN", text)
    return text


@pytest.fixture(params=["database", "server"])
def place(
    request: pytest.FixtureRequest, app: Mainspring, server: Server, token: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The address of the database, and that of the server, each in its turn that which commands use."""
    found = app.client.url if request.param == "database" else server.url
    app.client.check()
    monkeypatch.setenv("MAINSPRING_URL", found)
    return found


def told(*arguments: str) -> Any:
    done = in_process(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def said(*arguments: str) -> str:
    done = in_process(*arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.rstrip("\n")


def steady(document: Any) -> Any:
    """Return *document* without what is another moment by moment."""
    if isinstance(document, dict):
        return {name: steady(value) for name, value in document.items() if name not in MEASURED}
    return [steady(one) for one in document] if isinstance(document, list) else document


def furnished(app: Mainspring) -> dict[str, str]:
    """Have something of everything in the database; return the ids of some jobs."""
    jobs = {name: app.enqueue(task, args) for name, task, args in (("failed", "fail", []), ("done", "greet", ["Ada"]))}
    jobs["said"] = app.enqueue("say")
    with app.workflow("etl") as workflow:
        parts = workflow.map("double", workflow.add("numbers", 3))
        workflow.add("total", parts)
    jobs["flow"] = workflow.enqueue()
    drain(app)
    jobs["waiting"] = app.enqueue("greet", ["Bob"], run_after="1h", key="k", after=[jobs["done"]])
    app.schedules.add("hourly", "greet", every("1h"), args=["Eve"], jitter="1m", notes="often")
    app.schedules.trigger("hourly")
    app.queues.pause("mail", reason="moved")
    app.queues.set("default", ageing="1m")
    app.breakers.trip("smtp", reason="down")
    app.alerts.add("dead", dead(), notify=[Webhook("https://example.org/hook", secret="hunter2")])
    app.notifications.add("ops", Email("ops@example.org"))
    app.notifications.add("hook", Webhook("https://example.org/hook", secret=["new", "old"]))
    app.secrets.set("smtp", "hunter2 hunter2")
    app.paused_tasks.pause("fail", reason="broken")
    app.teams.set("acme", max_pending=7, rate="100/s")
    app.retention.set(queue="mail", age="7d")
    app.client.store.open_session(NewSession(id=new_id(), name="host:1", queues=["default"], tasks=["greet"]))
    return {name: str(job.id) for name, job in jobs.items()}


def test_a_server_is_told_of_in_the_same_documents_as_a_database(app: Mainspring, server: Server, token: str) -> None:
    ids = furnished(app)
    said("queues", "resume", "mail", "--url", app.client.url)  # so that something is on record
    app.queues.pause("mail", reason="moved")

    for listing in LISTINGS:
        arguments = listing.format(**ids).split()
        here, there = (told(*arguments, "--url", one) for one in (app.client.url, server.url))
        assert steady(there) == steady(here), listing
        assert list(there) == list(here), listing


def test_a_server_tells_people_the_same_as_a_database(app: Mainspring, server: Server, token: str) -> None:
    ids = furnished(app)

    for listing in ("dead list", "workflows show {flow}", "schedules show hourly", "alerts show dead", "teams list"):
        here, there = (said(*listing.format(**ids).split(), "--url", one) for one in (app.client.url, server.url))
        assert AGO.sub("", there).split() == AGO.sub("", here).split()


def test_what_is_told_of_jobs_is_all_that_the_api_tells() -> None:
    for value, document in (
        (ToldJob, JobDocument),
        (ToldWorkflow, WorkflowDocument),
        (ToldAlert, AlertDocument),
        (ToldNotification, NotificationDocument),
    ):
        assert set(value.__struct_fields__) == set(document.model_fields)


def test_jobs_are_enqueued_and_ruled(app: Mainspring, place: str) -> None:
    job = told("enqueue", "greet", "Ada", "greeting=Hi", "--run-after", "1h", "--key", "k")["id"]

    assert said("jobs", "pause", job, "--reason", "why") == f"{job} paused"
    assert app.job(job).snapshot.reason is not None
    assert said("jobs", "resume", job[:13]) == f"{job} scheduled"
    assert said("jobs", "cancel", job, "--reason", "old") == f"{job} cancelled"
    assert said("jobs", "cancel", job) == f"{job} cancelled, so it can't be cancelled"
    other = told("enqueue", "greet", "Bob", "--run-after", "1h", "--key", "k")["id"]
    assert said("jobs", "replay", job) == f"{job} cancelled, because an unfinished job has the same key"
    assert said("jobs", "cancel", "--task", "greet", "--yes") == "Cancelled 1 job."
    assert app.job(other).state == "cancelled"
    assert said("jobs", "replay", job).endswith("ready")
    drain(app)
    assert app.job(job).result() == "Hi, Ada!"


def test_a_signal_is_sent(app: Mainspring, place: str) -> None:
    job = app.enqueue("greet", ["Ada"], run_after="1h")

    assert told("jobs", "signal", str(job.id), "rating", '{"stars": 5}')["value"] == {"stars": 5}
    app.job(job.id).cancel()
    assert_refused(in_process("jobs", "signal", str(job.id), "rating"), "takes no signals any more")


def test_workflows_are_ruled(app: Mainspring, place: str) -> None:
    with app.workflow("etl") as workflow:
        workflow.add("greet", "Ada")
    flow = workflow.enqueue().id
    job = app.enqueue("greet", ["Bob"]).id

    assert said("workflows", "pause", str(flow)) == f"{flow} paused; 1 of its 1 job paused"
    assert said("workflows", "resume", str(flow)) == f"{flow} under way; 1 of its 1 job resumed"
    assert said("workflows", "cancel", str(flow)) == f"{flow} cancelled; 1 of its 1 job cancelled"
    assert said("workflows", "replay", str(flow)) == f"{flow} under way; 1 of its 1 job replayed"
    assert_refused(in_process("workflows", "show", str(job)), "is no workflow", "mainspring jobs show")


def test_schedules_are_added_and_ruled(app: Mainspring, place: str) -> None:
    assert "active, next tick" in said("schedules", "add", "s", "greet", "Ada", "--every", "1h", "--overlap", "skip")
    assert said("schedules", "add", "s", "greet", "Ada", "--cron", "0 3 * * *", "--tz", "Europe/Berlin").endswith(
        "; it was there before, and is defined anew"
    )
    assert said("schedules", "pause", "s", "--reason", "holidays") == "s paused"
    assert app.schedules.get("s").reason == "holidays"
    assert said("schedules", "resume", "s").startswith("s active")
    assert app.job(said("schedules", "trigger", "s").split()[0]).snapshot.task == "greet"
    made = told("schedules", "backfill", "s", "--from", "2026-10-01T00:00:00Z", "--to", "2026-10-04T00:00:00Z", "--yes")
    assert (made["ticks"], len(made["jobs"])) == (3, 3)
    assert said("schedules", "remove", "s", "--yes") == "s removed"
    assert in_process("schedules", "pause", "s").returncode == 1


def test_what_holds_for_many_is_ruled(app: Mainspring, place: str) -> None:
    app.enqueue("fail", queue="mail")
    assert said("queues", "pause", "mail", "--reason", "moved").startswith("mail is paused, by ")
    assert said("queues", "resume", "mail") == "mail goes on"
    assert said("tasks", "pause", "fail").startswith("fail is paused, by ")
    assert said("tasks", "resume", "fail") == "fail goes on"
    tripped = in_process("breakers", "trip", "smtp", "--for", "5m")
    assert (tripped.returncode, tripped.stdout.startswith("smtp is open for 5m: tripped by ")) == (0, True)
    assert tripped.stderr.startswith("warning: under breaker smtp nothing has failed lately")
    assert said("breakers", "reset", "smtp") == "smtp is closed"
    assert in_process("breakers", "reset", "smtp").returncode == 1
    assert in_process("limits", "release", "gone").returncode == 1
    assert said("alerts", "add", "a", "dead", "--hold", "1m") == "a: dead(above=0, over=1h), looked at every 30s"
    assert said("alerts", "remove", "a") == "a removed"
    assert said("notifications", "add", "ops", "--email", "ops@example.org").startswith("ops: team default tells ops@")
    assert said("notifications", "remove", "ops") == "ops removed"
    assert said("teams", "set", "acme", "--max-pending", "7") == "acme may have 7 unfinished jobs"
    assert said("teams", "remove", "acme") == "acme may have as much as it likes"
    assert said("retention", "set", "--team", "acme", "--age", "7d") == "team acme: for 7d"
    assert said("retention", "remove", "--team", "acme") == "team acme: rule removed"
    assert in_process("retention", "remove", "--team", "acme").returncode == 1
    made = told("tokens", "create", "ci", "--grant", "acme=viewer")
    assert said("tokens", "revoke", made["id"]).endswith("lets nobody in any more")


def test_who_is_shown_no_workers_is_not_told_that_there_are_none(
    app: Mainspring, server: Server, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_URL", server.url)
    text, _ = app.tokens.create("visitor", {"acme": "viewer"})
    with app.worker():
        assert told("workers")["of_fleet"] is True
        assert "\nWorkers 1" in said("top")
        monkeypatch.setenv("MAINSPRING_TOKEN", text)

        assert said("workers").startswith("Workers are not shown here: ")
        assert told("workers") == {"workers": [], "of_fleet": False}
        assert "\nWorkers " not in said("top")


def test_dead_letters_are_replayed_at_once_and_discarded(app: Mainspring, place: str) -> None:
    ids = [app.enqueue("fail").id for _ in range(2)]
    drain(app)

    assert told("dead", "discard", "--id", str(ids[0])) == {"found": 1, "discarded": 1}
    if place.startswith("http"):
        assert_refused(in_process("dead", "replay", "--task", "fail", "--yes"), "--canary 0", "--url")
        report = told("dead", "replay", "--task", "fail", "--canary", "0", "--yes")
        assert (report["found"], report["replayed"], report["unfinished"]) == (1, 1, 1)
        assert app.job(ids[1]).state == "ready"


@pytest.mark.parametrize("command", [["discard"], ["replay", "--canary", "0"]], ids=["discard", "replay"])
def test_dead_letters_that_die_before_the_answer_are_left_alone(
    command: list[str], app: Mainspring, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(count: int) -> None:
        for _ in range(count):
            app.enqueue("fail")
        drain(app)

    def confirmed(deed: str, as_json: bool) -> bool:
        asked.append(deed)
        dies(4)
        return True

    asked: list[str] = []
    dies(1)
    monkeypatch.setattr(f"mainspring.cli.dead.{command[0]}.confirmed", confirmed)
    with app.worker() if command[0] == "replay" and not place.startswith("http") else nullcontext():
        done = in_process("dead", *command, "--task", "fail")

    assert asked == [f"{command[0]} 1 dead letter"]
    assert re.match("(Discarded|Replayed) 1 job", done.stdout), done


def test_a_job_is_followed_to_its_end(app: Mainspring, place: str) -> None:
    job = app.enqueue("say", run_after="0.5s").id

    with app.worker():
        lines = [json.loads(line) for line in said("jobs", "logs", str(job), "-f", "--json").splitlines()]

    assert [line["message"] for line in lines] == ["one", "two"]


def test_more_is_listed_than_a_server_tells_at_once(
    app: Mainspring, server: Server, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.enqueue_prepared([app.prepare("greet", [str(number)]) for number in range(1_050)])
    monkeypatch.setenv("MAINSPRING_URL", server.url)

    assert len({job["id"] for job in told("jobs", "list", "--limit", "2000")["jobs"]}) == 1_050
    assert len(told("jobs", "list", "--limit", "1010")["jobs"]) == 1_010


def test_a_team_is_sent_along(app: Mainspring, place: str) -> None:
    job = told("enqueue", "greet", "Ada", "--team", "acme")["id"]

    assert app.job(job).snapshot.team == "acme"
    assert [one["id"] for one in told("jobs", "list", "--team", "acme")["jobs"]] == [job]
    assert in_process("jobs", "show", job, "--team", "other").returncode == 1


def test_the_server_is_named_by_the_environment_for_an_app_that_names_no_database(
    app: Mainspring, server: Server, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_URL", server.url)

    done = in_process("enqueue", "greet", "Ada")
    assert (done.returncode, app.job(done.stdout.split()[0]).snapshot.task) == (0, "greet")
