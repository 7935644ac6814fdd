"""A small app that is seen at work, on a SQLite file and with nothing to set up.

    python examples/quickstart.py                     enqueues some work every second, does it, and tells of it
    mainspring worker --app examples/quickstart.py    only does the work
    mainspring jobs list                              looks at it from another terminal

Ctrl-C ends it within a moment. What has not been done by then is kept, and done when it is started again. It uses the
database that MAINSPRING_URL names, or else the file mainspring.db. QUICKSTART_SECONDS=10 has it end by itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from itertools import count
from typing import Any

from mainspring import Context, JobState, Mainspring, MainspringError, Retry
from mainspring.job_handle import JobHandle
from mainspring.model.job import Job

app = Mainspring()


@app.task
def greet(name: str) -> str:
    """A plain function runs on a thread."""
    return f"Hello, {name}!"


@app.task
async def look_up(city: str) -> str:
    """A coroutine function runs on a loop, a thousand at a time."""
    await asyncio.sleep(0.3)
    return f"{city} is sunny"


@app.task(retry=Retry(max_attempts=3, base="0.5s", on=(ConnectionError,)))
def deliver(ctx: Context, parcel: int) -> str:
    """What raises is tried again, later and later; `ctx` is handed in because it is annotated."""
    if ctx.attempt == 1:
        raise ConnectionError("nobody opens the door")
    return f"parcel {parcel} delivered at attempt {ctx.attempt}"


@app.task(queue="long")
def paint(ctx: Context, boards: int) -> str:
    """Work that says how far it is can be watched, and can be stopped in between."""
    for board in range(boards):
        time.sleep(0.4)
        ctx.progress(board + 1, boards)
    return f"{boards} boards painted"


class Teller:
    """Prints what becomes of jobs."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._told: dict[JobHandle[Any], str] = {}
        self.finished = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def waits(self) -> bool:
        """Whether some of its jobs have not finished."""
        return bool(self._told)

    def follow(self, *jobs: JobHandle[Any]) -> None:
        """Tell of *jobs* from now on."""
        self._told.update(dict.fromkeys(jobs, ""))

    def tell(self) -> None:
        """Print what is new."""
        for handle, told in list(self._told.items()):
            job = handle.refresh()
            news = _news(job)
            if news and news != told:
                print(f"{self.seconds:6.1f} s  {job.task:8} {job.state:10} {news}", flush=True)
                self._told[handle] = news
            if job.state.final:
                del self._told[handle]
                self.finished += 1


def _news(job: Job) -> str:
    if job.state is JobState.RUNNING and job.reached and job.reached.total:
        return f"{job.reached.done / job.reached.total:.0%}"
    if job.state in (JobState.RETRYING, JobState.FAILED) and job.failure:
        return f"attempt {job.attempt} failed: {job.failure.message}"
    return job.result or "" if job.state.final else ""


def enqueue_some(second: int) -> list[JobHandle[Any]]:
    """Enqueue the work of one second."""
    jobs: list[JobHandle[Any]] = [
        greet.enqueue(["Ada", "Grace", "Alan", "Barbara"][second % 4]),
        look_up.enqueue(["Lisbon", "Nairobi", "Kyoto"][second % 3]),
    ]
    if second % 2 == 0:
        jobs.append(deliver.enqueue(second))
    if second % 5 == 0:
        jobs.append(paint.using(key="the fence").enqueue(boards=6))  # one at a time
    return jobs


def main() -> None:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    until = float(os.environ.get("QUICKSTART_SECONDS", "inf"))
    print("Some work every second; Ctrl-C ends it. Look at it with `mainspring jobs list` as well.", flush=True)
    teller, seconds = Teller(), count()
    due = next(seconds)
    with app.worker(concurrency=4, grace="0.5s"):
        while not stopped.wait(0.1) and (teller.seconds < until or teller.waits):
            if due <= teller.seconds < until:
                teller.follow(*enqueue_some(due))
                due = next(seconds)
            teller.tell()
    teller.tell()
    app.close()
    print(f"{teller.finished} jobs have finished." + (" The rest is kept for the next time." if teller.waits else ""))


if __name__ == "__main__":
    try:
        main()
    except MainspringError as error:
        sys.exit(f"error: {error}")
