"""The screen, kept up to date: keys come in, looks are taken beside them, and what has changed is drawn."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from rich.console import Console
from rich.live import Live

from mainspring.cli.apps import App
from mainspring.cli.top.deeds import do
from mainspring.cli.top.draw import draw
from mainspring.cli.top.keys import keyboard
from mainspring.cli.top.screen import Screen, press
from mainspring.cli.top.snapshot import Snapshot, Watch
from mainspring.clock import Clock
from mainspring.errors import MainspringError
from mainspring.signals import on_stop_signal

_BLINK = 0.1
"""Seconds after which it is noticed that the terminal has another size, or that a look has ended."""


class Top:
    """What happens to an app, shown as *about* says what it is, and ruled by keys."""

    def __init__(self, app: App, watch: Watch, clock: Clock, every: float, about: str) -> None:
        self._app = app
        self._watch = watch
        self._clock = clock
        self._every = every
        self._about = about
        self._screen = Screen()
        self._snapshot = watch.look()
        self._looking: Future[Snapshot] | None = None
        self._trouble = ""
        self._due = clock.steady() + every

    def run(self, console: Console, file: int) -> None:
        """Draw on *console*, and listen to the keys of the terminal behind *file*, until the user has seen enough."""
        try:
            self._run(console, file)
        except OSError:
            if os.isatty(file):
                raise  # else the terminal was closed, and nobody is there to be told

    def _run(self, console: Console, file: int) -> None:
        stopped = threading.Event()
        # Looks end before the database is closed; the screen goes first, so that nobody waits for them in front of it.
        with (
            ThreadPoolExecutor(1, "mainspring-top") as eyes,
            on_stop_signal(stopped.set, of_terminal=True),
            keyboard(file) as keys,
            Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            shown: object = None
            while not stopped.is_set():
                size = console.size
                if shown != (self._screen, self._snapshot, size):
                    live.update(
                        draw(self._screen, self._snapshot, (size.width, size.height), self._about), refresh=True
                    )
                    shown = self._screen, self._snapshot, size
                pressed = keys.wait(_BLINK)
                if pressed is None or self._leaves(pressed):
                    return
                self._look(eyes)

    def _leaves(self, keys: list[str]) -> bool:
        """Do as the keys say, and return whether to leave."""
        for key in keys:
            before = self._screen.place
            came = press(self._screen, key, self._snapshot)
            self._screen = came.screen
            if came.leave:
                return True
            if came.deed is not None:
                self._screen = replace(self._screen, said=do(self._app, came.deed))
                self._watch.hurry()
            if came.deed is not None or self._screen.place != before:
                self._due = 0.0
        return False

    def _look(self, eyes: ThreadPoolExecutor) -> None:
        """Take what a look has found, and begin another when it is time."""
        if self._looking is not None:
            if not self._looking.done():
                return
            looked, self._looking = self._looking, None
            self._take(looked)
        now = self._clock.steady()
        if now >= self._due:
            self._due = now + self._every
            self._looking = eyes.submit(self._watch.look, self._screen.place)

    def _take(self, looked: Future[Snapshot]) -> None:
        try:
            self._snapshot, trouble = looked.result(), ""
        except MainspringError as error:  # which may pass
            trouble = f"Can't look, trying on: {error}."
        if trouble or self._screen.said == self._trouble:
            self._screen = replace(self._screen, said=trouble)
        self._trouble = trouble
