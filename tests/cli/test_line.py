"""The line between a supervisor and its workers."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.cli import line as module
from mainspring.cli.line import VARIABLE, SupervisorEnd, WorkerEnd
from tests.cli.program import eventually


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
