"""`mainspring audit`, and that every command which changes something is on record before it does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.keys import new_key
from mainspring.service import person
from mainspring.testing import drain
from tests.cli.databases import migrated
from tests.cli.program import assert_refused, in_process, mainspring
from tests.support.databases import execute, table


def entries(url: str, *more: str) -> list[dict[str, Any]]:
    done = in_process("audit", "list", *more, "--url", url, "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return list(reversed(found))


@pytest.fixture
def made(url: str) -> dict[str, str]:
    """Return the ids of what there is to change."""
    app = Mainspring(url)

    @app.task
    def greet() -> None: ...

    @app.task(retry=Retry(max_attempts=1))
    def fail() -> None:
        raise ValueError("boom")

    acme = app.within("acme")
    dead = app.enqueue("fail")
    drain(app)
    with acme.workflow("etl") as wf:
        wf.add("greet")
    ids = {"job": acme.enqueue("greet").id, "workflow": wf.enqueue().id, "dead": dead.id}
    app.close()
    return {name: str(one) for name, one in ids.items()}


def test_every_command_that_changes_something_is_on_record(url: str, made: dict[str, str]) -> None:
    job, workflow, dead = made["job"], made["workflow"], made["dead"]
    asked = [
        (("jobs", "pause", job, "--reason", "wait"), "job.pause", job, "acme"),
        (("jobs", "resume", job), "job.resume", job, "acme"),
        (("jobs", "signal", job, "go", "s3cret"), "job.signal", job, "acme"),
        (("jobs", "cancel", job), "job.cancel", job, "acme"),
        (("jobs", "replay", dead), "job.replay", dead, "default"),
        (("jobs", "cancel", "--queue", "default", "--yes"), "job.cancel", None, None),
        (("workflows", "pause", workflow), "workflow.pause", workflow, "acme"),
        (("workflows", "resume", workflow), "workflow.resume", workflow, "acme"),
        (("workflows", "cancel", workflow), "workflow.cancel", workflow, "acme"),
        (("workflows", "replay", workflow), "workflow.replay", workflow, "acme"),
        (("schedules", "add", "s", "greet", "--every", "1h"), "schedule.add", "s", "default"),
        (("schedules", "add", "s", "greet", "--every", "1h", "--team", "acme"), "schedule.add", "@acme/s", "acme"),
        (("schedules", "pause", "@acme/s"), "schedule.pause", "@acme/s", "acme"),
        (("schedules", "resume", "s"), "schedule.resume", "s", "default"),
        (("schedules", "trigger", "s"), "schedule.trigger", "s", "default"),
        (
            ("schedules", "backfill", "s", "--from", "2026-01-01T00:00Z", "--to", "2026-01-01T01:30Z", "--yes"),
            "schedule.backfill",
            "s",
            "default",
        ),
        (("schedules", "remove", "s", "--yes"), "schedule.remove", "s", "default"),
        (("queues", "pause", "mail"), "queue.pause", "mail", None),
        (("queues", "resume", "mail"), "queue.resume", "mail", None),
        (("queues", "set", "mail", "--ageing", "1m"), "queue.set", "mail", None),
        (("queues", "give", "mail", "acme"), "queue.give", "mail", None),
        (("tasks", "pause", "greet"), "task.pause", "greet", None),
        (("tasks", "resume", "greet"), "task.resume", "greet", None),
        (("limits", "release", "smtp"), "limit.release", "smtp", None),
        (("breakers", "trip", "smtp"), "breaker.trip", "smtp", None),
        (("breakers", "reset", "smtp"), "breaker.reset", "smtp", None),
        (("teams", "set", "acme", "--rate", "1/s"), "team.set", "acme", "acme"),
        (("teams", "remove", "acme"), "team.remove", "acme", "acme"),
        (("retention", "set", "--queue", "mail", "--age", "1d"), "retention.set", "queue mail", None),
        (("retention", "remove", "--queue", "mail"), "retention.remove", "queue mail", None),
        (("tokens", "create", "ci", "--grant", "acme=viewer"), "token.create", "ci", None),
    ]
    for command, *_ in asked:
        done = in_process(*command, "--url", url)
        assert done.returncode in (0, 1), done.stderr

    found = entries(url, "-n", "100")
    assert [(one["action"], one["target"], one["team"]) for one in found] == [tuple(rest) for _, *rest in asked]
    assert {one["actor"] for one in found} == {person()}
    assert found[0]["details"] == {"reason": "wait"}
    assert "s3cret" not in json.dumps(found)
    assert in_process("audit", "verify", "--url", url).returncode == 0


@pytest.mark.parametrize(("verb", "more"), [("discard", ()), ("replay", ("--canary", "0", "--rate", "1000/s"))])
def test_what_is_done_with_dead_letters_is_on_record(
    url: str, made: dict[str, str], verb: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.replay.Replay.run", lambda replay: replay._report)  # nobody would run them

    in_process("dead", verb, "--task", "fail", "--yes", "--reason", "old", *more, "--url", url)
    in_process("dead", "discard", "--id", made["dead"], "--url", url)

    first, second = entries(url)
    assert (first["action"], first["target"]) == (f"dead.{verb}", None)
    assert first["details"] == {"found": 1, "task": "fail", "reason": "old"}
    assert (second["action"], second["target"]) == ("dead.discard", made["dead"])


def test_what_is_not_found_refused_or_not_confirmed_is_not_on_record(url: str, made: dict[str, str]) -> None:
    for command in (
        ("jobs", "cancel", "01a1ed28-4030-7234-8a21-0562f5981405"),
        ("jobs", "cancel", "--queue", "default"),
        ("schedules", "pause", "none"),
        ("queues", "pause", "no such name"),
        ("tasks", "pause", "no such name"),
        ("breakers", "trip", ""),
        ("teams", "set", "No Team"),
        ("secrets", "remove", "none"),
        ("secrets", "set", "../none"),
        ("secrets", "set", "empty"),
        ("retention", "remove", "--queue", "none"),
        ("retention", "set", "--state", "running", "--age", "1d"),
        ("retention", "set", "--age", "soon"),
        ("alerts", "remove", "none"),
        ("notifications", "remove", "none"),
    ):
        assert in_process(*command, "--url", url).returncode != 0

    assert entries(url) == []


def test_what_is_enqueued_is_on_record_together_with_its_job(url: str) -> None:
    done = in_process("enqueue", "greet", "Ada", "--key", "k", "--queue", "mail", "--url", url, "--json")
    in_process("enqueue", "greet", "--team", "acme", "--url", url)
    refused = in_process("enqueue", "greet", "--queue", "no such name", "--url", url)

    first, second = entries(url)
    assert (first["action"], first["target"], first["team"]) == (
        "job.enqueue",
        json.loads(done.stdout)["id"],
        "default",
    )
    assert first["details"] == {"task": "greet", "queue": "mail", "key": "k"}
    assert (first["actor"], second["team"], refused.returncode) == (person(), "acme", 2)


def test_that_a_notification_is_tried_out_is_on_record(sqlite_url: str) -> None:
    at = ("--url", migrated(sqlite_url))
    in_process("notifications", "add", "ops", "--email", "ops@example.org", *at)

    in_process("notifications", "test", "ops", *at)

    *_, last = entries(sqlite_url)
    assert (last["action"], last["target"], last["team"]) == ("notification.test", "ops", "default")


def test_that_a_secret_is_removed_is_on_record(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", new_key())
    app = Mainspring(migrated(url), team="acme")
    app.secrets.set("pw", "hunter2-topsecret")
    app.close()

    assert in_process("secrets", "remove", "pw", "--url", url).returncode == 1
    assert in_process("secrets", "remove", "pw", "--team", "acme", "--url", url).returncode == 0

    assert [(one["action"], one["target"]) for one in entries(url)] == [("secret.remove", "pw")]


@pytest.mark.parametrize("number", ["0", "-1", "9" * 23, "9" * 5_000])
def test_a_page_before_no_entry_is_refused(url: str, number: str) -> None:
    assert_refused(in_process("audit", "list", "--before", number, "--url", migrated(url)), "--before")


def test_a_log_that_was_changed_is_found_and_the_exit_code_says_so(url: str) -> None:
    migrated(url)
    for queue in ("a", "b", "c"):
        in_process("queues", "pause", queue, "--url", url)
    whole = mainspring("audit", "verify", "--url", url)
    execute(url, f"UPDATE {table(url, 'audit')} SET target = 'x' WHERE seq = 2")

    broken = mainspring("audit", "verify", "--url", url)
    told = in_process("audit", "verify", "--url", url, "--json")

    assert (whole.returncode, whole.stdout) == (0, "The log is as it was written: 3 entries.\n")
    assert (broken.returncode, broken.stderr) == (
        1,
        "error: the audit log is broken at entry 2: entry 2 is not as it was written\n",
    )
    assert (told.returncode, json.loads(told.stdout)["broken"]) == (1, 2)


def test_the_log_is_shown_to_people_a_page_at_a_time(url: str) -> None:
    migrated(url)
    assert "Nothing is on record" in in_process("audit", "list", "--url", url).stdout
    for queue in ("a", "b", "c"):
        in_process("queues", "pause", queue, "--url", url)

    header, last, more = mainspring("audit", "list", "-n", "1", "--url", url).stdout.splitlines()
    assert header.split() == ["Nr", "When", "Who", "What", "Of", "what", "Team"]
    assert last.split()[0] == "3"
    assert "queue.pause" in last
    assert more == "There may be more: add --before 3"
    assert [one["number"] for one in entries(url, "--before", "3")] == [1, 2]
    assert entries(url, "--team", "acme") == []
