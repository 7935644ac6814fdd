"""The program as its users run it, in a process of its own, or in this one where that is enough."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from typer.testing import CliRunner

from mainspring.cli.main import app

# As root no permission would stop the program. Dropped from the bounding set, these capabilities (to override
# permissions, to search any folder, to act as any owner) are gone after the exec, and root is as bound as anyone.
_POWERLESS = """
import ctypes, os, sys
for capability in (1, 2, 3):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "mainspring", *sys.argv[1:]])
"""

Done = subprocess.CompletedProcess[str]

PATIENCE = 60.0
"""Seconds after which what should have happened is given up."""

_MOMENT = 3.0


def mainspring(*arguments: str, folder: Path | None = None, powerless: bool = False) -> Done:
    """Run `python -m mainspring` in *folder*, and bound by permissions even as root when *powerless*."""
    program = ["-c", _POWERLESS] if powerless else ["-m", "mainspring"]
    return python(*program, *arguments, folder=folder)


def in_process(*arguments: str) -> Done:
    """Run the program in this process, which is quicker."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return Done(arguments, done.exit_code, done.stdout, done.stderr)


def python(*arguments: str, folder: Path | None = None) -> Done:
    """Run this interpreter in a process of its own."""
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


class Running:
    """The program in a process of its own while the block lasts; it is killed if it has not ended by then."""

    def __init__(
        self, *arguments: str, folder: Path, env: Mapping[str, str] | None = None, stdin: int | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONFAULTHANDLER": "1", **(env or {})},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self.pid = self._process.pid

    def __enter__(self) -> Running:
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(_MOMENT if error else PATIENCE)
        if self._reader.is_alive():
            self._signal_all(signal.SIGKILL)
            self._reader.join(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_for(self, text: str, times: int = 1) -> list[str]:
        """Wait until so many lines have said *text*, and return them."""
        eventually(lambda: sum(text in line for line in self.lines) >= times or self._reader.is_alive() is False)
        found = [line for line in self.lines if text in line]
        assert len(found) >= times, self.output
        return found

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait until it and all who speak for it have ended, and return the exit code.

        Those that do not end are made to show where their threads are.
        """
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._signal_all(signal.SIGABRT)
            code = self._process.wait()
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive(), self.output
        assert code != -signal.SIGABRT, self.output
        return code

    def _signal_all(self, number: int) -> None:
        """Send a signal to the program and to those who speak for it."""
        for pid in {str(self.pid), *re.findall(r"\[(\d+)\]", self.output)}:
            with suppress(ProcessLookupError):
                os.kill(int(pid), number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)


def running(*arguments: str, folder: Path, env: Mapping[str, str] | None = None, stdin: int | None = None) -> Running:
    """Run `python -m mainspring` while the block lasts."""
    return Running("-m", "mainspring", *arguments, folder=folder, env=env, stdin=stdin)


def eventually(happened: Callable[[], object]) -> None:
    """Wait until *happened*."""
    give_up = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)


def assert_refused(done: Done, *words: str) -> None:
    """Assert that the program refused in one sentence that says all of *words*."""
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def address(program: Running) -> str:
    """Return where *program* serves, once it does."""
    (line, *_) = program.wait_for("serving the dashboard and the API on")
    return line.split()[-1]
