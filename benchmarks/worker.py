"""Measure the worker: throughput beside bare SQL in the same run, latency, idle cost: `python -m benchmarks.worker`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import IO

from rich.console import Console
from rich.table import Table
from tests.support.postgres import running_server

from benchmarks.report import machine
from benchmarks.store import POSTGRES_SETTINGS
from benchmarks.worker_child import BATCH, bare_side, make_app
from mainspring import Mainspring
from mainspring.store import open_store
from mainspring.task_handle import TaskHandle

GAP = 0.020
KINDS = {
    "bare": "bare SQL",
    "noop": "worker",
    "limited": "worker, each job with a limit",
    "fair": "worker, each job with a limit and a fair key",
    "guarded": "worker, each job under a breaker that is closed",
}
"""What drains jobs: bare SQL, or a worker to which they are jobs of the task of that name."""


class Child:
    """A child process, seen from the parent."""

    def __init__(self, kind: str, url: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.worker_child", kind, url]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done = 0
        self.last = ""
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def end(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        return self.last

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self.last = line
            if line.strip().isdigit():
                self.done = int(line)


# Throughput.


def drain_rate(kind: str, url: str, jobs: int, processes: int) -> float:
    """Return how many jobs a second *processes* of *kind* finish, having started with *jobs* of them ready."""
    fill(url, jobs, "noop" if kind == "bare" else kind)
    children = [Child("bare" if kind == "bare" else "worker", url) for _ in range(processes)]
    time.sleep(1.0)  # all have imported what they need, and wait for the line
    begun = time.monotonic()
    for one in children:
        one.go()
    while sum(one.done for one in children) < jobs:
        time.sleep(0.001)
    store = open_store(url)
    while store.counts():
        time.sleep(0.002)
    took = time.monotonic() - begun
    store.close()
    for one in children:
        one.end()
    return jobs / took


def fill(url: str, jobs: int, task: str) -> None:
    """Enqueue jobs, of ten tenants where the task has some."""
    app, _, _ = make_app(url)
    calls: list[tuple[tuple[int, ...], dict[str, int]]] = [
        ((number % 10,) if task in ("limited", "fair") else (), {}) for number in range(jobs)
    ]
    TaskHandle[..., None](app.client, app.tasks.get(task)).enqueue_many(calls)
    app.close()


def enqueue_rate(url: str, jobs: int) -> float:
    """Return how many jobs a second are enqueued in batches, each checked against its handler."""
    app, _, _ = make_app(url)
    handle = TaskHandle[..., None](app.client, app.tasks.get("started"))
    handle.enqueue(0.0)
    begun = time.monotonic()
    for _ in range(jobs // BATCH):
        handle.enqueue_many([((1.5,), {})] * BATCH)
    took = time.monotonic() - begun
    app.close()
    return jobs / took


# Latency and idle cost.


def latency(url: str, jobs: int, *, across: bool) -> list[float]:
    """Return the seconds from an enqueue call to the start of its handler, one job every 20 ms."""
    app, _, latencies = make_app(url)
    if not across:
        with app.worker(concurrency=8):
            _send(app, jobs)
            time.sleep(0.2)
        app.close()
        return latencies
    worker = Child("worker", url)
    worker.go()
    time.sleep(2.0)
    _send(app, jobs)
    time.sleep(0.2)
    app.close()
    return list(json.loads(worker.end()))


def _send(app: Mainspring, jobs: int) -> None:
    handle = TaskHandle[..., None](app.client, app.tasks.get("started"))
    time.sleep(0.5)
    for _ in range(jobs):
        due = time.monotonic() + GAP
        handle.enqueue(time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def bare_commits(url: str, jobs: int) -> list[float]:
    """Return the seconds that a bare INSERT with its COMMIT takes, at the same pace: below that no start can be."""
    side = bare_side(url)
    took = []
    for _ in range(jobs):
        batch, begun = side.batch(1), time.monotonic()
        side.enqueue_one(batch)
        took.append(time.monotonic() - begun)
        time.sleep(max(0.0, begun + GAP - time.monotonic()))
    side.close()
    return took


def idle(url: str, seconds: float) -> tuple[float, float]:
    """Return the share of a core, and the megabytes, that a worker with nothing to do takes."""
    worker = Child("idle", url)
    worker.go()
    time.sleep(5.0)
    before = json.loads(worker.last)
    time.sleep(seconds)
    after = json.loads(worker.end())
    return (after["cpu"] - before["cpu"]) / (after["at"] - before["at"]), after["megabytes"]


# The report.


@contextmanager
def sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="mainspring-bench-", dir="/var/tmp") as folder:
        url = f"sqlite:///{Path(folder) / 'jobs.db'}"
        open_store(url).close()
        yield url


@contextmanager
def postgres() -> Iterator[str]:
    with running_server(POSTGRES_SETTINGS) as server:
        open_store(server.url()).close()
        yield server.url()


def measure(store: str, jobs: int, rounds: int) -> dict[str, object]:
    processes = 1 if store == "sqlite" else 2
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    found: dict[str, object] = {"processes": processes}
    for number in range(rounds):
        for kind in KINDS if number % 2 else reversed(tuple(KINDS)):
            with (sqlite if store == "sqlite" else postgres)() as url:
                rates[kind].append(drain_rate(kind, url, jobs, processes))
    found.update(rates)
    with (sqlite if store == "sqlite" else postgres)() as url:
        found["enqueue"] = [enqueue_rate(url, jobs) for _ in range(rounds)]
    with (sqlite if store == "sqlite" else postgres)() as url:
        found["commit"] = bare_commits(url, 300)
    with (sqlite if store == "sqlite" else postgres)() as url:
        found["in process"] = latency(url, 300, across=False)
        found["across"] = latency(url, 300, across=True)
        found["idle"] = idle(url, 10.0)
    return found


def as_table(store: str, found: dict[str, object]) -> Table:
    table = Table(title=f"{store}, {found['processes']} worker process(es)")
    for column in ("what", "median", "spread"):
        table.add_column(column)
    rates = {kind: found[kind] for kind in KINDS}
    for name, ones in {**{KINDS[kind]: rates[kind] for kind in KINDS}, "enqueue": found["enqueue"]}.items():
        assert isinstance(ones, list)
        table.add_row(f"{name}, jobs/s", f"{median(ones):,.0f}", f"{min(ones):,.0f}-{max(ones):,.0f}")
    for kind, other in (("noop", "bare"), ("limited", "noop"), ("fair", "noop"), ("guarded", "noop")):
        ones, others = rates[kind], rates[other]
        assert isinstance(ones, list)
        assert isinstance(others, list)
        ratios = [one / another for one, another in zip(ones, others, strict=True)]
        table.add_row(
            f"{KINDS[kind]} / {KINDS[other]}",
            f"{median(ones) / median(others):.0%}",
            f"{min(ratios):.0%}-{max(ratios):.0%}",
        )
    for name, key in (
        ("bare INSERT + COMMIT, ms", "commit"),
        ("enqueue → start, in process, ms", "in process"),
        ("enqueue → start, across, ms", "across"),
    ):
        seconds = found[key]
        assert isinstance(seconds, list)
        hundredths = quantiles(seconds, n=100)
        table.add_row(name, f"p50 {hundredths[49] * 1e3:.2f}", f"p99 {hundredths[98] * 1e3:.2f}")
    assert isinstance(found["idle"], tuple)
    share, megabytes = found["idle"]
    table.add_row("idle worker", f"{share:.2%} of a core", f"{megabytes:.0f} MB")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("--jobs", type=int, default=40_000, help="jobs in a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds on each side (%(default)s)")
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this one")
    options = parser.parse_args()
    console = Console(width=max(100, Console().width))
    console.print(machine())
    for store in options.store or ["sqlite", "postgres"]:
        console.print(as_table(store, measure(store, options.jobs, options.rounds)))


if __name__ == "__main__":
    main()
