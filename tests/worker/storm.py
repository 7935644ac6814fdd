"""A worker in a process of its own, which tests kill, stop and restart. What its handlers do is in a ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainspring import Context, Mainspring, Retry
from mainspring.errors import LeaseLost

app = Mainspring(os.environ.get("MAINSPRING_URL"))
ROOT = Path(__file__).parents[2]


def note(*words: object) -> None:
    """Append a line to the ledger, in one write, so that lines of many processes do not mix."""
    ledger = os.open(os.environ["LEDGER"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(ledger, (" ".join(map(str, words)) + "\n").encode())
    os.close(ledger)


def wait_for(name: str) -> None:
    while not Path(os.environ["LEDGER"]).with_name(name).exists():
        time.sleep(0.005)


@app.task(retry=Retry(max_attempts=1))
def work(ctx: Context, n: int, seconds: float) -> int:
    note("start", n, ctx.fence)
    time.sleep(seconds)
    note("end", n, ctx.fence)
    return n


@app.task(retry=Retry(max_attempts=1))
def effect(ctx: Context, n: int) -> None:
    note("start", n, ctx.fence)
    wait_for("go")
    try:
        with ctx.transaction() as db:
            db.execute(f"INSERT INTO effects VALUES ({n})")
    except LeaseLost:
        note("lost", n, ctx.fence)
        raise
    note("end", n, ctx.fence)


@app.task(retry=Retry(max_attempts=1))
def unaware(ctx: Context, n: int) -> int:
    note("start", n, ctx.fence)
    wait_for("go")
    note("end", n, ctx.fence)
    return ctx.fence


class Process:
    """One worker process."""

    def __init__(self, url: str, ledger: Path, lease: str = "1s") -> None:
        environment = os.environ | {"MAINSPRING_URL": url, "LEDGER": str(ledger)}
        options = ["--app=tests.worker.storm:app", f"--lease={lease}", "--concurrency=8", "--log-level=warning"]
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-W", "ignore", "-m", "mainspring", "worker", *options],
            env=environment,
            cwd=ROOT,
        )

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait until it has ended, and return its exit code; one that does not end shows where its threads are."""
        try:
            return self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)
            return self._process.wait()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@contextmanager
def running(url: str, ledger: Path, lease: str = "1s") -> Iterator[Process]:
    process = Process(url, ledger, lease)
    try:
        yield process
    finally:
        process.kill()


def lines(ledger: Path, word: str) -> list[tuple[int, int]]:
    """Return what the ledger says under *word*: each job's number and fence."""
    if not ledger.exists():
        return []
    parts = [line.split() for line in ledger.read_text().splitlines()]
    return [(int(n), int(fence)) for found, n, fence in parts if found == word]
