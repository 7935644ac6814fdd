"""What is shown of long work: to a person at a terminal, and to nobody else."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.cli.jobs import logs
from mainspring.model.journal import LogEntry
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from tests.cli.jobs import Jobs
from tests.cli.program import in_process, mainspring, running
from tests.cli.terminal import CTRL_C, Terminal

LONG = ("-m", "mainspring", "jobs", "replay", "--task", "charge", "--yes")


@pytest.fixture
def letters(jobs: Jobs) -> Jobs:
    for _ in range(3):
        jobs.fail(task="charge")
    return jobs


def test_a_terminal_sees_how_far_it_is(letters: Jobs, folder: Path) -> None:
    with Terminal(*LONG, folder=folder) as terminal:
        assert terminal.end() == 0
        assert "Replay jobs" in terminal.text
        assert "3/3" in terminal.text
        assert "Replayed 3 jobs." in terminal.text


def test_who_reads_json_sees_nothing_else(letters: Jobs, folder: Path) -> None:
    with Terminal(*LONG, "--json", folder=folder) as terminal:
        assert terminal.end() == 0
        assert "Replay jobs" not in terminal.text
        assert '"replayed": 3' in terminal.text


def test_without_a_terminal_there_is_only_the_outcome(letters: Jobs, folder: Path) -> None:
    done = mainspring(*LONG[2:], folder=folder)

    assert (done.stdout, done.stderr) == ("Replayed 3 jobs.\n", "")


def test_what_is_done_in_one_go_shows_that_it_goes_on(folder: Path) -> None:
    with Terminal("-m", "mainspring", "migrate", folder=folder) as terminal:
        assert terminal.end() == 0
        assert "Migrate" in terminal.text
        assert "0:00:0" in terminal.text


def test_who_follows_a_log_is_told_why_nothing_comes_and_how_it_ended(jobs: Jobs, folder: Path) -> None:
    waiting, failed = jobs.add(delay=3_600), jobs.fail()

    with Terminal("-m", "mainspring", "jobs", "logs", "-f", str(waiting), folder=folder) as terminal:
        terminal.wait_for("It is scheduled: what it will say comes here")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
    with Terminal("-m", "mainspring", "jobs", "logs", "-f", str(failed.id), folder=folder) as terminal:
        assert terminal.end() == 0
        assert "It has finished: failed." in terminal.text


def test_who_follows_a_job_that_is_pruned_meanwhile_is_not_told_that_it_runs(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, told = jobs.run(), list[str]()

    def following(*_: object) -> Iterator[LogEntry]:
        jobs.store.settle([settle(job, Succeeded("null"))])
        jobs.store.prune(timedelta(0))
        yield from ()

    monkeypatch.setattr(logs, "following", following)
    monkeypatch.setattr(logs, "aside", told.append)

    assert in_process("jobs", "logs", "-f", str(job.id)).returncode == 0
    assert told == ["It is not there any more: finished jobs are pruned after a while."]


def test_a_log_that_is_followed_into_a_pipe_is_that_and_nothing_else(jobs: Jobs, folder: Path) -> None:
    job = jobs.run()
    jobs.say(job, "it is red", level="error")

    with running("jobs", "logs", "-f", str(job.id), folder=folder) as follower:
        follower.wait_for("it is red")
        follower.signal(signal.SIGINT)
        assert follower.end() == 130

    (line,) = follower.lines
    assert line.endswith("  error    it is red\n")
    assert "\x1b" not in line
