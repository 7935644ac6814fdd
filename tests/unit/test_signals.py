"""How a process hears that it is to stop."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from mainspring.errors import MainspringError
from mainspring.signals import on_stop_signal

PATIENCE = 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_given_to_another_thread_is_heard_while_the_main_thread_waits_for_a_lock(
    number: signal.Signals,
) -> None:
    heard = threading.Event()
    with on_stop_signal(heard.set):
        threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), number)).start()
        assert heard.wait(PATIENCE)


def test_every_signal_is_heard() -> None:
    heard: SimpleQueue[None] = SimpleQueue()
    with on_stop_signal(lambda: heard.put(None)):
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
            heard.get(timeout=PATIENCE)


def test_other_signals_are_none_of_ours() -> None:
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with on_stop_signal(heard.set):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert not heard.is_set()


def test_afterwards_all_is_as_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with on_stop_signal(lambda: None):
        pass

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_without_signals_nothing_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    def socketpair() -> tuple[socket.socket, socket.socket]:
        made.extend(real())
        return made[0], made[1]

    def refused(_: int, **__: object) -> int:
        raise ValueError("no")

    real = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", socketpair)
    monkeypatch.setattr(signal, "set_wakeup_fd", refused)

    with pytest.raises(ValueError, match="no"), on_stop_signal(lambda: None):
        pass

    assert [line.fileno() for line in made] == [-1, -1]
    assert "mainspring-signals" not in [thread.name for thread in threading.enumerate()]


def test_in_another_thread_the_way_out_is_named() -> None:
    said: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        try:
            with on_stop_signal(lambda: None):
                pass
        except MainspringError as error:
            said.put(str(error))

    threading.Thread(target=listen).start()

    assert "with app.worker()" in said.get(timeout=PATIENCE)


def test_a_handler_that_python_did_not_set_gives_way_to_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    real, before = signal.signal, {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def unknown_before(number: int, handler: Any) -> None:
        real(number, handler)

    monkeypatch.setattr(signal, "signal", unknown_before)
    try:
        with on_stop_signal(lambda: None):
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            real(number, handler)


FORKING = """
import os, signal, threading, time
from mainspring.signals import on_stop_signal

def fork():
    global child
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        if own:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
        os.write(ready, b".")
        signal.pause()
        os._exit(0)

heard = []
read, ready = os.pipe()
with on_stop_signal(lambda: heard.append(True)):
    forker = threading.Thread(target=fork)
    forker.start()
    forker.join()
    os.read(read, 1)
"""


def forking(last: str, *, own: bool = False) -> str:
    """Run a program that forks while it listens for signals, and then does *last*; return what it has printed.

    The child has a handler of its *own*, or none.
    """
    program = [sys.executable, "-W", "ignore", "-c", f"{own = }{FORKING}{last}"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("own", "code"), [(False, -signal.SIGTERM), (True, 7)])
def test_a_forked_child_dies_of_a_signal_that_its_parent_does_not_hear(own: bool, code: int) -> None:
    # Again and again: one that comes just before the child waits for it is heard when the next one does.
    last = """
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        os.kill(child, signal.SIGTERM)
        time.sleep(0.05)
print(os.waitstatus_to_exitcode(ended[1]), heard)
"""
    assert forking(last, own=own) == f"{code} []\n"


def test_the_end_does_not_wait_for_a_forked_child() -> None:
    last = """
print("ended")
os.kill(child, signal.SIGKILL)
"""
    assert forking(last) == "ended\n"
