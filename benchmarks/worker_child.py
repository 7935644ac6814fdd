"""A process that works until its standard input is closed, and says how far it is.

It imports as little as a worker does, so that its memory is that of a worker.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring import Breaker, Context, Limit, Mainspring

if TYPE_CHECKING:
    from benchmarks.sides import Side

BATCH = 500
_REPORT = 0.01


def make_app(url: str) -> tuple[Mainspring, Callable[[], int], list[float]]:
    """Return an app with a task that does nothing, how often it has done so, and the latencies it has seen."""
    app = Mainspring(url)
    done = 0
    latencies: list[float] = []

    @app.task
    def noop() -> None:
        nonlocal done
        done += 1

    @app.task(limits=[Limit("tenant:{tenant}", concurrency=1_000)])
    def limited(tenant: int) -> None:  # noqa: ARG001 - the limit looks at it
        nonlocal done
        done += 1

    @app.task(fair="{tenant}", limits=[Limit("tenant:{tenant}", concurrency=1_000)])
    def fair(tenant: int) -> None:  # noqa: ARG001 - as above
        nonlocal done
        done += 1

    @app.task(breaker=Breaker("downstream"))
    def guarded() -> None:
        nonlocal done
        done += 1

    @app.task
    def started(sent: float) -> None:
        latencies.append(time.monotonic() - sent)

    @app.task
    def due(when: float) -> None:
        latencies.append(time.time() - when)

    same_done = _add_workflow_tasks(app, latencies)
    return app, lambda: done + same_done(), latencies


def _add_workflow_tasks(app: Mainspring, seen: list[float]) -> Callable[[], int]:
    """Add what workflows are made of; return how often the task of a fan-out was done."""
    done = 0

    @app.task
    def hop() -> None:
        seen.extend((time.time(), time.monotonic(), time.monotonic()))  # as it begins, on both clocks, and as it ends

    @app.task
    def numbers(count: int) -> list[int]:
        return list(range(count))

    @app.task
    def same(number: int) -> int:
        nonlocal done
        done += 1
        return number

    @app.task
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task
    def nap(ctx: Context) -> None:
        ctx.sleep("30d")

    return lambda: done


def main(kind: str, url: str) -> None:
    """Work as *kind* when a line comes in; print how many jobs are done now and then, and a last line at the end."""
    sys.stdin.readline()
    if kind == "bare":
        _bare(url)
    else:
        _work(url, idle=kind == "idle")


def bare_side(url: str) -> Side:
    """Return what speaks bare SQL to the database at *url*."""
    from benchmarks.bare import BarePostgres, BareSqlite

    return BareSqlite(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else BarePostgres(url)


def _bare(url: str) -> None:
    side = bare_side(url)
    done = 0
    while claimed := side.claim(BATCH):
        done += side.settle(claimed)
        print(done, flush=True)
    side.close()


def _work(url: str, *, idle: bool) -> None:
    app, done, latencies = make_app(url)
    closed = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    with app.worker(concurrency=8):
        while not closed.wait(1.0 if idle else _REPORT):
            print(json.dumps(_usage()) if idle else done(), flush=True)
    app.close()
    if not idle:
        print(json.dumps(latencies), flush=True)


def _usage() -> dict[str, float]:
    # Not the largest that it ever was: a new process counts what its parent had used as its own.
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"at": time.monotonic(), "cpu": time.process_time(), "megabytes": pages * resource.getpagesize() / 1e6}


if __name__ == "__main__":
    main(*sys.argv[1:])
