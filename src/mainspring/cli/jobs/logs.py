"""`mainspring jobs logs`: what a job's attempts have said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated
from uuid import UUID

import typer
from rich.table import Table

from mainspring.app import DEFAULT_URL
from mainspring.cli.database import client_at
from mainspring.cli.ids import find
from mainspring.cli.options import AsJson, JobId, Team, Url
from mainspring.cli.output import cell, say, say_json, say_json_line
from mainspring.cli.times import local
from mainspring.clock import SystemClock
from mainspring.documents.jobs import line_document
from mainspring.model.journal import LEVELS, LogEntry, LogFilter
from mainspring.store import Store
from mainspring.store.journal import all_logs

_COLOURS = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "bold red"}
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
    with client_at(url, team) as client:
        store = client.store
        job = find(client, job_id)
        if follow:
            for line in following(store, job.id, match, SystemClock().sleep):
                say_json_line(line_document(line)) if as_json else _say(line)
            return
        lines = all_logs(store, job.id, match)
    if as_json:
        say_json({"id": str(job.id), "lines": [line_document(line) for line in lines]})
        return
    if not lines:
        say(f"Job {job.id} has logged nothing{' like that' if contains or level else ''}.")
    for line in lines:
        _say(line)


def following(store: Store, job_id: UUID, match: LogFilter, sleep: Callable[[float], None]) -> Iterator[LogEntry]:
    """Yield the lines of a job until it has ended, each soon after it was said."""
    after, pause = (0, 0), _FIRST_PAUSE
    while True:
        # Looked at first: what an attempt says is written before its end is.
        job = store.get([job_id]).get(job_id)
        said = False
        while page := store.logs(job_id, after=after, match=match):
            yield from page
            after, said = (page[-1].fence, page[-1].number), True
        if job is None or job.state.final:
            return
        pause = _FIRST_PAUSE if said else min(_LONGEST_PAUSE, pause * 1.5)
        sleep(pause)


def _say(line: LogEntry) -> None:
    # What follows in a message of several lines is moved in, so that it can't pass for a line by another.
    message = _message(line).replace("\n", "\n    ")
    say(f"{local(line.at)}  {line.level:7}  {message}", _COLOURS.get(line.level, ""))


def _message(line: LogEntry) -> str:
    return f"{line.logger}: {line.message}" if line.logger else line.message


def log_table(lines: list[LogEntry]) -> Table:
    """Return *lines* as a table."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row(cell(local(line.at), "dim"), cell(line.level, _COLOURS.get(line.level, "")), cell(_message(line)))
    return table
