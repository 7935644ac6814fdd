"""Measure workflows: how soon a job follows its parent, and what a fan-out costs: `python -m benchmarks.workflows`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median, quantiles
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.report import machine
from benchmarks.worker import Child, bare_commits, idle, postgres, sqlite
from benchmarks.worker_child import make_app
from mainspring import JobState, Mainspring
from mainspring.model.job import Job
from mainspring.task_handle import TaskHandle

CHAIN = 100
CHAINS = 5
JOBS = 10_000
HOP_GOAL = 5.0
"""Milliseconds from the settling of a parent to the start of its child, in the median."""

SLEEPERS = 100_000
IDLE = 20.0
FAN_OUT_GOAL = 1.5
"""Times as long as as many plain jobs take."""


class Hops(NamedTuple):
    """Seconds from parents to their children, in chains of jobs that an idle worker process runs.

    From the end of one handler to the start of the next, which includes the settling; from the moment that the database
    has for the end of the parent, which is shortly before that is committed, to the start of the child's handler, and
    to the moment that the database has for its claim. All clocks are those of one machine.
    """

    ended_to_started: list[float]
    settled_to_started: list[float]
    settled_to_claimed: list[float]


def hops(url: str, chains: int, length: int) -> Hops:
    app, _, _ = make_app(url)
    worker = _worker(url)
    jobs: list[Job] = []
    for _ in range(chains):
        with app.workflow("chain") as wf:
            last = wf.add("hop")
            for _ in range(length - 1):
                last = wf.add(_task(app, "hop").using(after=[last]))
        run = wf.enqueue()
        _wait(app)
        jobs += run.members()
    app.close()
    seen: list[float] = json.loads(worker.end())
    found = Hops([], [], [])
    for parent, child in pairwise(range(len(jobs))):
        if child % length == 0:
            continue  # from the end of one chain to the next
        began_at, began, _ = seen[3 * child : 3 * child + 3]
        settled_at, claimed_at = jobs[parent].finished_at, jobs[child].started_at
        assert settled_at is not None
        assert claimed_at is not None
        found.ended_to_started.append(began - seen[3 * parent + 2])
        found.settled_to_started.append(began_at - settled_at.timestamp())
        found.settled_to_claimed.append((claimed_at - settled_at).total_seconds())
    return found


def plain(url: str, jobs: int) -> float:
    """Return the seconds from the enqueueing of so many jobs to the end of all."""
    app, _, _ = make_app(url)
    worker = _worker(url)
    begun = time.monotonic()
    _task(app, "same").enqueue_many([((number,), {}) for number in range(jobs)])
    took = _finished(app, worker, jobs, begun)
    app.close()
    worker.end()
    return took


def fan_out(url: str, jobs: int) -> float:
    """Return the seconds from the enqueueing of a workflow to its end: a list, a job for each item, and their sum."""
    app, _, _ = make_app(url)
    worker = _worker(url)
    begun = time.monotonic()
    with app.workflow("fan-out") as wf:
        wf.add("total", wf.map("same", wf.add("numbers", jobs)))
    run = wf.enqueue()
    took = _finished(app, worker, jobs, begun)
    assert run.result() == sum(range(jobs))
    app.close()
    worker.end()
    return took


def lie_down(url: str, jobs: int) -> float:
    """Return the seconds from the enqueueing of so many jobs to the moment at which all of them sleep."""
    app, _, _ = make_app(url)
    worker = _worker(url)
    begun = time.monotonic()
    _task(app, "nap").enqueue_many([((), {})] * jobs)
    while app.client.store.counts() != {"default": {JobState.SCHEDULED: jobs}}:
        time.sleep(0.2)
    took = time.monotonic() - begun
    app.close()
    worker.end()
    return took


KINDS = {"plain": plain, "fan-out": fan_out}


def _task(app: Mainspring, name: str) -> TaskHandle[..., object]:
    return TaskHandle(app.client, app.tasks.get(name))


def _worker(url: str) -> Child:
    worker = Child("worker", url)
    worker.go()
    time.sleep(2.0)
    return worker


def _finished(app: Mainspring, worker: Child, jobs: int, begun: float) -> float:
    while worker.done < jobs:
        time.sleep(0.001)
    _wait(app)
    return time.monotonic() - begun


def _wait(app: Mainspring) -> None:
    while app.client.store.counts():
        time.sleep(0.002)


def measure(store: str, jobs: int, rounds: int, table: Table) -> None:
    opened = {"sqlite": sqlite, "postgres": postgres}[store]
    with opened() as url:
        _add(table, store, "bare INSERT + COMMIT, ms", bare_commits(url, 300))
    with opened() as url:
        found = hops(url, CHAINS, CHAIN)
    _add(
        table,
        store,
        f"{CHAINS} chains of {CHAIN}: parent settled → child starts, ms",
        found.settled_to_started,
        HOP_GOAL,
    )
    _add(table, store, "parent settled → child claimed, ms", found.settled_to_claimed)
    _add(table, store, "parent's handler ends → child's starts, ms", found.ended_to_started)
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS if number % 2 else reversed(tuple(KINDS)):
            with opened() as url:
                took[kind].append(KINDS[kind](url, jobs))
    for kind, seconds in took.items():
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        table.add_row(store, f"{jobs:,} jobs, {kind}, s", f"{median(seconds):.2f}", spread, "")
    ratios = [one / other for one, other in zip(took["fan-out"], took["plain"], strict=True)]
    told = f"{median(took['fan-out']) / median(took['plain']):.2f} x"
    per_round = f"per round {median(ratios):.2f} x, {min(ratios):.2f}-{max(ratios):.2f}"
    table.add_row(store, "fan-out / plain", told, per_round, _goal(median(ratios), FAN_OUT_GOAL, " x"))
    with opened() as url:
        alone, _ = idle(url, IDLE)
        table.add_row(store, f"{SLEEPERS:,} jobs lie down to sleep, s", f"{lie_down(url, SLEEPERS):.1f}", "", "")
        share, megabytes = idle(url, IDLE)
        table.add_row(store, "worker with nothing to do, of a core", f"{alone:.2%}", "", "")
        table.add_row(store, "worker beside those that sleep, of a core", f"{share:.2%}", f"{megabytes:.0f} MB", "")


def _add(table: Table, store: str, what: str, seconds: Sequence[float], goal: float | None = None) -> None:
    hundredths = [one * 1e3 for one in quantiles(seconds, n=100)]
    told = "" if goal is None else _goal(hundredths[49], goal, " ms")
    spread = f"p99 {hundredths[98]:.2f}  max {max(seconds) * 1e3:.2f}"
    table.add_row(store, what, f"p50 {hundredths[49]:.2f}", spread, told)


def _goal(reached: float, goal: float, unit: str) -> str:
    return f"[{'green' if reached <= goal else 'red'}]≤ {goal:g}{unit}[/]"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflows", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS, help="jobs of a fan-out (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds on each side (%(default)s)")
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this one")
    options = parser.parse_args()
    console = Console(width=max(120, Console().width))
    console.print(machine())
    table = Table()
    for column in ("store", "what", "median", "spread", "goal"):
        table.add_column(column)
    for store in options.store or ["sqlite", "postgres"]:
        measure(store, options.jobs, options.rounds, table)
    console.print(table)


if __name__ == "__main__":
    main()
