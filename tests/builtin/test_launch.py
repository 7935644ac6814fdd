"""The launcher of commands, spoken to as a worker does, yet word by word."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mainspring.worker.executors import command
from tests.builtin.scripts import write_scripts
from tests.support.waiting import until
from tests.worker.children import is_dead, read, state_of


class Line:
    """A launcher, and a worker's end of the line to it."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(60)
        mouths = [os.open(os.devnull, os.O_WRONLY) for _ in range(2)]
        self.launcher = command._launch(theirs.fileno(), *mouths)
        theirs.close()
        for mouth in mouths:
            os.close(mouth)

    def say(self, *words: dict[str, Any]) -> None:
        """Send all of *words* at once, so that they are heard at once."""
        self.socket.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in words))

    def words(self) -> list[dict[str, Any]]:
        """Return all that the launcher has to say until it hangs up."""
        data = b"".join(iter(lambda: self.socket.recv(65_536), b""))
        return [json.loads(line) for line in data.splitlines()]

    def close(self) -> None:
        self.socket.close()
        self.launcher.wait(60)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return write_scripts(tmp_path / "jobs")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def order(*argv: str, cwd: str | None = "/") -> dict[str, Any]:
    made = command.Order(path=argv[0], argv=list(argv), env={}, cwd=cwd, stdin=None, ok=[0], limits={})
    return {**made.words(), "folder": os.path.join(tempfile.gettempdir(), f"mainspring-{os.urandom(8).hex()}")}


def test_it_obeys_what_came_together_with_the_order(line: Line) -> None:
    line.say(order("/bin/sleep", "1000"), {"do": "end", "grace": 0.1})
    assert [(one["said"], one.get("code")) for one in line.words()] == [("started", None), ("ended", -signal.SIGTERM)]


def test_it_obeys_a_pause_that_came_together_with_the_order(line: Line) -> None:
    line.say(order("/bin/sleep", "1000"), {"do": "stop"})
    pid = json.loads(line.socket.recv(65_536))["pid"]
    until(lambda: state_of(pid).startswith("T"))
    line.say({"do": "continue"})
    until(lambda: state_of(pid).startswith("S"))


def test_everything_is_dead_when_the_worker_dies_without_having_listened(line: Line, jobs: Path, place: Path) -> None:
    line.say(order(str(jobs / "brood"), str(place), cwd=None))
    pids = [int(read(place / name)) for name in ("main", "child", "grandchild")]
    folder = Path(os.readlink(f"/proc/{pids[0]}/cwd"))
    line.socket.close()  # with `started` unread, so that the launcher hears of an error and not of an end
    assert line.launcher.wait(60) == 0
    assert [is_dead(pid) for pid in pids] == [True] * 3
    assert not folder.exists()


def test_everything_is_dead_when_an_order_makes_no_sense(line: Line, jobs: Path, place: Path) -> None:
    line.say(order(str(jobs / "brood"), str(place), cwd=None))
    pids = [int(read(place / name)) for name in ("main", "child", "grandchild")]
    line.socket.sendall(b"nonsense\n")
    assert line.launcher.wait(60) != 0
    assert [is_dead(pid) for pid in pids] == [True] * 3


def test_it_says_for_what_it_could_not_start_the_command(line: Line, place: Path) -> None:
    line.say({**order("/bin/true", cwd=None), "folder": str(place / "no" / "such")})
    assert line.words() == [{"said": "refused", "why": "No such file or directory", "errno": 2}]


def test_all_of_a_session_is_killed_and_nobody_else(place: Path) -> None:
    other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    script = f"sleep 1000 & echo $! > {place}/.child; mv {place}/.child {place}/child; sleep 1000"
    leader = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    child = int(read(place / "child"))
    command.kill_session(leader.pid)
    assert leader.wait(60) == -signal.SIGKILL
    assert is_dead(child)
    assert other.poll() is None
    other.kill()
    other.wait()
