"""How a thread hears of other threads and of writes to a file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mainspring.store.sqlite import ears
from mainspring.store.sqlite.ears import Ears

LONG = 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text("")
    return path


def waiting(listening: Ears) -> threading.Thread:
    thread = threading.Thread(target=listening.wait, args=(LONG,), daemon=True)
    thread.start()
    return thread


def has_ended(thread: threading.Thread) -> bool:
    thread.join(LONG / 2)
    return not thread.is_alive()


def test_a_ring_ends_the_wait(file: Path) -> None:
    listening = Ears(file)
    thread = waiting(listening)

    listening.ring()

    assert has_ended(thread)
    listening.close()


def test_a_ring_before_the_wait_is_not_lost(file: Path) -> None:
    listening = Ears(file)
    for _ in range(100_000):
        listening.ring()

    assert has_ended(waiting(listening))
    listening.close()


def test_a_write_to_the_file_ends_the_wait_each_time(file: Path) -> None:
    listening = Ears(file)
    for text in ("one", "two", "three"):
        thread = waiting(listening)
        file.write_text(text)
        assert has_ended(thread)
    listening.close()


def test_where_the_system_does_not_tell_the_wait_is_short(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ears, "_watch", lambda _: None)
    listening = Ears(file)

    assert has_ended(waiting(listening))
    listening.close()


def test_a_file_that_is_not_there_can_not_be_watched(tmp_path: Path) -> None:
    assert ears._watch(tmp_path / "missing") is None


def test_to_ring_what_is_closed_harms_nobody(file: Path) -> None:
    listening = Ears(file)
    listening.close()
    listening.close()
    with file.open("w") as other:  # it may get a number that was the bell's
        listening.ring()
        other.flush()

    assert file.read_text() == ""
