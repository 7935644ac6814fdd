"""Compare the store with bare SQL, side by side in one run: `python -m benchmarks.store`."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median

import psycopg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tests.support.postgres import database, running_server

from benchmarks.bare import BarePostgres, BareSqlite
from benchmarks.report import OPERATIONS, Comparison, Round, as_json, as_table, compare, machine
from benchmarks.sides import Side, StoreSide
from mainspring.store import open_store

BATCH = 500
SINGLE_CALLS = 50
POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
}

Pair = tuple[str, Side, Side]
"""A title, the ceiling, the store."""


def main() -> None:
    options = _options()
    results = {}
    for name in options.store:
        with _PAIRS[name]() as (title, ceiling, store):
            results[name] = (title, _measure(title, ceiling, store, options.jobs, options.rounds))
    if options.json:
        stores = {name: as_json(title, comparisons) for name, (title, comparisons) in results.items()}
        print(json.dumps({"machine": machine(), "jobs": options.jobs, "batch": BATCH, "stores": stores}, indent=2))
        return
    console = Console(width=max(140, Console().width))
    for title, comparisons in results.values():
        console.print(as_table(f"{title}, {options.rounds} rounds of {options.jobs:,} jobs", comparisons))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs in a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds on each side (%(default)s)")
    parser.add_argument("--store", choices=list(_PAIRS), action="append", help="only this one")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    options.store = options.store or list(_PAIRS)
    return options


@contextmanager
def _sqlite_pair() -> Iterator[Pair]:
    # /tmp is in memory on many systems; /var/tmp is not.
    with tempfile.TemporaryDirectory(prefix="mainspring-bench-", dir="/var/tmp") as folder, ExitStack() as stack:
        bare = Path(folder) / "bare.db"
        open_store(f"sqlite:///{bare}").close()
        ceiling = stack.enter_context(closing(BareSqlite(str(bare))))
        store = stack.enter_context(closing(StoreSide(f"sqlite:///{folder}/store.db", tidy=ceiling.tidy)))
        yield f"SQLite {machine()['sqlite']}, synchronous=FULL", ceiling, store


@contextmanager
def _postgres_pair() -> Iterator[Pair]:
    with running_server(POSTGRES_SETTINGS) as server, ExitStack() as stack:
        bare, own = (stack.enter_context(database(server.url(), name)) for name in ("bare", "store"))
        open_store(bare).close()
        ceiling = stack.enter_context(closing(BarePostgres(bare)))
        store = stack.enter_context(closing(StoreSide(own, tidy=lambda: _vacuum(own))))
        yield f"PostgreSQL {_server_version(own)}, fsync=on, synchronous_commit=on", ceiling, store


_PAIRS = {"sqlite": _sqlite_pair, "postgres": _postgres_pair}


def _measure(title: str, ceiling: Side, store: Side, jobs: int, rounds: int) -> list[Comparison]:
    """Run rounds of both sides in turn, the other one first each time; the first, uncounted, warms up."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    measured: dict[Side, list[Round]] = {ceiling: [], store: []}
    with Progress(*columns, console=Console(stderr=True)) as progress:
        shown = progress.add_task(title, total=2 * (rounds + 1))
        for number in range(rounds + 1):
            for side in (ceiling, store) if number % 2 else (store, ceiling):
                measured[side].append(_round(side, jobs if number else BATCH * 4))
                progress.advance(shown)
    return compare(measured[ceiling][1:], measured[store][1:])


def _round(side: Side, jobs: int) -> Round:
    side.tidy()
    enqueue = sum(_timed(side.enqueue, side.batch(size)) for size in _sizes(jobs))
    claim = settle = 0.0
    done = 0
    while done < jobs:
        started = time.perf_counter()
        claimed = side.claim(BATCH)
        between = time.perf_counter()
        done += side.settle(claimed)
        settle += time.perf_counter() - between
        claim += between - started
        if not claimed:
            raise RuntimeError(f"{jobs - done} jobs are missing")
    single = median(_timed(side.enqueue_one, side.batch(1)) for _ in range(SINGLE_CALLS))
    side.settle(side.claim(SINGLE_CALLS))
    values = jobs / enqueue, jobs / claim, jobs / settle, jobs / (claim + settle), single * 1000
    return {operation.name: value for operation, value in zip(OPERATIONS, values, strict=True)}


def _sizes(jobs: int) -> Iterator[int]:
    for first in range(0, jobs, BATCH):
        yield min(BATCH, jobs - first)


def _timed(call: Callable[..., object], argument: object) -> float:
    started = time.perf_counter()
    call(argument)
    return time.perf_counter() - started


def _vacuum(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM mainspring.jobs")


def _server_version(url: str) -> str:
    with psycopg.connect(url) as connection:
        return str(connection.info.parameter_status("server_version"))


if __name__ == "__main__":
    main()
