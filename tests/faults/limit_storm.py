"""Workers that share limits while they are killed and stopped: `python -m tests.faults.limit_storm`.

Whether a limit held is judged by what the handlers wrote into a file, not by anything that the database counts.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mainspring import Mainspring
from mainspring.store import open_store
from tests.faults.both_stores import on_both_stores
from tests.faults.workers import Workers, let_finish
from tests.support.databases import execute, table

LEASE = 1.5
GRACE = 0.3
"""Seconds within which a process that was stopped past its lease, and goes on, notices that."""

CONCURRENCY = {"a": 3, "b": 1}


@dataclass(frozen=True)
class Account:
    """What a storm came to."""

    jobs: int
    done: int
    most: dict[str, int]
    slots_left: int
    blocked: int
    kills: int
    stops: int

    @property
    def balanced(self) -> bool:
        within = all(self.most[key] <= CONCURRENCY[key] for key in CONCURRENCY)
        return within and self.done == self.jobs and self.slots_left == self.blocked == 0


class Storm:
    """Workers, of which one after the other is killed, or stopped for longer than its lease."""

    def __init__(self, url: str, ledger: Path, workers: int) -> None:
        command = ["-m", "tests.faults.limit_tasks", str(LEASE)]
        self.workers = Workers(workers, command, {"STORM_URL": url, "STORM_LEDGER": str(ledger)})
        self.gone: dict[int, list[tuple[float, float]]] = {}  # by process: when it did not run
        self.stops = 0

    def kill(self) -> None:
        pid = self.workers.kill()
        self.gone[pid] = [*self.gone.get(pid, []), (time.monotonic(), float("inf"))]
        self.workers.start()

    def stop_for_a_while(self) -> None:
        victim = random.choice(self.workers.alive)
        begun = time.monotonic()
        victim.send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 1.0)
        ended = time.monotonic()
        victim.send_signal(signal.SIGCONT)
        self.gone[victim.pid] = [*self.gone.get(victim.pid, []), (begun, ended + GRACE)]
        self.stops += 1


def storm(url: str, *, jobs: int, workers: int, seconds: float) -> Account:
    open_store(url).close()
    app = Mainspring(url)
    for number in range(jobs):
        app.enqueue("first" if number % 3 else "second")
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        weather = Storm(url, ledger, workers)
        with weather.workers.running():
            give_up = time.monotonic() + seconds
            while time.monotonic() < give_up:
                time.sleep(random.uniform(0.5, 1.0))
                (weather.kill if random.random() < 0.6 else weather.stop_for_a_while)()
            let_finish(app)
        most = _most(ledger.read_text().splitlines(), weather.gone)
    states = app.client.store.counts().get("default", {})
    done = execute(url, f"SELECT count(*) FROM {table(url, 'jobs_done')} WHERE state = 'succeeded'")[0][0]
    slots = execute(url, f"SELECT count(*) FROM {table(url, 'slots')}")[0][0]
    app.close()
    blocked = sum(number for state, number in states.items() if state == "blocked")
    return Account(jobs, done, most, slots, blocked, weather.workers.kills, weather.stops)


def _most(ledger: list[str], gone: dict[int, list[tuple[float, float]]]) -> dict[str, int]:
    """Return how many handlers of each key ran at once at most. One whose process does not run does not run either."""
    begun: dict[str, tuple[float, str, int]] = {}
    stretches: list[tuple[float, float, str]] = []
    for line in ledger:
        at, what, key, pid, attempt = line.split()
        if what == "begin":
            begun[attempt] = (float(at), key, int(pid))
        else:
            start, key, process = begun.pop(attempt)
            stretches += _without(start, float(at), key, gone.get(process, []))
    for start, key, process in begun.values():
        stretches += _without(start, float("inf"), key, gone.get(process, []))
    changes = sorted([(start, 1, key) for start, _, key in stretches] + [(end, -1, key) for _, end, key in stretches])
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for _, change, key in changes:
        running[key] += change
        most[key] = max(most[key], running[key])
    return dict(most)


def _without(start: float, end: float, key: str, gone: list[tuple[float, float]]) -> list[tuple[float, float, str]]:
    """Return the stretch from *start* to *end* without the times in which its process did not run."""
    stretches = []
    for away, back in sorted(gone):
        if away < end and back > start:
            if away > start:
                stretches.append((start, away, key))
            start = back
    return [*stretches, (start, end, key)] if start < end else stretches


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.limit_storm", description=__doc__)
    parser.add_argument("--jobs", type=int, default=600, help="%(default)s")
    parser.add_argument("--workers", type=int, default=8, help="%(default)s")
    parser.add_argument("--seconds", type=float, default=30, help="that it lasts (%(default)s)")
    given = parser.parse_args()
    on_both_stores(lambda url: storm(url, jobs=given.jobs, workers=given.workers, seconds=given.seconds))


if __name__ == "__main__":
    main()
