"""How a workflow looks to people."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from mainspring.cli.jobs.look import COLOURS
from mainspring.cli.output import ascii_only, cell
from mainspring.documents.told import ToldJob
from mainspring.model.job import JobState
from mainspring.model.picture import MARKS, TIMES, Line

_LETTERS = {"✓": "+", "✗": "x", "▶": ">", "·": ".", "⏸": "=", "⊘": "/", "↻": "~", "…": " "}
"""The marks, where the terminal has no such signs."""


def standing_of(job: ToldJob) -> Text:
    """Return how a workflow stands: while its jobs are at work, so is it."""
    return Text(job.standing, COLOURS[job.state if job.standing == job.state else JobState.RUNNING])


def line_of(line: Line) -> Table:
    """Return a line of a picture, which goes on below itself where it is too long."""
    plain = ascii_only()
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    mark = _LETTERS.get(line.mark, line.mark) if plain else line.mark
    style = COLOURS[line.looks] if line.mark in MARKS.values() else "dim"
    text = line.text.replace(TIMES, "x") if plain else line.text
    table.add_row(Text.assemble("  " * line.depth, (mark, style)), cell(text, "dim" if style == "dim" else ""))
    return table
