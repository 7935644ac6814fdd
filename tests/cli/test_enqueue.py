"""`mainspring enqueue`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from mainspring.model.job import Job, JobState
from mainspring.model.payload import decode_call
from tests.cli.program import assert_refused, in_process, mainspring
from tests.cli.projects import jobs_at, write


def enqueued(url: str, *arguments: str) -> Job:
    """Enqueue with these arguments, and return the newest job."""
    done = in_process("enqueue", "--url", url, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return jobs_at(url)[-1]


def test_enqueue_prints_the_id_and_the_state(url: str) -> None:
    done = mainspring("enqueue", "greet", "Ada", "--url", url)

    (job,) = jobs_at(url)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{job.id} ready\n", "")
    assert (job.task, job.queue, job.state) == ("greet", "default", JobState.READY)


def test_a_job_may_be_given_an_expiry(sqlite_url: str) -> None:
    job = enqueued(sqlite_url, "greet", "--expires", "1h")

    assert job.expires_at == job.run_at + timedelta(hours=1)
    assert_refused(in_process("enqueue", "greet", "--expires", "never", "--url", sqlite_url))


def test_programs_are_told_in_json(sqlite_url: str) -> None:
    done = in_process("enqueue", "greet", "--run-after", "10m", "--json", "--url", sqlite_url)

    told = json.loads(done.stdout)
    assert UUID(told["id"]) == jobs_at(sqlite_url)[0].id
    assert (told["state"], told["task"], told["queue"]) == ("scheduled", "greet", "default")


@pytest.mark.parametrize(
    ("arguments", "args", "kwargs"),
    [
        ([], [], {}),
        (["Ada"], ["Ada"], {}),
        (["1", "1.5", "true", "null", "[1]", '{"a": 1}'], [1, 1.5, True, None, [1], {"a": 1}], {}),
        (['"1"', '"a=b"'], ["1", "a=b"], {}),
        (["NaN", "Infinity", "01", "", "{", "2026-11-15"], ["NaN", "Infinity", "01", "", "{", "2026-11-15"], {}),
        (["name=Ada", "loud=true", "x="], [], {"name": "Ada", "loud": True, "x": ""}),
        (["1", "name=Ada=Bob"], [1], {"name": "Ada=Bob"}),
        (["x y=z", "=z", "1=z"], ["x y=z", "=z", "1=z"], {}),
        (["--kwargs", '{"name": "Ada"}', "loud=false"], [], {"name": "Ada", "loud": False}),
        (["--", "-5", "--x"], [-5, "--x"], {}),
        (["--", "-5", '"--app"', "-app"], [-5, "--app", "-app"], {}),
    ],
)
def test_each_argument_is_json_or_else_text(
    arguments: list[str], args: list[object], kwargs: dict[str, object], sqlite_url: str
) -> None:
    call = decode_call(enqueued(sqlite_url, "greet", *arguments).payload)

    assert (call.args, call.kwargs) == (args, kwargs)


def test_a_job_can_be_wanted_otherwise_than_its_task_says(sqlite_url: str) -> None:
    job = enqueued(sqlite_url, "greet", "--queue", "mail", "--priority", "high", "--key", "k")

    assert (job.queue, job.priority, job.key) == ("mail", 10, "k")
    assert enqueued(sqlite_url, "greet", "--priority", "99").priority == 99


def test_a_job_can_be_due_at_an_instant(sqlite_url: str) -> None:
    job = enqueued(sqlite_url, "greet", "--run-at", "2100-01-01T10:00:00+01:00")

    assert (job.state, job.run_at) == (JobState.SCHEDULED, datetime(2100, 1, 1, 9, tzinfo=UTC))


def test_a_second_job_with_the_same_key_is_the_first(sqlite_url: str) -> None:
    first, second = (enqueued(sqlite_url, "greet", "--key", "once") for _ in range(2))

    assert first.id == second.id


def test_a_job_that_waits_can_be_changed_by_its_key(sqlite_url: str) -> None:
    first = enqueued(sqlite_url, "greet", "1", "--key", "k")
    again = enqueued(sqlite_url, "greet", "2", "--key", "k", "--if-taken", "reschedule", "--run-after", "1h")

    assert (again.id, decode_call(again.payload).args, again.state) == (first.id, [2], JobState.SCHEDULED)


def test_a_repeated_idempotency_key_is_the_first_job(sqlite_url: str) -> None:
    options = ("--idempotency-key", "order-42", "--idempotency-ttl", "7d")
    first, second = (enqueued(sqlite_url, "greet", *options) for _ in range(2))

    assert first.id == second.id


def test_an_apps_task_says_what_its_jobs_are_like(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py")

    assert enqueued(sqlite_url, "fail", "7", "--app", "tasks:app").queue == "mail"


def test_without_an_address_the_apps_own_database_is_used(folder: Path) -> None:
    write(folder / "tasks.py", "from mainspring import Mainspring\napp = Mainspring('sqlite:///its-own.db')")

    done = mainspring("enqueue", "anything", "--app", "tasks", folder=folder)

    assert done.returncode == 0
    assert len(jobs_at(f"sqlite:///{folder}/its-own.db")) == 1


def test_without_an_app_the_environment_names_the_database(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", sqlite_url)

    assert in_process("enqueue", "greet").returncode == 0
    assert len(jobs_at(sqlite_url)) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["TASK"]),
        (["not a name"], ["task", "'not a name'"]),
        (["greet", "--app", "tasks"], ["missing a required argument: 'name'"]),
        (["greet", "7", "--app", "tasks"], ["argument 'name'", "got `int`: 7"]),
        (["greet", "Ada", "nmae=Bob", "--app", "tasks"], ["nmae"]),
        (["gret", "Ada", "--app", "tasks"], ["no task is named 'gret'", "did you mean 'greet'?"]),
        (["greet", "--app", "task"], ["did you mean 'tasks'?"]),
        (["greet", "a=1", "a=2"], ["'a' is given twice"]),
        (["greet", "a=1", "--kwargs", '{"a": 1}'], ["'a' is given twice"]),
        (["greet", "--kwargs", "[1]"], ["--kwargs", "JSON object", "'[1]'"]),
        (["greet", "--kwargs", "{x}"], ["--kwargs", "JSON object", "'{x}'"]),
        (["greet", "--priority", "hihg"], ["--priority", "did you mean 'high'?"]),
        (["greet", "--priority", "101"], ["--priority", "0 to 100", "got: 101"]),
        (["greet", "--priority", "9" * 100_000], ["0 to 100", "'9999"]),
        (["greet", "[" * 100_000], ["64 levels of nesting", "'[[["]),
        (["greet", "--kwargs", '{"a":' * 100_000], ["64 levels of nesting"]),
        (["greet", "--run-after", "later"], ["--run-after", "'90s'", "'later'"]),
        (["greet", "--run-at", "tomorrow"], ["--run-at", "2030-12-31T09:00:00Z", "'tomorrow'"]),
        (["greet", "--run-at", "2030-01-01T09:00"], ["--run-at", "time zone", "'2030-01-01T09:00'"]),
        (["greet", "--run-at", "2030-01-01T09:00Z", "--run-after", "1m"], ["run_at or run_after", "both"]),
        (["greet", "--", "-5", "--app", "tasks"], ["expected options before --", "'--app'", """'"--app"'"""]),
        (["greet", "--", "--url=sqlite:///x.db"], ["expected options before --", "'--url=sqlite:///x.db'"]),
        (["greet", "--queue", "a b"], ["queue", "'a b'"]),
        (["greet", "--key", ""], ["key"]),
        (["greet", "--if-taken", "replace"], ["expected a key with if_taken='replace'"]),
        (["greet", "--key", "k", "--if-taken", "replase"], ["--if-taken", "replase", "replace", "reschedule"]),
        (["greet", "--idempotency-key", ""], ["idempotency_key"]),
        (["greet", "--idempotency-ttl", "1h"], ["expected an idempotency_key with idempotency_ttl"]),
        (["greet", "--idempotency-key", "a", "--idempotency-ttl", "soon"], ["--idempotency-ttl", "'soon'"]),
        (["greet", "99999999999999999999999"], ["argument 1"]),
        (["greet", "--url", ""], ["sqlite:///mainspring.db"]),
        (["greet", "--url", "nonsense"], ["sqlite:///mainspring.db"]),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_enqueued(
    arguments: list[str], words: list[str], folder: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "tasks.py")
    monkeypatch.setenv("MAINSPRING_URL", sqlite_url)

    assert_refused(in_process("enqueue", *arguments), *words)
    assert jobs_at(sqlite_url) == []
