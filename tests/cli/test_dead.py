"""`mainspring dead`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.cli.ids import short
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.outcome import Failed
from mainspring.model.retry import Retry
from mainspring.service import person
from tests.cli.jobs import Jobs, jobs_in
from tests.cli.program import assert_refused, in_process, mainspring


def failed(jobs: Jobs, mark: str = "aaaa11112222", message: str = "no luck", **like: str) -> Job:
    return jobs.end(Failed(Failure(type="shop.Trouble", message=message, fingerprint=mark)), **like)


@pytest.fixture
def worker(jobs: Jobs, sqlite_url: str) -> Iterator[Mainspring]:
    """Greets everybody but Eve. Not at work yet, or it would take the jobs that a test wants to fail by itself."""
    app = Mainspring(sqlite_url)

    @app.task(retry=Retry(max_attempts=1))
    def greet(name: str, times: int, loud: bool) -> str:
        if name == "Eve":
            raise ValueError("not her")
        return name

    yield app
    app.close()


def test_groups_are_shown_with_what_tells_them_apart(url: str) -> None:
    with jobs_in(url) as jobs:
        failed(jobs, "aaaa111122223333", task="send", message="code 1")
        failed(jobs, "aaaa111122223333", task="send", message="code 2")
        failed(jobs, "aaaa11112222bbbb", message="[bold]other\nline")

    done = mainspring("dead", "groups", "--url", url)

    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["Group", "Jobs", "Task", "Error", "First", "Last"]
    assert lines[0].split()[:6] == ["aaaa11112222b", "1", "greet", "Trouble:", "[bold]other", "line"]
    assert lines[1].split()[:6] == ["aaaa111122223", "2", "send", "Trouble:", "code", "2"]


def test_groups_for_programs(jobs: Jobs) -> None:
    job = failed(jobs, queue="mail")
    failed(jobs, "bbbb")
    assert job.finished_at is not None

    done = in_process("dead", "groups", "--queue", "mail", "--json")

    assert json.loads(done.stdout) == {
        "groups": [
            {
                "fingerprint": "aaaa11112222",
                "task": "greet",
                "type": "shop.Trouble",
                "message": "no luck",
                "count": 1,
                "first_seen": job.finished_at.isoformat(),
                "last_seen": job.finished_at.isoformat(),
                "sample": str(job.id),
            }
        ]
    }


def test_nothing_dead_is_said(jobs: Jobs) -> None:
    jobs.succeed()

    assert in_process("dead", "groups").stdout == in_process("dead", "list").stdout == "No dead letters.\n"
    assert in_process("dead", "groups", "--task", "x").stdout == "No dead letter is like that.\n"
    assert in_process("dead", "discard", "--task", "x").stdout == "No dead letter is like that.\n"
    assert in_process("dead", "replay", "--task", "x").stdout == "No dead letter is like that.\n"


def test_letters_are_listed_in_pages(jobs: Jobs) -> None:
    one, two, three = failed(jobs), failed(jobs), failed(jobs, "bbbb", queue="mail")

    shown = in_process("dead", "list", "aa").stdout
    assert [line.split()[0] for line in shown.splitlines()[1:]] == [short(two.id), short(one.id)]
    assert "Trouble: no luck" in shown
    page = json.loads(in_process("dead", "list", "-n", "1", "--json").stdout)
    assert ([job["id"] for job in page["jobs"]], page["before"]) == ([str(three.id)], str(three.id))
    rest = json.loads(in_process("dead", "list", "--before", short(three.id), "--json").stdout)
    assert [job["id"] for job in rest["jobs"]] == [str(two.id), str(one.id)]
    assert f"--before {short(three.id)}" in in_process("dead", "list", "-n", "1").stdout


def test_a_group_is_replayed_by_the_beginning_of_its_name(jobs: Jobs, worker: Mainspring) -> None:
    letters = [failed(jobs) for _ in range(7)]

    with worker.worker(concurrency=2):
        done = in_process("dead", "replay", "aaaa", "--yes", "--rate", "1000/s", "--reason", "mended")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Replayed 7 jobs: 7 succeeded.\n"
    assert {jobs.get(job.id).state for job in letters} == {JobState.SUCCEEDED}
    assert jobs.get(letters[0].id).reason == f"replayed by {person()}: mended"


def test_a_replay_that_fails_stops_and_says_why(jobs: Jobs, worker: Mainspring) -> None:
    for _ in range(9):
        failed(jobs)

    with worker.worker(concurrency=2):
        done = in_process("dead", "replay", "aaaa", "-y", "--canary", "2", "--stop-at", "10%", "--set", "name=Eve")

    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first.startswith("Replayed 2 jobs: ")
    assert first.endswith("7 left.")
    assert second.startswith("Stopped, because ")
    assert second.endswith("failed again, more than 10%.")


def test_programs_are_told_what_came_of_a_replay(jobs: Jobs, worker: Mainspring) -> None:
    job = failed(jobs)

    with worker.worker(concurrency=2):
        done = in_process("dead", "replay", "--id", short(job.id), "--json")

    assert json.loads(done.stdout) == {
        "found": 1,
        "replayed": 1,
        "succeeded": 1,
        "failed": 0,
        "cancelled": 0,
        "unfinished": 0,
        "left": 0,
        "stopped": None,
    }


def test_arguments_are_changed_as_the_app_knows_them(jobs: Jobs, folder: Path, worker: Mainspring) -> None:
    (folder / "shop.py").write_text(
        "from mainspring import Mainspring\n"
        "app = Mainspring()\n"
        "@app.task\n"
        "def greet(name: str, times: int, loud: bool) -> str: ...\n"
    )
    job = failed(jobs)

    with worker.worker(concurrency=2):
        refused = in_process("dead", "replay", "aaaa", "-y", "--set", "times=often", "--app", "shop")
        done = in_process("dead", "replay", "aaaa", "-y", "--set", "name=Bob", "--app", "shop")

    assert_refused(refused, "argument 'times'", "got `str`")
    assert done.stdout == "Replayed 1 job: 1 succeeded.\n"
    assert (jobs.get(job.id).result, jobs.get(job.id).payload) == ('"Bob"', '{"args":["Bob",1],"kwargs":{"loud":true}}')


def test_letters_are_discarded(jobs: Jobs) -> None:
    one, two, other = failed(jobs), failed(jobs), failed(jobs, "bbbb")

    assert in_process("dead", "discard", "aaaa", "--yes", "--reason", "a typo").stdout == "Discarded 2 jobs.\n"
    assert json.loads(in_process("dead", "discard", "--id", str(other.id), "--json").stdout) == {
        "found": 1,
        "discarded": 1,
    }

    assert {jobs.get(job.id).state for job in (one, two, other)} == {JobState.CANCELLED}
    assert jobs.get(one.id).reason == f"discarded by {person()}: a typo"


@pytest.mark.parametrize("command", ["replay", "discard"])
def test_without_a_terminal_nothing_is_done_to_many_unasked(command: str, jobs: Jobs) -> None:
    job = failed(jobs)

    assert_refused(in_process("dead", command, "aaaa"), f"this would {command} 1 dead letter", "--yes")
    assert jobs.get(job.id) == job


def test_at_a_terminal_the_user_is_asked(jobs: Jobs) -> None:
    job = failed(jobs)
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "mainspring", "dead", "discard", "aaaa"]

    process = subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(end)
    os.write(terminal, b"n\n")
    out, err = process.communicate(timeout=60)
    os.close(terminal)

    assert "Discard 1 dead letter? [y/N]" in err
    assert "Nothing was changed." in out
    assert jobs.get(job.id) == job


@pytest.mark.parametrize("command", ["list", "replay", "discard"])
def test_a_group_that_is_not_there_or_not_clear_is_told(command: str, jobs: Jobs) -> None:
    failed(jobs, "aaaa1")
    failed(jobs, "aaaa2")

    missing = in_process("dead", command, "zzz")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "no dead letters have a fingerprint that begins with 'zzz'" in missing.stderr
    assert_refused(in_process("dead", command, "aaa"), "more than one group begins with 'aaa': aaaa1, aaaa2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["replay"], ["GROUP, --queue or --task, or by --id", "neither"]),
        (["discard", "aaaa", "--id", "x"], ["both"]),
        (["discard", "--id", "xyz"], ["id of a job", "'xyz'"]),
        (["replay", "aaaa", "--rate", "fast"], ["expected --rate", "'20/s'", "'fast'"]),
        (["replay", "aaaa", "--stop-at", "120%"], ["expected --stop-at to be a share such as 0.2 or 20%"]),
        (["replay", "aaaa", "--stop-at", "half"], ["expected --stop-at"]),
        (["replay", "aaaa", "--set", "name"], ["expected --set to be NAME=VALUE", "'name'"]),
        (["replay", "aaaa", "--canary", "-1"], ["--canary"]),
        (["replya"], ["did you mean 'replay'?"]),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: list[str], jobs: Jobs) -> None:
    assert_refused(in_process("dead", *arguments), *words)
