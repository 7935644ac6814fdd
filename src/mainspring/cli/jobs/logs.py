"""`mainspring jobs logs`: what a job's attempts have said."""

from __future__ import annotations

from rich.table import Table

from mainspring.app import DEFAULT_URL
from mainspring.cli.database import existing
from mainspring.cli.ids import find
from mainspring.cli.jobs.document import line_document
from mainspring.cli.options import AsJson, JobId, Url
from mainspring.cli.output import cell, say, say_json
from mainspring.cli.times import local
from mainspring.model.journal import LogEntry
from mainspring.store.journal import all_logs

_COLOURS = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "bold red"}


def logs(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Print all that a job has logged, oldest first."""
    with existing(url) as store:
        job = find(store, job_id)
        lines = all_logs(store, job.id)
    if as_json:
        say_json({"id": str(job.id), "lines": [line_document(line) for line in lines]})
        return
    if not lines:
        say(f"Job {job.id} has logged nothing.")
    for line in lines:
        say(f"{local(line.at)}  {line.level:7}  {line.message}", _COLOURS.get(line.level, ""))


def log_table(lines: list[LogEntry]) -> Table:
    """Return *lines* as a table."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row(cell(local(line.at), "dim"), cell(line.level, _COLOURS.get(line.level, "")), cell(line.message))
    return table
