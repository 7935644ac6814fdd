"""The line between a supervisor and its workers."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.cli import line as module
from mainspring.cli.line import VARIABLE, SupervisorEnd, WorkerEnd
from tests.cli.program import PATIENCE, eventually, python


class Worker(WorkerEnd):
    """A worker's end that only takes note of the signals that it would send to its process."""

    def __init__(self, line: socket.socket, *, speaks: bool) -> None:
        super().__init__(line, speaks=speaks)
        self.sent: list[int] = []

    def _signal(self, number: int) -> None:
        self.sent.append(number)


Line = tuple[SupervisorEnd, Worker]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(module, "_LAST_WRITES", 0.0)
    ours, theirs = socket.socketpair()
    monkeypatch.setenv(VARIABLE, f"{theirs.detach()}+")
    worker = Worker.of_this_process()
    assert isinstance(worker, Worker)
    supervisor = SupervisorEnd(ours)
    yield supervisor, worker
    supervisor.close()
    worker._line.close()


def test_a_process_that_no_supervisor_has_started_has_no_line() -> None:
    assert WorkerEnd.of_this_process() is None


def test_the_supervisor_hears_when_the_worker_works(line: Line) -> None:
    supervisor, worker = line

    assert (supervisor.hear(0), supervisor.working) == (True, False)
    worker.working()
    assert (supervisor.hear(0), supervisor.working) == (True, True)


def test_the_supervisor_hears_which_files_were_imported(line: Line, folder: Path) -> None:
    supervisor, worker = line
    (folder / "imported_later.py").touch()
    sys.path.insert(0, str(folder))
    worker.attend([folder], timedelta(0))

    __import__("imported_later")

    eventually(lambda: supervisor.hear(0.01) and supervisor.files)
    assert supervisor.files == {str(folder / "imported_later.py")}
    supervisor.close()
    eventually(lambda: len(worker.sent) == 2)


def test_a_worker_whose_line_breaks_stops_and_is_killed_if_it_does_not(line: Line) -> None:
    supervisor, worker = line
    worker.attend([], timedelta(0))
    assert worker.sent == []

    supervisor.close()

    eventually(lambda: worker.sent == [signal.SIGTERM, signal.SIGKILL])
    worker.working()  # nobody hears it, and nobody minds


def test_a_worker_is_given_its_grace_to_stop(line: Line) -> None:
    supervisor, worker = line
    worker.attend([], timedelta(hours=1))

    supervisor.close()

    eventually(lambda: worker.sent)
    assert worker.sent == [signal.SIGTERM]


def test_the_supervisor_can_ask_the_worker_to_stop_at_once(line: Line) -> None:
    supervisor, worker = line
    asked = threading.Event()
    worker.at_once = asked.set
    worker.attend([], timedelta(0))

    supervisor.stop_at_once()

    assert asked.wait(PATIENCE)
    assert worker.sent == []
    supervisor.close()
    eventually(lambda: len(worker.sent) == 2)


def test_a_worker_that_ended_before_it_could_hear_is_gone_and_nothing_more(line: Line) -> None:
    supervisor, worker = line
    supervisor.stop_at_once()

    worker._line.close()

    assert supervisor.hear(PATIENCE) is False
    supervisor.stop_at_once()


def test_what_threads_say_at_the_same_time_is_heard_one_by_one(line: Line) -> None:
    supervisor, worker = line
    files = {letter * 1_000_000 for letter in "abcd"}  # each longer than what the system takes at a time
    threads = [threading.Thread(target=worker._say, args=({"files": [file]},)) for file in files]
    for thread in threads:
        thread.start()

    eventually(lambda: supervisor.hear(PATIENCE) and len(supervisor.files) == len(files))

    assert supervisor.files == files


def test_what_a_worker_forks_does_not_keep_the_line() -> None:
    program = """
import os, socket
from mainspring.cli.line import WorkerEnd
ours, theirs = socket.socketpair()
end = WorkerEnd(theirs, speaks=False)
child = os.fork()
if child == 0:
    os._exit(0 if theirs.fileno() == -1 else 1)
print(os.waitpid(child, 0)[1], theirs.fileno() != -1)
"""

    assert python("-c", program).stdout == "0 True\n"
