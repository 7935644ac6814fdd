"""A thread that waits for what comes in on sockets and pipes and for what other threads want done."""

from __future__ import annotations

import logging
import math
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

_PAUSE_AFTER_ERROR = 1.0

Line = socket.socket | int
"""What is listened to: a socket, or the number of another file."""

log = logging.getLogger("mainspring.worker")


class Switchboard:
    """Calls *turn* whenever something has come, or when the seconds have passed that *turn* returned.

    All that it calls, it calls on its one thread, so what belongs to that thread alone needs no lock. An error that
    was not foreseen is logged, and the thread goes on.
    """

    def __init__(self, name: str, turn: Callable[[], float]) -> None:
        self._turn = turn
        self._orders: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ, (self._hear_bell, None))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mainspring-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def tell(self, order: Callable[[], None]) -> None:
        """Have *order* carried out, after those that were given before. Called by any thread."""
        self._orders.append(order)
        self.wake()

    def wake(self) -> None:
        """Have a turn made at once. Called by any thread."""
        # A full bell rings anyway, and a closed one has nobody to wake.
        with suppress(OSError):
            self._bell.send(b"\0")

    def connect(self, line: Line, hear: Callable[[], None], speak: Callable[[], object]) -> None:
        """Call *hear* whenever there is something to read on *line*, and *speak* as `attend` says."""
        self._selector.register(line, selectors.EVENT_READ, (hear, speak))

    def attend(self, line: Line, *, to_speak: bool) -> None:
        """Say whether to call *speak* when *line* has room. While there is nothing to say, it would have no end."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if to_speak else 0)
        key = self._selector.get_key(line)
        if key.events != events:
            self._selector.modify(line, events, key.data)

    def disconnect(self, line: Line) -> None:
        """Listen to *line* no longer, if anybody did."""
        with suppress(KeyError):
            self._selector.unregister(line)

    def end(self) -> None:
        """End after this turn."""
        self._over.set()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        pause = 0.0
        while not self._over.is_set():
            try:
                for key, events in self._selector.select(None if pause == math.inf else pause):
                    hear, speak = key.data
                    if events & selectors.EVENT_WRITE:
                        speak()
                    if events & selectors.EVENT_READ:
                        hear()
                while self._orders:
                    self._orders.popleft()()
                pause = self._turn()
            except Exception:
                log.exception("%s failed in a way that it should not; going on", self._thread.name)
                self._over.wait(_PAUSE_AFTER_ERROR)
                pause = 0.0  # the bell may have rung already for orders that are still to be carried out
        self._selector.close()
        self._bell.close()
        self._ear.close()

    def _hear_bell(self) -> None:
        self._ear.recv(4096)
