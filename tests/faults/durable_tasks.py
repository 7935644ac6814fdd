"""A durable job of four steps, whose worker dies once at the point that the job names."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mainspring import Context, Mainspring, Retry

app = Mainspring(os.environ["STORM_URL"])
FOLDER = Path(os.environ["STORM_FOLDER"])

POINTS = [
    *("in charge", "after charge"),
    *("in book", "behind book", "after book", "asleep"),
    *("in ship", "after ship"),
    *("in file", "behind file", "after file"),
]
"""Where a worker may die: in a step, behind the transaction block that ends it, and when it is recorded."""


@app.task(retry=Retry(max_attempts=1))
def order(ctx: Context, point: str) -> list[object]:
    def reach(here: str) -> None:
        if here == point and not _been_here(here):
            os.kill(os.getpid(), signal.SIGKILL)

    def outside(name: str) -> str:
        note(f"{point}: {name}")
        reach(f"in {name}")
        return name

    def inside(name: str) -> str:
        with ctx.transaction(result=f"{name} written") as db:
            db.execute(f"INSERT INTO effects VALUES ('{point}: {name}')")
            reach(f"in {name}")
        reach(f"behind {name}")
        return "not this"

    found: list[object] = []
    for name in ("charge", "book", "ship", "file"):
        found.append(ctx.step(name, outside if name in ("charge", "ship") else inside, name))
        reach(f"after {name}")
        if name == "book":
            ctx.sleep("50ms")
            reach("asleep")
    return found


def note(effect: str) -> None:
    """Add a line to the ledger, which outlives whoever wrote it."""
    ledger = os.open(FOLDER / "ledger", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(ledger, f"{effect}\n".encode())
    os.close(ledger)


def _been_here(point: str) -> bool:
    mark = FOLDER / point.replace(" ", "-")
    found = mark.exists()
    mark.touch()
    return found
