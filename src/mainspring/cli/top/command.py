"""`mainspring top`: what happens now, live on a terminal, or once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import say_json, show, width, without_passwords
from mainspring.cli.top.draw import plain
from mainspring.cli.top.live import Top
from mainspring.cli.top.snapshot import Snapshot, Watch
from mainspring.cli.values import length
from mainspring.clock import SystemClock
from mainspring.documents.queues import queue_document
from mainspring.documents.told import ToldJob
from mainspring.documents.values import instant
from mainspring.documents.workers import worker_document
from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

_SHORTEST = 0.1

Every = Annotated[str, typer.Option("--every", metavar="LENGTH", help="How often to look.")]
Once = Annotated[bool, typer.Option("--once", help="Print what is to be seen now, and end.")]


def top(
    every: Every = "1s", once: Once = False, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Watch queues, workers, running jobs and failures on the whole screen, and act on them; ? lists the keys.

    Where the output is no terminal, or with --once or --json, it shows how it is now, and ends.
    """
    seconds, clock, console = length(every, "--every").total_seconds(), SystemClock(), Console(highlight=False)
    if seconds < _SHORTEST:
        raise InvalidValue(f"expected --every to be 0.1s or longer, got: {shortened(every)}")
    with app_at(url, team=team) as app:
        watch = Watch(app, clock, of_fleet=app.of_fleet())
        if once or as_json or not _is_screen(console):
            _tell(watch.look(), as_json)
        else:
            about = without_passwords(url) + (f", team {team}" if team else "")
            Top(app, watch, clock, seconds, about).run(console, sys.stdin.fileno())


def _is_screen(console: Console) -> bool:
    """Return whether there is a terminal to draw on, and to press keys at."""
    return console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty()


def _tell(snapshot: Snapshot, as_json: bool) -> None:
    if as_json:
        say_json(_document(snapshot))
        return
    for line in plain(snapshot, width()):
        show(line)


def _document(snapshot: Snapshot) -> dict[str, object]:
    return {
        "at": instant(snapshot.at),
        "queues": [queue_document(queue) for queue in snapshot.queues],
        "workers": [worker_document(worker) for worker in snapshot.workers],
        "running": [_job_document(job) for job in snapshot.running],
        "failures": [_job_document(job) for job in snapshot.failures],
    }


def _job_document(job: ToldJob) -> dict[str, object]:
    """Return a job without its arguments and its result: who looks every second wants none of them."""
    return {
        "id": str(job.id),
        "task": job.task,
        "queue": job.queue,
        "state": job.state,
        "attempt": job.attempt,
        "started_at": instant(job.started_at),
        "finished_at": instant(job.finished_at),
        "progress": None if job.progress is None else {"done": job.progress.done, "total": job.progress.total},
        "error": None if job.error is None else {"type": job.error.type, "message": job.error.message},
    }
