"""The signals that ask a process to stop: SIGTERM and SIGINT, and of what has a terminal those that this sends, too."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from mainspring.errors import MainspringError

_STOPPING = (signal.SIGTERM, signal.SIGINT)
_OF_TERMINAL = (signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def on_stop_signal(call: Callable[[], None], *, of_terminal: bool = False) -> Iterator[None]:
    """Have *call* called, by a thread of its own, for each SIGTERM and SIGINT while the block lasts.

    With *of_terminal*, for SIGHUP and SIGQUIT as well, which would end the process without a chance to tidy up.

    Not by a handler: the system may give a signal to any thread, and Python runs handlers in the main thread alone,
    which hears nothing of it while it waits for a lock; nor could a handler take a lock that the code below it holds.
    What Python does at once and in whatever thread is to write the signal's number to a file, if it has one.
    """
    if threading.current_thread() is not threading.main_thread():
        raise MainspringError(
            "only the main thread of a program can wait for signals; in another thread use `with app.worker():`"
        )
    numbers = (*_STOPPING, *_OF_TERMINAL) if of_terminal else _STOPPING
    with ExitStack() as undo:
        ours, pythons = socket.socketpair()
        undo.enter_context(ours)
        undo.enter_context(pythons)
        pythons.setblocking(False)
        listener = threading.Thread(target=_listen, args=(ours, call, numbers), name="mainspring-signals", daemon=True)
        listener.start()
        undo.callback(listener.join)
        # Not closing, which says nothing as long as a process that was forked meanwhile has the file open too.
        undo.callback(pythons.shutdown, socket.SHUT_WR)
        undo.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False))
        for number in numbers:
            before = signal.signal(number, _ignore)
            # None is a handler that was not set by Python, which can't set it again.
            undo.callback(signal.signal, number, signal.SIG_DFL if before is None else before)
        yield


def _listen(line: socket.socket, call: Callable[[], None], numbers: Collection[int]) -> None:
    while heard := line.recv(64):
        for number in heard:
            if number in numbers:
                call()


def _ignore(*_: object) -> None:
    """Be a handler, for without one Python would not write the number."""


def _after_fork() -> None:
    """Let a forked child die of its own signals, which it would else ignore and have its parent hear."""
    for number in (*_STOPPING, *_OF_TERMINAL):
        if signal.getsignal(number) is _ignore:
            signal.set_wakeup_fd(-1)
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_after_fork)
