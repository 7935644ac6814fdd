"""How a thread waits for the ring of another thread, and for other processes to write to a file."""

from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_ECHO = (0.0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
"""Seconds between looks after a write: its writer waits for the disk before others can see what was written."""

_BREATH, _REST = 0.001, 0.004
"""Seconds in which further writes are not heard, after one, and after one that could be seen: a busy file has many."""

_LOOK = 0.010
"""Seconds between looks where the system does not tell."""

_IN_MODIFY = 0x2


class Ears:
    """Waits until it is rung, or a file may have been written to.

    Linux tells of each write; so waiting costs nothing, and ends within a fraction of a millisecond. Elsewhere, or when
    the user has too many watches already, the wait is a short one, and whoever waits looks again.
    """

    def __init__(self, file: Path) -> None:
        self._open = threading.RLock()  # to ring what is closed might write to somebody else's file
        self._closed = False
        self._bell, self._clapper = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._clapper, False)
        self._watch = _watch(file)
        self._echo: Iterator[float] = iter(())
        self._deaf = 0.0
        self._ringing, self._anything = select.poll(), select.poll()
        self._ringing.register(self._bell, select.POLLIN)
        self._anything.register(self._bell, select.POLLIN)
        if self._watch is not None:
            self._anything.register(self._watch, select.POLLIN)

    def ring(self) -> None:
        """End a wait, the present one or the next. Called by any thread."""
        with self._open, suppress(BlockingIOError):  # it rings already
            if not self._closed:
                os.write(self._clapper, b"!")

    def wait(self, seconds: float) -> None:
        """Wait for so long at most. After a write several short waits follow."""
        deaf, self._deaf = self._deaf, 0.0
        if deaf and self._ringing.poll(min(deaf, seconds) * 1000):
            _empty(self._bell)
            return
        longest = next(self._echo, seconds if self._watch is not None else _LOOK)
        for file, _ in self._anything.poll(min(longest, seconds) * 1000):
            _empty(file)
            if file == self._watch:
                self._echo, self._deaf = iter(_ECHO), _BREATH

    def seen(self) -> None:
        """Take note that something written could be seen. Not all of it, perhaps: the echo goes on."""
        self._deaf = _REST

    def close(self) -> None:
        with self._open:
            if self._closed:
                return
            self._closed = True
        for file in (self._bell, self._clapper, self._watch):
            if file is not None:
                os.close(file)


def _empty(file: int) -> None:
    with suppress(BlockingIOError):  # it is empty
        while os.read(file, 65536):
            pass


def _watch(file: Path) -> int | None:
    """Return a descriptor that can be read when *file* was written to; None where there is no such thing."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        return None
    watch = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if watch < 0:
        return None
    if library.inotify_add_watch(watch, os.fsencode(file), _IN_MODIFY) < 0:
        os.close(watch)
        return None
    return int(watch)
