"""A command, as the worker that has it run sees it: a launcher, a line to that, and what the command says."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mainspring.clock import Clock
from mainspring.errors import LeaseLost
from mainspring.worker.executors.output import Output
from mainspring.worker.executors.process import DYING, STARTING, being_born
from mainspring.worker.held import Held

_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_CHUNK = 65_536
_MOST_LEFT = 32
_MOST_PASSES = 100


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to run, and how."""

    path: str
    argv: list[str]
    env: dict[str, str]
    cwd: str | None
    stdin: str | None
    ok: list[int]
    limits: dict[str, int]
    timeout: float = math.inf

    def words(self) -> dict[str, Any]:
        """Return what the launcher has to know of it."""
        return {
            "path": self.path,
            "argv": self.argv,
            "env": self.env,
            "cwd": self.cwd,
            "stdin": self.stdin,
            "limits": self.limits,
        }


@dataclass
class Fate:
    """What is known of how it ended: nothing, if its launcher could not say."""

    code: int | None = None
    refused: str | None = None
    errno: int = 0  # of what it was refused for
    used: dict[str, Any] = field(default_factory=dict)


class Command:
    """One command that runs, or has run. Only one thread uses it."""

    def __init__(self, held: Held, order: Order, output: Output, clock: Clock) -> None:
        self._clock = clock
        self._unsent = bytearray()
        self._heard = b""
        self._left = order.timeout
        self._began = self._ended = clock.steady()
        self._session: int | None = None
        self._folder = os.path.join(tempfile.gettempdir(), f"mainspring-{os.urandom(8).hex()}")
        self.held = held
        self.order = order
        self.output = output
        self.fate = Fate()
        self.begun = False
        self.stop: BaseException | None = None
        self.frozen = False
        self.listening: set[int] = set()  # on which streams it may yet say something
        self.over = False  # its launcher has said its last word
        self.killed = False
        self.expire_at = math.inf
        self.kill_at = self._began + STARTING
        with being_born:
            self._start()
        self._send({**order.words(), "folder": self._folder})

    @property
    def seconds(self) -> float:
        """How long it has run, or ran, also while it stood still."""
        return (self._ended if self.over else self._clock.steady()) - self._began

    @property
    def has_more_to_say(self) -> bool:
        return bool(self._unsent)

    def speak(self) -> None:
        """Send as much as the line has room for, without waiting."""
        try:
            while self._unsent:
                del self._unsent[: self.line.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()

    def hear(self) -> None:
        """Take note of what the launcher says."""
        try:
            data = self.line.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        if not data:
            self.over, self._ended = True, self._clock.steady()

    def listen(self, number: int) -> bool:
        """Take note of what the command says on a stream; return False when it won't say any more there."""
        try:
            data = os.read(number, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            self.listening.discard(number)
        self.output.feed(self._streams[number], data)
        return bool(data)

    def end(self, stop: BaseException, grace: float) -> None:
        """Have it asked to end because of *stop*, and killed after *grace* seconds with all that has come of it.

        The first reason stays, unless the lease is lost.
        """
        self.expire_at = math.inf
        if self.stop is None or isinstance(stop, LeaseLost):
            self.stop = stop
            self._send({"do": "end", "grace": grace})
        self.kill_at = min(self.kill_at, self._clock.steady() + grace + DYING)

    def freeze(self) -> None:
        self.frozen = True
        if self.begun:
            self._left, self.expire_at = self.expire_at - self._clock.steady(), math.inf
        self._send({"do": "stop"})

    def thaw(self) -> None:
        self.frozen = False
        if self.begun:
            self.expire_at = self._clock.steady() + self._left
        self._send({"do": "continue"})

    def hang_up(self) -> None:
        """Have it killed at once, with all that has come of it."""
        self._unsent.clear()
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill its launcher, which did not do its work; the system kills the command then, and we what is left."""
        self.killed = True
        self.kill_at = self._clock.steady() + DYING
        if self._popen.returncode is None:
            self._popen.kill()

    def dispose(self) -> None:
        """Have it killed at once, and wait until it is, whatever it has to say."""
        self.hang_up()
        try:
            self._popen.wait(DYING)
        except subprocess.TimeoutExpired:
            self.kill()
        self.let_go()

    def collect(self) -> bool:
        """Return whether its launcher is gone, and leave nothing of it behind if so."""
        if self._popen.poll() is None:
            return False
        self.let_go()
        return True

    def let_go(self) -> None:
        """Listen to what was said to the last, and close our ends of the line and of the streams."""
        if self.fate.code is None and self.fate.refused is None:
            self._clear_up()
        for number in self._streams:
            for _ in range(_MOST_LEFT):  # more than a pipe holds; whoever else has it might write for ever
                if number not in self.listening or not self.listen(number):
                    break
            os.close(number)
        self.line.close()
        self.output.close()

    def _clear_up(self) -> None:
        """Do what its launcher did not live to do, as far as anybody else can.

        What has left the session of the command, and lost its parent, is nobody's child that we know of.
        """
        if self._session is not None:
            kill_session(self._session)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, words: dict[str, Any]) -> None:
        match words.pop("said"):
            case "started":
                self.begun, self._began, self._session = True, self._clock.steady(), words["pid"]
                self.kill_at = math.inf if self.stop is None else self.kill_at
                if self.stop is None and not self.frozen:
                    self.expire_at = self._began + self._left
            case "refused":
                self.fate.refused, self.fate.errno = words["why"], words["errno"]
            case "ended":
                self.fate.code, self.fate.used = words.pop("code"), words

    def _send(self, words: dict[str, Any]) -> None:
        self._unsent += json.dumps(words).encode() + b"\n"
        self.speak()

    def _start(self) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            self.line, line = socket.socketpair()
            ours.callback(self.line.close)
            theirs.callback(line.close)
            ears, mouths = zip(*(os.pipe() for _ in range(2)), strict=True)
            for number in ears:
                ours.callback(os.close, number)
                os.set_blocking(number, False)
            for number in mouths:
                theirs.callback(os.close, number)
            self._streams = dict(zip(ears, (self.output.out, self.output.err), strict=True))
            self.listening.update(ears)
            self._popen = _launch(line.fileno(), *mouths)
            ours.pop_all()
        self.line.setblocking(False)


def kill_session(session: int) -> None:
    """Kill all processes of a *session*, until there is none: one may fork while we look at another."""
    for _ in range(_MOST_PASSES):
        members = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _lives_in(pid, session)]
        if not members:
            return
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _lives_in(pid: int, session: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    state, _, _, found, *_ = stat.rpartition(b")")[2].split()  # its name, which comes before, may hold anything
    return int(found) == session and state not in (b"Z", b"X")


def _launch(*numbers: int) -> subprocess.Popen[bytes]:
    # It knows nothing of our environment, which a command could read in its parent's as well as in its own.
    library = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", _LAUNCHER, *map(str, numbers), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=numbers,
        env=library,
        cwd="/",
        start_new_session=True,
    )
