"""How a process hears that it is to stop."""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue

import pytest

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
