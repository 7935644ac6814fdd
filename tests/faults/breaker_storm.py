"""Workers whose downstream goes away and comes back, while some are killed: `python -m tests.faults.breaker_storm`.

What was called when is judged by what the handlers wrote into a file, not by anything that the database counts.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mainspring import Mainspring
from mainspring.store import open_store
from tests.support.databases import execute, table
from tests.support.postgres import FAST_AND_LOOSE, running_server

LEASE = 1.5
OF = 20
"""Attempts that the breaker looks at: no more may be lost to the downstream."""


@dataclass(frozen=True)
class Account:
    """What a storm came to.

    `burned` are attempts that jobs lost to the downstream, `failed` its calls that failed. `ramp` says how many calls
    were under way as each of the first began since it was back, and `ahead` by how many these ever exceeded one more
    than had succeeded by then. `back_to_done` are the seconds from the downstream's return to the end of all jobs.
    """

    jobs: int
    done: int
    burned: int
    failed: int
    ramp: list[int]
    ahead: int
    slots_left: int
    kills: int
    back_to_done: float

    @property
    def balanced(self) -> bool:
        return self.done == self.jobs and self.burned <= OF and self.ahead <= 0 and self.slots_left == 0


class Fleet:
    """Workers, of which one after the other is killed."""

    def __init__(self, environment: dict[str, str], workers: int) -> None:
        self._environment = environment
        self.alive = [self._start() for _ in range(workers)]
        self.kills = 0

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-m", "tests.faults.breaker_tasks", str(LEASE)]
        return subprocess.Popen(
            command, env=self._environment, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        victim = self.alive.pop(0)
        victim.kill()
        victim.wait()
        self.kills += 1
        self.alive.append(self._start())

    @contextmanager
    def running(self) -> Iterator[None]:
        try:
            yield
        finally:
            for worker in self.alive:
                worker.terminate()
            for worker in self.alive:
                worker.wait()


def storm(url: str, *, jobs: int, workers: int, seconds: float, cooldown: str) -> Account:
    """Let the downstream be away for so many *seconds*, and return once all is done."""
    open_store(url).close()
    app = Mainspring(url)
    enqueue(app, jobs // 2)
    with tempfile.TemporaryDirectory() as folder:
        ledger, down = Path(folder) / "ledger", Path(folder) / "down"
        ledger.touch()
        given = {"STORM_LEDGER": str(ledger), "STORM_DOWN": str(down), "STORM_COOLDOWN": cooldown, "STORM_URL": url}
        fleet = Fleet({**os.environ, **given}, workers)
        with fleet.running():
            while ledger.read_text().count(" end ") < OF:
                time.sleep(0.005)
            down.touch()
            enqueue(app, jobs - jobs // 2)
            back = time.monotonic() + seconds
            while time.monotonic() < back - 2 * LEASE:
                time.sleep(random.uniform(0.3, 2.0))
                fleet.kill()
            time.sleep(max(0.0, back - time.monotonic()))
            down.unlink()
            back = time.monotonic()
            give_up = back + 240
            while app.client.store.counts() and time.monotonic() < give_up:
                time.sleep(0.05)
            back_to_done = time.monotonic() - back
        lines = ledger.read_text().splitlines()
    done = f"FROM {table(url, 'jobs_done')} WHERE state = 'succeeded'"
    ((finished, attempts),) = execute(url, f"SELECT count(*), coalesce(sum(attempt), 0) {done}")
    slots = execute(url, f"SELECT count(*) FROM {table(url, 'slots')}")[0][0]
    app.close()
    ramp, ahead = _ramp(lines, back)
    failed = sum(" fail " in line for line in lines)
    burned = int(attempts) - finished
    return Account(jobs, finished, burned, failed, ramp, ahead, slots, fleet.kills, round(back_to_done, 1))


def enqueue(app: Mainspring, jobs: int) -> None:
    for _ in range(jobs):
        app.enqueue("call")


def _ramp(ledger: list[str], back: float) -> tuple[list[int], int]:
    """Return how many calls were under way as each of the first began since *back*, and how far ahead of a ramp."""
    under_way: set[str] = set()
    succeeded, first, ahead = 0, list[int](), -1
    for line in ledger:
        at, what, attempt = line.split()
        if float(at) < back:
            continue
        if what == "begin":
            under_way.add(attempt)
            ahead = max(ahead, len(under_way) - (1 + succeeded))
            first.append(len(under_way))
        else:
            under_way.discard(attempt)
            succeeded += what == "end"
    return first[:15], ahead


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.breaker_storm", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000, help="%(default)s")
    parser.add_argument("--workers", type=int, default=4, help="%(default)s")
    parser.add_argument("--seconds", type=float, default=30, help="that the downstream is away (%(default)s)")
    parser.add_argument("--cooldown", default="2s..10s", help="%(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_server(FAST_AND_LOOSE) as server:
        for url in (f"sqlite:///{Path(folder) / 'storm.db'}", server.url()):
            account = storm(url, **vars(options))
            sys.stdout.write(
                f"{url.partition(':')[0]} {account} {'balanced' if account.balanced else 'NOT BALANCED'}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
