"""`mainspring worker --reload`: started again when the code changes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mainspring.cli.reload import Watched, _keep_fresh
from mainspring.clock import SystemClock
from mainspring.model.job import JobState
from tests.cli.program import Running, eventually, in_process, running
from tests.cli.projects import jobs_at, sessions_at, write
from tests.cli.stopping import Stopping

APP = """
    from mainspring import Mainspring
    from helper import ANSWER

    app = Mainspring()

    @app.task
    def answer() -> int:
        return ANSWER
"""


pytestmark = pytest.mark.slow


def reloading(url: str, folder: Path, *options: str) -> Running:
    return running("worker", "--app", "tasks", "--url", url, "--reload", *options, folder=folder)


def answer_of(url: str) -> str | None:
    """Have the worker answer, and return what it said."""
    before = len(jobs_at(url))
    in_process("enqueue", "--url", url, "answer")
    eventually(lambda: jobs_at(url)[before].state.final)
    return jobs_at(url)[before].result


def test_a_change_of_an_imported_module_starts_the_worker_again(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", APP)
    write(folder / "helper.py", "ANSWER = 1")
    write(folder / "unrelated.py", "x = 1")

    with reloading(sqlite_url, folder) as worker:
        worker.wait_for(" serves ")
        assert answer_of(sqlite_url) == "1"
        write(folder / "unrelated.py", "x = 22")
        change_until_heard(worker, folder / "helper.py", "ANSWER = 22", "helper.py has changed")
        worker.wait_for(" serves ", 2)
        assert answer_of(sqlite_url) == "22"
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    assert "unrelated.py" not in worker.output
    assert sessions_at(sqlite_url) == []


def test_what_runs_may_end_before_the_worker_is_started_again(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py")
    with reloading(sqlite_url, folder) as worker:
        worker.wait_for(" serves ")
        in_process("enqueue", "--url", sqlite_url, "linger", "1")
        eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.RUNNING)
        change_until_heard(worker, folder / "tasks.py", (folder / "tasks.py").read_text() + "#", "has changed")
        worker.wait_for(" serves ", 2)
        eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED)
        worker.signal(signal.SIGTERM)
        worker.end()

    assert jobs_at(sqlite_url)[0].attempt == 1


def test_a_mistake_is_one_sentence_and_the_next_change_is_waited_for(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", APP)
    write(folder / "helper.py", "ANSWER = ")

    with reloading(sqlite_url, folder) as worker:
        worker.wait_for("error: can't import 'tasks': helper.py, line 1: SyntaxError")
        worker.wait_for("waiting for its code to change")
        write(folder / "helper.py", "ANSWER = 333")
        worker.wait_for(" serves ")
        assert answer_of(sqlite_url) == "333"
        change_until_heard(worker, folder / "tasks.py", "1 / 0", "tasks.py has changed")
        worker.wait_for("error: can't import 'tasks': tasks.py, line 1: ZeroDivisionError")
        worker.wait_for("waiting for its code to change", 2)
        write(folder / "tasks.py", APP)
        worker.wait_for(" serves ", 2)
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    assert "Traceback" not in worker.output


def test_a_module_that_is_missing_is_waited_for(sqlite_url: str, folder: Path) -> None:
    with reloading(sqlite_url, folder) as worker:
        worker.wait_for("error: no module named 'tasks' was found in")
        worker.wait_for("waiting for its code to change")
        write(folder / "tasks.py")
        worker.wait_for(" serves ")


def test_it_can_be_stopped_while_it_waits_for_a_change(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", "1 / 0")

    with reloading(sqlite_url, folder) as worker:
        worker.wait_for("waiting for its code to change")
        worker.signal(signal.SIGINT)
        assert worker.end() == 0


def change_until_heard(worker: Running, file: Path, text: str, heard: str) -> None:
    """Change *file*, and touch it until the worker has noticed: it names what it imported a moment after it began."""
    file.write_text(text)

    def noticed() -> bool:
        os.utime(file)
        return heard in worker.output

    eventually(noticed)


def test_an_edit_during_the_first_start_is_noticed(sqlite_url: str, folder: Path) -> None:
    edited = (
        APP
        + """
    import pathlib
    pathlib.Path("helper.py").write_text("ANSWER = 22") if ANSWER == 1 else None
"""
    )
    write(folder / "tasks.py", edited)
    write(folder / "helper.py", "ANSWER = 1")

    with reloading(sqlite_url, folder) as worker:
        worker.wait_for("helper.py has changed")
        worker.wait_for(" serves ", 2)
        assert answer_of(sqlite_url) == "22"
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0


def test_of_the_files_that_are_named_late_those_have_changed_that_were_written_since(tmp_path: Path) -> None:
    old, edited = tmp_path / "old.py", tmp_path / "edited.py"
    watched = Watched()
    old.touch()
    os.utime(old, ns=(1, 1))
    watched.begin()
    edited.touch()
    later = SystemClock().now().timestamp() + 60
    os.utime(edited, (later, later))

    watched.add([str(old), str(edited)])

    assert (watched.look(), watched.look()) == (str(edited), None)


def test_a_program_that_could_not_be_started_is_tried_again() -> None:
    class Fake:
        stopping = Stopping(2)

        def spawn(self) -> None:
            raise OSError(11, "Resource temporarily unavailable")

    fake: Any = Fake()
    _keep_fresh(fake, [], Watched())

    assert Fake.stopping.pauses == [5, 5]


def test_a_file_is_seen_to_change_and_to_vanish_once_each(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.touch()
    watched = Watched()
    watched.add([str(file)])

    assert watched.look() is None
    os.utime(file, ns=(1, 1))
    watched.add([str(file)])
    assert (watched.look(), watched.look()) == (str(file), None)
    file.unlink()
    assert (watched.look(), watched.look()) == (str(file), None)
