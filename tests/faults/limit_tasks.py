"""What the workers of a limit storm run: jobs that write down when they begin and end, outside of any database."""

from __future__ import annotations

import os
import sys
import time

from mainspring import Context, Limit, Mainspring

app = Mainspring(os.environ["STORM_URL"])
LEDGER = os.open(os.environ["STORM_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
CONCURRENCY = {"a": 3, "b": 1}


def note(what: str, key: str, ctx: Context) -> None:
    """Write one line, which the system keeps whole and in order."""
    os.write(LEDGER, f"{time.monotonic():.6f} {what} {key} {os.getpid()} {ctx.job_id}:{ctx.fence}\n".encode())


def hold(ctx: Context, key: str) -> None:
    note("begin", key, ctx)
    try:
        for _ in range(10):
            time.sleep(0.01)
            ctx.check()
    finally:
        note("end", key, ctx)


@app.task(limits=[Limit("a", concurrency=CONCURRENCY["a"])])
def first(ctx: Context) -> None:
    hold(ctx, "a")


@app.task(limits=[Limit("b", concurrency=CONCURRENCY["b"])])
def second(ctx: Context) -> None:
    hold(ctx, "b")


if __name__ == "__main__":
    app.run_worker(concurrency=4, lease=float(sys.argv[1]))
