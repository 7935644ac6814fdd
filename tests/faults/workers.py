"""Worker processes that storms kill and replace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mainspring import Mainspring


class Workers:
    """So many processes of one command of Python's, the one that was started first at the head."""

    def __init__(
        self, count: int, command: list[str], environment: Mapping[str, str], errors: IO[bytes] | None = None
    ) -> None:
        """What they say goes to *errors*, or where ours goes."""
        self._command = [sys.executable, "-W", "ignore", *command]
        self._environment = {**os.environ, **environment}
        self._errors = errors
        self.alive: list[subprocess.Popen[bytes]] = []
        self.kills = 0
        for _ in range(count):
            self.start()

    def start(self) -> None:
        folder = Path(__file__).parents[2]
        self.alive.append(subprocess.Popen(self._command, env=self._environment, cwd=folder, stderr=self._errors))

    def kill(self) -> int:
        """Kill the one at the head, and return its process id once it is gone."""
        victim = self.alive.pop(0)
        victim.kill()
        victim.wait()
        self.kills += 1
        return victim.pid

    def replace_ended(self) -> None:
        """Start another for each that has ended by itself, as one does that finds no database when it starts."""
        for ended in [worker for worker in self.alive if worker.poll() is not None]:
            self.alive.remove(ended)
            self.start()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have all end with the block, whatever became of them."""
        try:
            yield
        finally:
            for worker in self.alive:
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
            for worker in self.alive:
                worker.wait()


def let_finish(app: Mainspring) -> None:
    """Wait until no job is left; not for ever, so that one which is stuck is told of in the account."""
    give_up = time.monotonic() + 120
    while app.client.store.counts() and time.monotonic() < give_up:
        time.sleep(0.2)
