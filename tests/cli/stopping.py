"""A supervisor's end that comes after so many pauses."""

from __future__ import annotations

import threading


class Stopping(threading.Event):
    """Ends the supervisor after so many pauses, and takes note of them without waiting."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._most = pauses

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0)
        if len(self.pauses) == self._most:
            self.set()
        return self.is_set()
