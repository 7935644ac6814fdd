"""The signals that ask a process to stop: SIGTERM and SIGINT."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_stop_signal(call: Callable[[], None]) -> Iterator[None]:
    """Have *call* called, by a thread of its own, for each SIGTERM and SIGINT while the block lasts.

    Not by a handler: the system may give a signal to any thread, and Python runs handlers in the main thread alone,
    which hears nothing of it while it waits for a lock; nor could a handler take a lock that the code below it holds.
    What Python does at once and in whatever thread is to write the signal's number to a file, if it has one.
    """
    ours, pythons = socket.socketpair()
    pythons.setblocking(False)
    listener = threading.Thread(target=_listen, args=(ours, call), name="mainspring-signals", daemon=True)
    wakeup_before = signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _ignore) for number in _STOPPING}
    listener.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup_before)
        pythons.close()
        listener.join()
        ours.close()


def _listen(line: socket.socket, call: Callable[[], None]) -> None:
    while numbers := line.recv(64):
        for number in numbers:
            if number in _STOPPING:
                call()


def _ignore(*_: object) -> None:
    """Be a handler, for without one Python would not write the number."""
