"""The line between a supervisor and a worker that it has started.

The worker says when it works and which files it was made of. The supervisor says one thing: to stop at once. A signal
could not, for a service manager may signal the workers and their supervisor, who passes it on. When the line breaks,
the supervisor is gone, in whatever way, and the worker stops as if it had been told to.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

VARIABLE = "MAINSPRING_LINE"
"""Tells a worker the number of the file that is its end of the line, and whether to speak of files: `7` or `7+`."""

_AT_ONCE = b"at once\n"
_LOOK = 0.5
_LAST_WRITES = 15.0
"""Seconds that a worker may need beyond its grace to stop in order."""


class WorkerEnd:
    """A worker's end of the line."""

    @classmethod
    def of_this_process(cls) -> WorkerEnd | None:
        """Return this process's end, or None if no supervisor has started it. It can be had once."""
        said = os.environ.pop(VARIABLE, "")  # what we start ourselves must not take it for its own
        number = said.removesuffix("+")
        return cls(socket.socket(fileno=int(number)), speaks=number != said) if number.isdecimal() else None

    def __init__(self, line: socket.socket, *, speaks: bool) -> None:
        line.set_inheritable(False)
        self._line = line
        self._saying = threading.Lock()
        self._speaks = speaks
        self._told: set[str] = set()
        self.at_once: Callable[[], None] = lambda: None  # called, by a thread of our own, when that is asked for
        # What the user's code forks may live on, and the supervisor would wait for a word of it.
        os.register_at_fork(after_in_child=line.close)

    def attend(self, folders: Iterable[Path], grace: timedelta) -> None:
        """Say from now on which files under *folders* were imported, if asked to, until the line breaks.

        Then this process is stopped, and killed if that takes longer than *grace* and what it needs to write.
        """
        roots = tuple(f"{folder}{os.sep}" for folder in folders)
        patience = grace.total_seconds() + _LAST_WRITES
        threading.Thread(target=self._attend, args=(roots, patience), name="mainspring-line", daemon=True).start()

    def working(self) -> None:
        """Say that the worker works."""
        self._say({"working": True})

    def _attend(self, roots: tuple[str, ...], patience: float) -> None:
        while self._listen():
            new = set(_imported_from(roots)) - self._told if self._speaks else None
            if new:
                self._told |= new
                self._say({"files": sorted(new)})
        self._signal(signal.SIGTERM)
        threading.Event().wait(patience)
        self._signal(signal.SIGKILL)

    def _listen(self) -> bool:
        """Do what the supervisor says; return False once the line has broken."""
        if not select.select([self._line], [], [], _LOOK if self._speaks else None)[0]:
            return True
        said = _received(self._line, 64)
        if said:
            self.at_once()
        return bool(said)

    def _signal(self, number: int) -> None:
        os.kill(os.getpid(), number)

    def _say(self, message: dict[str, object]) -> None:
        try:
            with self._saying:  # or two threads might mingle what they say
                self._line.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return  # broken; `_attend` notices


class SupervisorEnd:
    """A supervisor's end of the line."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""
        self.files: set[str] = set()
        self.working = False

    def hear(self, timeout: float) -> bool:
        """Take note of what the worker says within *timeout* seconds; return False once its end is closed."""
        if not select.select([self._line], [], [], timeout)[0]:
            return True
        said = _received(self._line, 65_536)
        *lines, self._rest = (self._rest + said).split(b"\n")
        for message in map(json.loads, lines):
            self.files.update(message.get("files", ()))
            self.working |= message.get("working", False)
        return bool(said)

    def stop_at_once(self) -> None:
        """Ask the worker to stop at once, if it is still there."""
        with suppress(OSError):
            self._line.sendall(_AT_ONCE)

    def close(self) -> None:
        self._line.close()


def _received(line: socket.socket, most: int) -> bytes:
    try:
        return line.recv(most)
    except OSError:  # the other end was closed before it had read all that we said
        return b""


def _imported_from(roots: tuple[str, ...]) -> Iterator[str]:
    libraries = (sys.prefix + os.sep, sys.base_prefix + os.sep)  # an environment may lie in the project's folder
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.startswith(roots) and not file.startswith(libraries):
            yield file
