"""Loops: the threads that do the background work of a process."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

_PAUSE_AFTER_ERROR = 1.0

log = logging.getLogger("mainspring")


class Loop:
    """A thread that calls *work* again and again: after the seconds that it returned, or as soon as it is woken.

    A wake that comes while *work* is under way is not lost. An error that *work* did not foresee is logged, and the
    loop goes on: a process whose threads died one by one would look alive and do nothing.
    """

    def __init__(self, name: str, work: Callable[[], float]) -> None:
        self._work = work
        self._woken = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"mainspring-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Have *work* called at once. Called by any thread."""
        if not self._woken.is_set():  # asking is cheaper than setting, and a flood asks often
            self._woken.set()

    def close(self, timeout: float | None = None) -> bool:
        """End when the call that is under way is over; return whether that was within *timeout* seconds."""
        self._closing = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._woken.clear()
            if self._closing:  # looked at after the clearing, which would else undo the wake of `close`
                return
            try:
                pause = self._work()
            except Exception:
                log.exception("%s failed in a way that it should not; going on", self._thread.name)
                pause = _PAUSE_AFTER_ERROR
            if pause > 0:
                self._woken.wait(None if pause == math.inf else pause)
