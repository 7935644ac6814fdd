"""`mainspring queues` and `mainspring tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from mainspring import Mainspring
from mainspring.service import person
from tests.cli.databases import migrated
from tests.cli.jobs import Jobs, jobs_in
from tests.cli.program import in_process, mainspring
from tests.cli.projects import write


def test_queues_are_listed_with_what_waits_and_who_paused_them(url: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    with jobs_in(url):
        pass
    with closing(Mainspring(url)) as app:
        app.queues.pause("mail", reason="the server is down", by="ada")

    done = mainspring("queues", "--url", url)
    told = json.loads(in_process("queues", "--url", url, "--json").stdout)

    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Queue", "Ready", "Running", "Later", "Blocked", "Paused", "Oldest", "Workers", "State"]
    assert any(line.startswith("mail") and line.rstrip().endswith("paused") for line in lines)
    assert lines[-1].startswith("mail is paused for ")
    assert lines[-1].endswith("by ada: the server is down")
    assert max(map(len, lines[:-1])) <= 80
    (mail,) = [queue for queue in told["queues"] if queue["name"] == "mail"]
    assert (mail["paused"]["by"], mail["paused"]["reason"]) == ("ada", "the server is down")
    assert set(mail) == {"name", "paused", "jobs", "more", "ageing_seconds", "oldest_ready_seconds", "workers", "team"}


def test_an_empty_database_says_so(sqlite_url: str) -> None:
    done = in_process("queues", "--url", migrated(sqlite_url))

    assert (done.returncode, done.stdout.startswith("No queue in ")) == (0, True)


def test_queues_are_paused_and_resumed(jobs: Jobs) -> None:
    paused = in_process("queues", "pause", "mail", "other", "--reason", "a deploy")
    again = in_process("queues", "pause", "mail", "--by", "ada", "--json")
    resumed = in_process("queues", "resume", "mail", "other")

    assert paused.stdout == f"mail is paused, by {person()}: a deploy\nother is paused, by {person()}: a deploy\n"
    assert [(one["name"], one["by"]) for one in json.loads(again.stdout)["paused"]] == [("mail", "ada")]
    assert (resumed.returncode, resumed.stdout) == (0, "mail goes on\nother goes on\n")


def test_a_queue_that_nobody_uses_is_paused_with_a_warning(jobs: Jobs) -> None:
    jobs.add(queue="mail")

    done, meant = in_process("queues", "pause", "mial"), in_process("queues", "pause", "mail")

    assert (done.returncode, meant.stderr) == (0, "")
    assert done.stderr == "warning: queue mial has no jobs and no worker, did you mean 'mail'?\n"


def test_to_resume_what_is_not_paused_is_no_success(jobs: Jobs) -> None:
    in_process("queues", "pause", "mail")

    done = in_process("queues", "resume", "mial")
    told = in_process("tasks", "resume", "greet", "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: queue 'mial' was not paused, did you mean 'mail'?\n"
    assert (told.returncode, json.loads(told.stdout)) == (1, {"resumed": [], "missing": ["greet"]})


def test_a_wrong_name_is_refused_before_anything_is_done(jobs: Jobs) -> None:
    for group in ("queues", "tasks"):
        done = in_process(group, "pause", "fine", "not fine")
        assert (done.returncode, done.stderr.startswith("error: expected ")) == (2, True)
    assert jobs.store.pauses() == []


def test_options_that_the_command_would_not_hear_are_refused(jobs: Jobs) -> None:
    done = in_process("queues", "--json", "pause", "mail")

    assert (done.returncode, done.stderr.split(": ")[1]) == (2, "write the options after the command")
    assert jobs.store.pauses() == []


def test_tasks_are_paused_listed_and_resumed(jobs: Jobs) -> None:
    assert in_process("tasks").stdout == "No task is paused.\n"
    assert in_process("tasks", "pause", "greet", "--by", "ada").stdout == "greet is paused, by ada\n"
    assert in_process("tasks").stdout.splitlines()[1].split()[::3] == ["greet", "ada"]
    assert [one["name"] for one in json.loads(in_process("tasks", "--json").stdout)["paused"]] == ["greet"]
    assert in_process("tasks", "resume", "greet").stdout == "greet goes on\n"


def test_a_task_that_the_app_does_not_have_is_refused_before_anything_is_done(jobs: Jobs, folder: Path) -> None:
    write(folder / "shop.py")

    done = in_process("tasks", "pause", "greet", "gret", "--app", "shop")

    assert (done.returncode, done.stderr) == (2, "error: no task is named 'gret', did you mean 'greet'?\n")
    assert jobs.store.pauses() == []
    assert in_process("tasks", "pause", "greet", "--app", "shop").returncode == 0
    assert in_process("tasks", "--app", "shop").stdout.splitlines()[1].split()[0] == "greet"
    assert in_process("tasks", "resume", "greet", "--app", "shop").stdout == "greet goes on\n"


def test_ageing_is_set_shown_and_switched_off(jobs: Jobs) -> None:
    assert in_process("queues", "set", "mail", "--ageing", "10m").stdout == (
        "mail: a point of priority is worth 10m of waiting\n"
    )
    assert "mail has ageing on: a point of priority is worth 10m of waiting" in in_process("queues").stdout
    off = in_process("queues", "set", "mail", "--ageing", "off", "--json")
    assert json.loads(off.stdout) == {"name": "mail", "ageing_seconds": None}
    assert [queue.ageing for queue in jobs.store.queues() if queue.name == "mail"] == []


def test_an_ageing_that_makes_no_sense_is_refused(jobs: Jobs) -> None:
    for wrong in ("soon", "0", "10ms"):
        done = in_process("queues", "set", "mail", "--ageing", wrong)
        assert (done.returncode, " ".join(done.stderr.split())) == (
            2,
            "error: expected --ageing to be a length of time like 10m, of 1s or longer, or off for strict priority, "
            f"got: {wrong!r}",
        )
