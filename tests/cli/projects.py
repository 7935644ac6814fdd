"""Small projects, as users write them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from textwrap import dedent

from mainspring.model.job import Job
from mainspring.model.session import Session
from mainspring.store import open_store

TASKS = """
    import os, time
    from mainspring import Context, Mainspring, Retry

    app = Mainspring()

    @app.task
    def greet(name: str, loud: bool = False) -> str:
        return f"Hello, {name}{'!' if loud else ''}"

    @app.task(queue="mail", retry=Retry(max_attempts=1))
    def fail(number: int) -> None:
        raise ValueError(f"number {number}")

    @app.task
    def linger(ctx: Context, seconds: float) -> str:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ctx.check()
            time.sleep(0.01)
        return "lingered"

    @app.task
    def who() -> int:
        return os.getpid()
"""

UNSETTLED = """
    from mainspring import Mainspring
    from mainspring.worker.worker import Worker

    app = Mainspring()

    @app.task
    def greet() -> None: ...

    stop = Worker.stop
    Worker.stop = lambda worker, grace: stop(worker, grace) and False
"""
"""An app whose workers do not get rid of what became of their jobs."""


def write(file: Path, text: str = TASKS) -> Path:
    """Write a module."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text))
    return file


def jobs_at(url: str) -> list[Job]:
    """Return all jobs in the database at *url*, oldest first."""
    with closing(open_store(url)) as store:
        return store.page(limit=1_000)[::-1]


def sessions_at(url: str) -> list[Session]:
    with closing(open_store(url)) as store:
        return store.sessions()
