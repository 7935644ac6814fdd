"""`mainspring doctor`: say whether the database is fit for work, and what it really gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import typer
from rich.table import Table

from mainspring.app import DEFAULT_URL
from mainspring.cli.diagnosis import SAMPLES, Diagnosis, diagnose
from mainspring.cli.options import AsJson, DatabaseUrl
from mainspring.cli.output import cell, mark, say, say_json, show

_KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def doctor(url: DatabaseUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Check the database: its schema, what a commit survives, how long it takes, and its clock.

    It makes and migrates nothing.

    Exit code: 0 all is well, 1 something is wrong, 2 the database can't be opened.
    """
    diagnosis = diagnose(url)
    if as_json:
        say_json(_as_document(diagnosis))
    else:
        _show(diagnosis)
    raise typer.Exit(1 if diagnosis.problems else 0)


def _show(diagnosis: Diagnosis) -> None:
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(no_wrap=True)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for good, name, value in _facts(diagnosis):
        facts.add_row(mark(good), cell(name, "bold"), cell(value))
    show(facts)
    notes = Table(box=None, show_header=False, pad_edge=False)
    notes.add_column(no_wrap=True)
    notes.add_column(overflow="fold")
    for remark in diagnosis.remarks:
        notes.add_row(cell("!", "yellow"), cell(remark))
    for problem in diagnosis.problems:
        notes.add_row(mark(False), cell(problem))
    if notes.row_count:
        say("")
        show(notes)
    say("")
    say(_verdict(len(diagnosis.problems)))


def _facts(diagnosis: Diagnosis) -> Iterator[tuple[bool, str, str]]:
    """Yield the rows of the table: whether it is fine, what it is about, and what was found."""
    yield True, "Database", f"{_KINDS[diagnosis.kind]} {diagnosis.version or ''}".rstrip()
    # What could not even be tried out is a matter of the place, not of durability.
    yield not (diagnosis.write_problems and diagnosis.durability is None), "Location", diagnosis.location
    if diagnosis.schema_version is not None:
        yield not diagnosis.schema_problem, "Schema", _schema(diagnosis)
    if diagnosis.durability is not None:
        yield not diagnosis.write_problems, "Durability", diagnosis.durability
    if diagnosis.commit is not None:
        yield True, "Commit", f"{_milliseconds(diagnosis.commit):,.2f} ms (median of {SAMPLES})"
    if diagnosis.clock_difference is not None:
        yield True, "Clock", _clock(diagnosis.clock_difference)


def _schema(diagnosis: Diagnosis) -> str:
    found, needed = diagnosis.schema_version, diagnosis.schema_needed
    if found == 0:
        return "none yet"
    return f"version {found}, up to date" if found == needed else f"version {found}, but {needed} is needed"


def _clock(difference: timedelta) -> str:
    if abs(difference) < timedelta(milliseconds=1):
        return "the same as this machine's, to the millisecond"
    side = "ahead of" if difference > timedelta(0) else "behind"
    return f"{abs(_milliseconds(difference)):,.0f} ms {side} this machine's"


def _verdict(problems: int) -> str:
    if not problems:
        return "All is well."
    return "Found 1 problem." if problems == 1 else f"Found {problems} problems."


def _milliseconds(length: timedelta) -> float:
    return length / timedelta(milliseconds=1)


def _as_document(diagnosis: Diagnosis) -> dict[str, object]:
    commit, difference = diagnosis.commit, diagnosis.clock_difference
    return {
        "ok": not diagnosis.problems,
        "database": {"kind": diagnosis.kind, "version": diagnosis.version, "location": diagnosis.location},
        "schema": {"version": diagnosis.schema_version, "needed": diagnosis.schema_needed},
        "durability": diagnosis.durability,
        "commit_ms": None if commit is None else round(_milliseconds(commit), 3),
        "clock_difference_ms": None if difference is None else round(_milliseconds(difference), 3),
        "remarks": list(diagnosis.remarks),
        "problems": list(diagnosis.problems),
    }
