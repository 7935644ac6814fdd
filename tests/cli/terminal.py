"""A terminal of its own for the program, with a person before it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from types import TracebackType

from tests.cli.program import PATIENCE, eventually

ENTER, ESCAPE, TAB, UP, DOWN, CTRL_C, CTRL_Z = b"\r", b"\x1b", b"\t", b"\x1b[A", b"\x1b[B", b"\x03", b"\x1a"
CTRL_BACKSLASH = b"\x1c"
NO_KEY = b"\0"
"""What a terminal is set to for what no key is to do."""
ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"
"""What a program says to a terminal to have a screen of its own, and to give back the one that was there."""

_HOME = b"\x1b[H"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A program at a pseudo-terminal while the block lasts; it is killed if it has not ended by then."""

    def __init__(self, *arguments: str, folder: Path, width: int = 80, height: int = 24) -> None:
        self._ours, self._theirs = os.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self._theirs)
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            # Without a size that some library has put there: it would go before that of the terminal.
            env={k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm-256color"},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            preexec_fn=self._take,  # noqa: PLW1509 - there is no other way to have Ctrl-C of a terminal heard
        )
        self.said = bytearray()
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read)

    def __enter__(self) -> Terminal:
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._ended.set()
        self._reader.join(PATIENCE)
        os.close(self._ours)
        os.close(self._theirs)

    @property
    def settings(self) -> list[object]:
        """How the terminal is set now."""
        return termios.tcgetattr(self._theirs)

    def key(self, what: int) -> object:
        """Return the key by which the terminal does *what* now, such as to stop a program."""
        return termios.tcgetattr(self._theirs)[6][what]

    @property
    def text(self) -> str:
        """All that the program has written, without what steers the terminal."""
        return _CONTROLS.sub("", self.said.decode(errors="replace"))

    @property
    def screen(self) -> list[str]:
        """The lines of the last drawing that is whole: what has been followed by another, as all are soon."""
        last = self.said.rfind(_HOME)
        first = self.said.rfind(_HOME, 0, max(0, last))
        return self._lines(first, last) if first >= 0 else []

    def press(self, *keys: bytes) -> None:
        os.write(self._ours, b"".join(keys))

    def wait_for(self, text: str) -> None:
        """Wait until the screen, or a line where there is none, shows *text*."""
        eventually(lambda: self._shows(text) or self._process.poll() is not None)
        assert self._shows(text), self.text

    def wait_for_size(self, width: int, height: int) -> None:
        """Wait until the screen is as large as that, to the last column of its last line."""
        wanted = [width] * height
        eventually(lambda: [len(line) for line in self.screen] == wanted or self._process.poll() is not None)
        assert [len(line) for line in self.screen] == wanted, self.text

    def _shows(self, text: str) -> bool:
        last = max(0, self.said.rfind(_HOME))
        return any(text in line for line in (*self.screen, *self._lines(last, len(self.said))))

    def _lines(self, start: int, end: int) -> list[str]:
        return _CONTROLS.sub("", bytes(self.said[start:end]).decode(errors="replace")).split("\n")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def end(self) -> int:
        """Wait until the program has ended, and return its exit code."""
        code = self._process.wait(PATIENCE)
        eventually(lambda: not select.select([self._ours], [], [], 0)[0])
        return code

    def close(self) -> int:
        """Close the terminal, as with its window, and return the exit code of the program."""
        self._ended.set()
        self._reader.join(PATIENCE)
        os.close(self._ours)
        self._ours = os.open(os.devnull, os.O_RDWR)
        return self._process.wait(PATIENCE)

    def _take(self) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _read(self) -> None:
        while not self._ended.is_set():
            if select.select([self._ours], [], [], 0.05)[0]:
                self.said += os.read(self._ours, 65_536)
