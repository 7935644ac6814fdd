"""`mainspring bench`: how fast jobs go in and through on this machine, with one process and jobs that do nothing."""

from __future__ import annotations

import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from secrets import token_hex
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mainspring.app import Mainspring
from mainspring.cli.confirm import confirmed
from mainspring.cli.diagnosis import diagnose
from mainspring.cli.options import AsJson
from mainspring.cli.output import cell, counting, listing, say, say_json, show
from mainspring.clock import SystemClock
from mainspring.model.job import JobState
from mainspring.task_handle import TaskHandle
from mainspring.worker.worker import Settings, Surroundings, Worker

BenchUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The address of a database; a SQLite file for the while unless given."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-n", min=500, max=1_000_000, metavar="N", help="How many jobs to run.")]
Threads = Annotated[
    int, typer.Option("--concurrency", "-c", min=1, max=1_000, metavar="N", help="On how many threads.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a database is filled.")]

_BATCH, _CLEARED = 500, 5_000
_PACED, _GAP = 200, 0.020


@dataclass(frozen=True)
class Figures:
    """What was measured: rates in jobs a second, the rest in milliseconds."""

    commit: float | None
    enqueue: float
    drain: float
    start_p50: float
    start_p99: float


def bench(
    url: BenchUrl = None, jobs: Jobs = 20_000, concurrency: Threads = 8, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Measure this machine: enqueue in batches, claim + execute + settle, and how soon a job starts.

    One process, jobs that do nothing. In a database of yours the finished jobs stay until they are pruned, so it asks.
    """
    deed = f"leave {jobs + _PACED:,} finished jobs in that database"
    if url is not None and not yes and not confirmed(deed, as_json):
        say("Nothing was changed.")
        return
    with _database(url) as place:
        figures = measure(place, jobs, concurrency, stays=url is not None, quiet=as_json)
    if as_json:
        say_json({"jobs": jobs, "concurrency": concurrency, **_document(figures)})
    else:
        _show(figures, jobs)


def measure(url: str, jobs: int, concurrency: int, *, stays: bool, quiet: bool) -> Figures:
    """Run the whole on the database at *url*. Where that *stays*, what is left if it is cut short is cancelled."""
    clock, waited = SystemClock(), list[float]()
    left, drained, begun = count(jobs - 1, -1), threading.Event(), threading.Event()
    with closing(Mainspring(url)) as app:
        queue = f"bench-{token_hex(4)}"

        @app.task(queue=queue)
        def nothing() -> None:
            if next(left) == 0:
                drained.set()

        @app.task(queue=queue)
        def begin(sent: float) -> None:
            waited.append(clock.steady() - sent)
            if len(waited) == _PACED:
                begun.set()

        try:
            enqueue = _enqueue(nothing, jobs, clock, quiet)
            started = clock.steady()
            with _working(app, queue, concurrency):
                drained.wait()
            drain = jobs / (clock.steady() - started)  # to the last settle: the worker ends when all are written
            with _working(app, queue, concurrency):
                _pace(begin, clock, quiet)
                begun.wait()
        finally:
            if stays:
                _clear(app, queue)
    hundredths = quantiles(waited, n=100)
    commit = diagnose(url).commit
    return Figures(
        None if commit is None else commit.total_seconds() * 1e3,
        enqueue,
        drain,
        hundredths[49] * 1e3,
        hundredths[98] * 1e3,
    )


@contextmanager
def _working(app: Mainspring, queue: str, concurrency: int) -> Iterator[None]:
    """Serve that queue and do nothing else: a node would also prune and tell people, by the settings of this shell."""
    client = app.client
    with client.lend() as store:
        given = Surroundings(
            store=store,
            beats=store,
            keys=client.keys,
            tally=client.tally,
            new_ids=client.new_ids,
            heard=lambda _: None,
            gone=lambda _: interrupt_main(),  # the database is no more, and who waits would wait without end
        )
        worker = Worker(given, app.tasks, Settings(queues={queue: 1}, url=client.url, concurrency=concurrency))
        worker.start()
        try:
            yield
        finally:
            worker.stop()


def _enqueue(task: TaskHandle[[], None], jobs: int, clock: SystemClock, quiet: bool) -> float:
    begun = clock.steady()
    with counting("Enqueue jobs", jobs, quiet=quiet) as bar:
        for first in range(0, jobs, _BATCH):
            task.enqueue_many([((), {})] * min(_BATCH, jobs - first))
            bar(min(_BATCH, jobs - first))
    return jobs / (clock.steady() - begun)


def _pace(task: TaskHandle[[float], None], clock: SystemClock, quiet: bool) -> None:
    """Enqueue a job every 20 ms, for a worker that has nothing else to do."""
    with counting("Start jobs", _PACED, quiet=quiet) as bar:
        for _ in range(_PACED):
            task.enqueue(clock.steady())
            clock.sleep(_GAP)
            bar(1)


def _clear(app: Mainspring, queue: str) -> None:
    while left := [job.id for job in app.jobs(state=JobState.READY, queue=queue, limit=_CLEARED)]:
        app.client.store.cancel(left, "the benchmark was cut short")


@contextmanager
def _database(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with TemporaryDirectory() as folder:
        yield f"sqlite:///{Path(folder) / 'bench.db'}"


def _show(figures: Figures, jobs: int) -> None:
    table = listing()
    table.add_column("What", no_wrap=True)
    table.add_column("Figure", justify="right", no_wrap=True)
    table.add_row(cell(f"enqueue, {_BATCH} at a time"), cell(f"{figures.enqueue:,.0f} jobs/s"))
    table.add_row(cell("claim, execute, settle"), cell(f"{figures.drain:,.0f} jobs/s"))
    table.add_row(cell("enqueue → start, p50"), cell(f"{figures.start_p50:,.1f} ms"))
    table.add_row(cell("enqueue → start, p99"), cell(f"{figures.start_p99:,.1f} ms"))
    if figures.commit is not None:
        table.add_row(cell("a bare commit here"), cell(f"{figures.commit:,.1f} ms"))
    show(table)
    say(f"{jobs:,} jobs that do nothing, one process; then {_PACED} alone, one every {_GAP * 1e3:.0f} ms.", "dim")


def _document(figures: Figures) -> dict[str, object]:
    return {
        "enqueue_per_second": round(figures.enqueue),
        "drain_per_second": round(figures.drain),
        "start_p50_ms": round(figures.start_p50, 2),
        "start_p99_ms": round(figures.start_p99, 2),
        "commit_ms": None if figures.commit is None else round(figures.commit, 2),
    }
