"""The keyboard of a terminal: bytes become keys, each as soon as it is pressed."""

from __future__ import annotations

import os
import re
import select
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NAMES = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[Z": "back tab",
    b"\x1b": "esc",
    b"\t": "tab",
    b"\r": "enter",
    b"\n": "enter",
}

_SEQUENCES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)
_REST = 0.05
"""Seconds within which the rest of a sequence follows: Esc alone is the beginning of all of them."""


def keys_in(said: bytes) -> list[str]:
    """Return the keys that a terminal has told of; what none of ours stands for is left out."""
    found = (_NAMES.get(one) or one.decode("ascii", "replace") for one in _SEQUENCES.findall(said))
    return [key for key in found if key in _NAMES.values() or (len(key) == 1 and key.isascii() and key.isprintable())]


class Keyboard:
    """The keys of the terminal behind a file, one at a time and unseen."""

    def __init__(self, file: int) -> None:
        self._file = file

    def wait(self, seconds: float) -> list[str] | None:
        """Return the keys that were pressed within *seconds*, if any; None when the terminal is gone."""
        if not select.select([self._file], [], [], seconds)[0]:
            return []
        said = self._read()
        if said == b"\x1b" and select.select([self._file], [], [], _REST)[0]:
            said += self._read()
        return keys_in(said) if said else None

    def _read(self) -> bytes:
        try:
            return os.read(self._file, 1_024)
        except OSError:  # it was closed behind us
            return b""


@contextmanager
def keyboard(file: int) -> Iterator[Keyboard]:
    """Have the terminal behind *file* tell of each key while the block lasts; then it is as it was."""
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        _without_signals(file)
        yield Keyboard(file)
    finally:
        with suppress(termios.error):  # a terminal that was closed has no settings any more
            termios.tcsetattr(file, termios.TCSADRAIN, before)


def _without_signals(file: int) -> None:
    """Let Ctrl-Z and Ctrl-\\ do nothing: the shell would be left with a screen that is not its own."""
    settings = termios.tcgetattr(file)
    for key in (termios.VSUSP, termios.VQUIT):
        settings[6][key] = os.fpathconf(file, "PC_VDISABLE").to_bytes(1, "big")
    termios.tcsetattr(file, termios.TCSANOW, settings)
