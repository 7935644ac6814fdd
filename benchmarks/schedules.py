"""Measure time: how late delayed jobs start, and what many schedules cost: `python -m benchmarks.schedules`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.report import machine
from benchmarks.worker import Child, idle, postgres, sqlite
from benchmarks.worker_child import make_app
from mainspring import Mainspring, every
from mainspring.task_handle import TaskHandle

SCHEDULES = 100_000
HERD = 10_000
DELAYED = 2_000
OVER = timedelta(seconds=10)


def lateness(url: str, due: Sequence[datetime]) -> list[float]:
    """Return by how many seconds jobs that were enqueued for these times started late; a worker process runs them."""
    app, _, _ = make_app(url)
    worker = _worker(url)
    for when in sorted(set(due)):
        handle = TaskHandle[..., None](app.client, app.tasks.get("due")).using(run_at=when)
        handle.enqueue_many([((when.timestamp(),), {})] * due.count(when))
    return _finished(app, worker)


def bare_sleeps(count: int, gap: float) -> list[float]:
    """Return by how many seconds bare sleeps are late on this machine, one every *gap* seconds."""
    late, due = [], time.monotonic() + gap
    for _ in range(count):
        time.sleep(max(0.0, due - time.monotonic()))
        late.append(time.monotonic() - due)
        due += gap
    return late


def herd(url: str, count: int) -> list[float]:
    """Return how late the jobs of *count* schedules start that are due in the same instant."""
    app, _, _ = make_app(url)
    start = _soon(5 + count / 2_000)
    task = TaskHandle[..., None](app.client, app.tasks.get("due"))
    app.schedules.add_many(
        app.schedules.new(f"herd-{n}", task, every("1h", start=start), args=[start.timestamp()], max_runs=1)
        for n in range(count)
    )
    assert datetime.now(UTC) < start, "the schedules were not stored before they were due"
    return _finished(app, _worker(url))


def add_rate(url: str, count: int) -> float:
    """Return the seconds that it takes to store *count* schedules that are not due for long."""
    app, _, _ = make_app(url)
    task = TaskHandle[..., None](app.client, app.tasks.get("noop"))
    begun = time.monotonic()
    app.schedules.add_many(
        app.schedules.new(f"s-{n}", task, every("1d", start=_soon(3600 + n / 10))) for n in range(count)
    )
    took = time.monotonic() - begun
    app.close()
    return took


def _soon(seconds: float) -> datetime:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)


def _worker(url: str) -> Child:
    worker = Child("worker", url)
    worker.go()
    time.sleep(2.0)
    return worker


def _finished(app: Mainspring, worker: Child) -> list[float]:
    """Wait until nothing is left to do, and return what the worker has seen."""
    while app.client.store.counts() or any(not one.ended for one in _first_schedules(app)):
        time.sleep(0.2)
    app.close()
    return list(json.loads(worker.end()))


def _first_schedules(app: Mainspring) -> list[Any]:
    return [one for one in app.client.store.schedules(limit=20_000) if one.id.startswith("herd")]


def measure(store: str, table: Table) -> None:
    opened = {"sqlite": sqlite, "postgres": postgres}[store]
    _add(table, "", "bare sleeps at the same pace, ms late", bare_sleeps(DELAYED, OVER.total_seconds() / DELAYED))
    with opened() as url:
        begun = _soon(8)
        spread = [begun + OVER * n / DELAYED for n in range(DELAYED)]
        _add(table, store, f"{DELAYED:,} delayed jobs over {OVER.seconds} s, ms late", lateness(url, spread))
    with opened() as url:
        _add(table, store, f"{HERD:,} delayed jobs due at once, ms late", lateness(url, [_soon(6)] * HERD))
    with opened() as url:
        table.add_row(store, f"{SCHEDULES:,} schedules added", f"{add_rate(url, SCHEDULES):.1f} s", "")
        share, megabytes = idle(url, 20.0)
        table.add_row(store, "worker beside them, idle", f"{share:.2%} of a core", f"{megabytes:.0f} MB")
        _add(table, store, f"{HERD:,} more schedules due at once, ms late", herd(url, HERD))


def _add(table: Table, store: str, what: str, late: list[float]) -> None:
    hundredths = quantiles(late, n=100)
    early = sum(one < 0 for one in late)
    figures = f"p50 {hundredths[49] * 1e3:.1f}  p99 {hundredths[98] * 1e3:.1f}  max {max(late) * 1e3:.1f}"
    table.add_row(store, what, figures, f"{len(late):,} started, {early} early")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedules", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this one")
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    console.print(machine())
    table = Table()
    for column in ("store", "what", "figures", ""):
        table.add_column(column)
    for store in options.store or ["sqlite", "postgres"]:
        measure(store, table)
    console.print(table)


if __name__ == "__main__":
    main()
