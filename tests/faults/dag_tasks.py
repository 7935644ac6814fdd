"""What the workers of a DAG storm run: jobs that write down when they begin and end, outside of any database."""

from __future__ import annotations

import os
import random
import sys
import time

from mainspring import Context, Mainspring, Retry

app = Mainspring(os.environ["STORM_URL"])
LEDGER = os.open(os.environ["STORM_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
LONGEST = float(os.environ["STORM_LONGEST"])


def note(what: str, run: int, node: int, ctx: Context, got: list[int | None]) -> None:
    """Write one line, which the system keeps whole and in order."""
    told = ",".join("-" if one is None else str(one) for one in got) or "."
    line = f"{what} {run} {node} {ctx.job_id} {ctx.fence} {told} {time.monotonic():.6f}\n"
    os.write(LEDGER, line.encode())


def work(ctx: Context, run: int, node: int, got: list[int | None], *, fails: bool) -> int:
    note("begin", run, node, ctx, got)
    time.sleep(random.uniform(0, LONGEST))
    if fails:
        note("fail", run, node, ctx, got)
        raise ArithmeticError
    note("end", run, node, ctx, got)
    return node


@app.task(retry=Retry(max_attempts=1))
def sound(ctx: Context, run: int, node: int, got: list[int | None]) -> int:
    return work(ctx, run, node, got, fails=False)


@app.task(retry=Retry(max_attempts=2, base="50ms"))
def shaky(ctx: Context, run: int, node: int, got: list[int | None]) -> int:
    return work(ctx, run, node, got, fails=ctx.attempt == 1)


@app.task(retry=Retry(max_attempts=1))
def doomed(ctx: Context, run: int, node: int, got: list[int | None]) -> int:
    return work(ctx, run, node, got, fails=True)


if __name__ == "__main__":
    app.run_worker(concurrency=4, lease=float(sys.argv[1]))
