"""`mainspring jobs logs`: what a job's attempts have said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.table import Table

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import Handle, find
from mainspring.cli.options import AsJson, JobId, Team, Url
from mainspring.cli.output import aside, cell, say, say_json, say_json_line
from mainspring.cli.times import local
from mainspring.clock import SystemClock
from mainspring.documents.jobs import line_document
from mainspring.errors import JobNotFound
from mainspring.model.job import JobState
from mainspring.model.journal import LEVELS, LogEntry, LogFilter

COLOURS = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "bold red"}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")]
Level = Annotated[
    str | None,
    typer.Option(
        "--level", metavar="LEVEL", help="Only this level and more serious ones.", autocompletion=lambda: list(LEVELS)
    ),
]
Contains = Annotated[
    str | None, typer.Option("--contains", metavar="TEXT", help="Only what contains this, letter by letter.")
]


def logs(  # noqa: PLR0913 - one parameter for each option
    job_id: JobId,
    follow: Follow = False,
    level: Level = None,
    contains: Contains = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Print what a job has logged, oldest first, and with --follow what it logs from now on.

    With both --follow and --json, each line of the output is one JSON object.
    """
    match = LogFilter(contains=contains, level=level.lower() if level else None)
    with app_at(url, team=team) as app:
        job = find(app, job_id)
        if follow:
            state = job.state
            if not state.final and state is not JobState.RUNNING:
                aside(f"It is {state}: what it will say comes here, until it has ended or you press Ctrl-C.")
            for line in following(job, match, SystemClock().sleep):
                say_json_line(line_document(line)) if as_json else _say(line)
            aside(_end_of(job))
            return
        lines = job.logs(contains=match.contains, level=match.level)
    if as_json:
        say_json({"id": str(job.id), "lines": [line_document(line) for line in lines]})
        return
    if not lines:
        say(f"Job {job.id} has logged nothing{' like that' if contains or level else ''}.")
    for line in lines:
        _say(line)


def following(job: Handle, match: LogFilter, sleep: Callable[[float], None]) -> Iterator[LogEntry]:
    """Yield the lines of a job until it has ended, each soon after it was said."""
    after, pause = (0, 0), _FIRST_PAUSE
    while True:
        # Looked at first: what an attempt says is written before its end is.
        ended = _has_ended(job)
        said = False
        while page := job.log_page(after, contains=match.contains, level=match.level):
            yield from page
            after, said = (page[-1].fence, page[-1].number), True
        if ended:
            return
        pause = _FIRST_PAUSE if said else min(_LONGEST_PAUSE, pause * 1.5)
        sleep(pause)


def _end_of(job: Handle) -> str:
    try:
        return f"It has finished: {job.state}."
    except JobNotFound:
        return "It is not there any more: finished jobs are pruned after a while."


def _has_ended(job: Handle) -> bool:
    try:
        return job.state.final
    except JobNotFound:
        return True


def _say(line: LogEntry) -> None:
    # What follows in a message of several lines is moved in, so that it can't pass for a line by another.
    message = message_of(line).replace("\n", "\n    ")
    say(f"{local(line.at)}  {line.level:7}  {message}", COLOURS.get(line.level, ""))


def message_of(line: LogEntry) -> str:
    """Return what was said, after whose record it was if it was one of Python's logging."""
    return f"{line.logger}: {line.message}" if line.logger else line.message


def log_table(lines: list[LogEntry]) -> Table:
    """Return *lines* as a table."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row(
            cell(local(line.at), "dim"), cell(line.level, COLOURS.get(line.level, "")), cell(message_of(line))
        )
    return table
