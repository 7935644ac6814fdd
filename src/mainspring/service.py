"""Loops: the threads that do the background work of a process."""

from __future__ import annotations

import getpass
import logging
import math
import os
import socket
import threading
from collections.abc import Callable, Iterable

from mainspring.clock import SystemClock

_PAUSE_AFTER_ERROR = 1.0

log = logging.getLogger("mainspring")


def node_name() -> str:
    """Return what to call this process among those that share a database."""
    return f"{socket.gethostname()}:{os.getpid()}"


def said_by(by: str | None, reason: str | None) -> str:
    """Return who says so, the user of this process unless told, and why: what is kept with what he does."""
    return f"by {by or person()}{f': {reason}' if reason else ''}"


def person() -> str:
    """Return who uses this process, as is recorded with what he does: the user's name, and the host's."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # an id without a name, as in many containers
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


class Loop:
    """A thread that calls *work* again and again: after the seconds that it returned, or as soon as it is woken.

    A wake that comes while *work* is under way is not lost. An error that *work* did not foresee is logged, and the
    loop goes on: a process whose threads died one by one would look alive and do nothing.
    """

    def __init__(self, name: str, work: Callable[[], float]) -> None:
        self._work = work
        self._woken = threading.Event()
        self.ending = False
        self._thread = threading.Thread(target=self._run, name=f"mainspring-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Have *work* called at once. Called by any thread."""
        if not self._woken.is_set():  # asking is cheaper than setting, and a flood asks often
            self._woken.set()

    def end(self) -> None:
        """End when the call that is under way is over. Returns at once."""
        self.ending = True
        self._woken.set()

    def join(self, timeout: float) -> None:
        """Wait until it has ended, for *timeout* seconds at most."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, timeout))

    def _run(self) -> None:
        while True:
            self._woken.clear()
            if self.ending:  # looked at after the clearing, which would else undo the wake of `end`
                return
            try:
                pause = self._work()
            except Exception:
                log.exception("%s failed in a way that it should not; going on", self._thread.name)
                pause = _PAUSE_AFTER_ERROR
            if pause > 0:
                self._woken.wait(None if pause == math.inf else pause)


def close(loops: Iterable[Loop], timeout: float) -> None:
    """End *loops*, and wait until all have ended, for *timeout* seconds at most."""
    clock, loops = SystemClock(), list(loops)
    give_up = clock.steady() + timeout
    for loop in loops:
        loop.end()
    for loop in loops:
        loop.join(give_up - clock.steady())
