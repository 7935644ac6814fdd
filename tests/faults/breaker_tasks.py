"""What the workers of a breaker storm run: calls of a downstream that is down while a file is there.

Each call writes down when it begins and ends, outside of any database.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mainspring import Breaker, Context, Mainspring, Retry

app = Mainspring(os.environ["STORM_URL"])
LEDGER = os.open(os.environ["STORM_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
DOWN = Path(os.environ["STORM_DOWN"])
BREAKER = Breaker("downstream", open_at="50% of 20 in 1m", cooldown=os.environ["STORM_COOLDOWN"])
CALL = 0.02
"""Seconds that a call takes."""


def note(what: str, ctx: Context) -> None:
    """Write one line, which the system keeps whole and in order."""
    os.write(LEDGER, f"{time.monotonic():.6f} {what} {ctx.job_id}:{ctx.fence}\n".encode())


@app.task(breaker=BREAKER, retry=Retry(max_attempts=8, base="500ms", cap="2s"))
def call(ctx: Context) -> None:
    note("begin", ctx)
    time.sleep(CALL)
    if DOWN.exists():
        note("fail", ctx)
        raise ConnectionError("the downstream is down")
    note("end", ctx)


if __name__ == "__main__":
    app.run_worker(concurrency=4, lease=float(sys.argv[1]))
