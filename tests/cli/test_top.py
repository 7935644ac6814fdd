"""`mainspring top`, at a terminal and without one."""

from __future__ import annotations

import json
import signal
import termios
from contextlib import closing
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.cli.ids import short
from mainspring.model.job import JobState, Wish
from tests.cli.jobs import Jobs
from tests.cli.program import assert_refused, eventually, in_process
from tests.cli.terminal import CTRL_BACKSLASH, CTRL_C, CTRL_Z, ENTER, ENTERED, ESCAPE, LEFT, NO_KEY, TAB, Terminal

TOP = ("-m", "mainspring", "top", "--every", "0.1s")
BROKEN = """
from mainspring.cli.main import run
from mainspring.cli.top import live
draws = iter([live.draw])
live.draw = lambda *args: next(draws)(*args)
import sys
sys.argv = ["mainspring", "top", "--every", "0.1s"]
run()
"""
"""A program that can draw once."""

TROUBLED = """
from mainspring.cli.main import run
from mainspring.cli.top.snapshot import Watch
from mainspring.errors import StoreUnavailable
look, looks = Watch.look, iter(range(20))
def troubled(*args):
    if next(looks, 0) > 0:
        raise StoreUnavailable("the server is away")
    return look(*args)
Watch.look = troubled
import sys
sys.argv = ["mainspring", "top", "--every", "0.1s"]
run()
"""
"""A program whose database is away for a while after the first look."""


def assert_restored(terminal: Terminal) -> None:
    assert terminal.settings == terminal.before
    assert terminal.said.count(ENTERED) == terminal.said.count(LEFT) == 1
    assert terminal.said.index(ENTERED) < terminal.said.index(LEFT)
    assert terminal.said.rindex(b"\x1b[?25h") > terminal.said.rindex(b"\x1b[?25l"), "the cursor is hidden"


def test_a_job_is_found_opened_and_left_again_by_keys(jobs: Jobs, folder: Path) -> None:
    jobs.fail(task="charge")
    job = jobs.run(task="import_rows", queue="rows")
    jobs.progress(job, 3, 4, "row 3")
    jobs.say(job, "halfway there")

    with Terminal(*TOP, folder=folder) as terminal:
        terminal.wait_for("Running 1")
        terminal.wait_for("75%")
        terminal.wait_for(short(job.id))
        terminal.wait_for("ValueError: no luck")
        terminal.press(TAB, TAB, ENTER)
        terminal.wait_for(str(job.id))
        terminal.wait_for("halfway there")
        jobs.say(job, "halfway there", "nearly done")
        terminal.wait_for("nearly done")
        terminal.press(ESCAPE)
        terminal.wait_for("Workers 1")
        terminal.press(b"q")
        assert terminal.end() == 0
        assert_restored(terminal)


def test_a_queue_is_paused_after_a_yes_and_resumed_likewise(jobs: Jobs, folder: Path) -> None:
    jobs.add(queue="mail")

    with Terminal(*TOP, folder=folder) as terminal:
        terminal.wait_for("Queues 1")
        terminal.press(b"p")
        terminal.wait_for("Pause queue mail? y/n")
        terminal.press(b"n")
        terminal.wait_for("Nothing was changed.")
        assert not jobs.store.pauses()
        terminal.press(b"p", b"y")
        terminal.wait_for("Queue mail is paused")
        assert [pause.name for pause in jobs.store.pauses()] == ["mail"]
        terminal.wait_for("  paused")
        terminal.press(b"p")
        terminal.wait_for("Resume queue mail? y/n")
        terminal.press(b"y")
        terminal.wait_for("Queue mail goes on.")
        assert not jobs.store.pauses()
        terminal.press(b"q")
        assert terminal.end() == 0

    assert [record.action for record in Mainspring().audit.list()] == ["queue.resume", "queue.pause"]


def test_a_job_is_cancelled_and_another_replayed(jobs: Jobs, folder: Path) -> None:
    failed, running = jobs.fail(task="charge"), jobs.run(task="import_rows")

    with Terminal(*TOP, folder=folder) as terminal:
        terminal.wait_for("Failures 1")
        terminal.press(TAB, TAB, b"c")
        terminal.wait_for("Cancel import_rows")
        terminal.press(b"y")
        terminal.wait_for("was asked to cancel.")
        terminal.press(TAB, b"r")
        terminal.wait_for("Replay charge")
        terminal.press(b"y")
        terminal.wait_for("is ready.")
        terminal.wait_for("Failures 0")

    assert jobs.get(running.id).wish is Wish.CANCEL
    assert jobs.get(failed.id).state is JobState.READY


@pytest.mark.parametrize("key", [CTRL_C, b"q"])
def test_the_terminal_is_given_back_however_it_ends(key: bytes, jobs: Jobs, folder: Path) -> None:
    with Terminal(*TOP, folder=folder) as terminal:
        terminal.wait_for("Queues 0")
        assert [terminal.key(termios.VSUSP), terminal.key(termios.VQUIT)] == [NO_KEY, NO_KEY]
        terminal.press(CTRL_Z, CTRL_BACKSLASH, b"?")
        terminal.wait_for("this help")
        terminal.press(b"x", key)
        assert terminal.end() == 0
        assert_restored(terminal)
        assert "Traceback" not in terminal.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_the_terminal_is_given_back_when_it_is_terminated(number: int, jobs: Jobs, folder: Path) -> None:
    with Terminal(*TOP, folder=folder) as terminal:
        terminal.wait_for("Queues 0")
        terminal.signal(number)
        assert terminal.end() == 0
        assert_restored(terminal)


def test_it_ends_with_its_terminal(jobs: Jobs, folder: Path) -> None:
    with Terminal(*TOP, folder=folder) as terminal:
        terminal.wait_for("Queues 0")
        assert terminal.close() == 0


def test_the_terminal_is_given_back_when_something_breaks(jobs: Jobs, folder: Path) -> None:
    with Terminal("-c", BROKEN, folder=folder) as terminal:
        assert terminal.end() == 1
        assert_restored(terminal)
        assert "StopIteration" in terminal.text


def test_trouble_with_the_database_is_told_while_it_lasts(jobs: Jobs, folder: Path) -> None:
    with Terminal("-c", TROUBLED, folder=folder) as terminal:
        terminal.wait_for("Can't look, trying on: the server is away.")
        eventually(lambda: terminal.said.rfind(b"q quit") > terminal.said.rfind(b"trying on"))
        terminal.press(b"q")
        assert terminal.end() == 0
        assert_restored(terminal)


def test_the_screen_follows_the_size_of_the_terminal(jobs: Jobs, folder: Path) -> None:
    jobs.fail(task="a_task_with_a_long_name", queue="a_queue_with_a_long_name")

    with Terminal(*TOP, folder=folder) as terminal:
        for width, height in ((80, 24), (130, 40), (50, 20), (30, 8)):
            terminal.resize(width, height)
            terminal.wait_for_size(width, height)


def test_without_a_terminal_all_is_told_once(jobs: Jobs) -> None:
    jobs.fail(task="charge")
    jobs.run(task="import_rows", queue="rows")

    done = in_process("top")

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for told in ("1 running", "Queues 1", "Workers 1", "import_rows", "charge", "ValueError: no luck"):
        assert told in done.stdout


def test_without_a_terminal_nothing_is_cut(jobs: Jobs) -> None:
    jobs.run(task="t" * 128, queue="q" * 128)

    lines = in_process("top").stdout.splitlines()

    assert sum("t" * 128 in line for line in lines) == sum(line.startswith("q" * 128) for line in lines) == 1
    assert max(map(len, lines)) < 300


def test_a_team_that_is_shown_no_workers_is_not_told_that_there_are_none(jobs: Jobs) -> None:
    for team, told in (("acme", False), ("default", True)):
        done = in_process("top", "--team", team)

        assert "Running 0" in done.stdout
        assert ("\nWorkers " in done.stdout) == told


def test_it_looks_into_either_database(url: str) -> None:
    with closing(Mainspring(url)) as app:
        app.enqueue("charge", queue="mail")

    done = in_process("top", "--url", url)

    assert done.returncode == 0
    assert "1 ready" in done.stdout
    assert "unserved" in done.stdout


def test_once_at_a_terminal_takes_no_screen(jobs: Jobs, folder: Path) -> None:
    with Terminal(*TOP, "--once", folder=folder) as terminal:
        assert terminal.end() == 0
        assert ENTERED not in terminal.said
        assert "Queues 0" in terminal.text


def test_json_is_one_document(jobs: Jobs) -> None:
    failed, running = jobs.fail(task="charge"), jobs.run(task="import_rows", queue="rows")
    jobs.progress(running, 1, 4)

    told = json.loads(in_process("top", "--json").stdout)

    assert [queue["name"] for queue in told["queues"]] == ["rows"]
    assert [worker["name"] for worker in told["workers"]] == ["host:1234"]
    assert [(job["id"], job["progress"]) for job in told["running"]] == [(str(running.id), {"done": 1, "total": 4})]
    assert [(job["id"], job["error"]["message"]) for job in told["failures"]] == [(str(failed.id), "no luck")]


def test_a_team_sees_its_own(jobs: Jobs) -> None:
    jobs.fail(task="charge")

    assert "charge" not in in_process("top", "--team", "acme").stdout


def test_mistakes_are_told_in_a_sentence(jobs: Jobs) -> None:
    assert_refused(in_process("top", "--every", "0s"), "--every", "0.1s or longer")
    assert_refused(in_process("top", "--url", "sqlite:///nowhere.db"), "there is no database")
