"""`mainspring dead groups`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Queue, TaskName, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.times import ago
from mainspring.clock import SystemClock
from mainspring.documents.dead import group_document
from mainspring.model.dead import Group

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="How many groups to list.")]

_SHORTEST = 8
_MESSAGE = 200


def groups(
    queue: Queue = None,
    task: TaskName = None,
    limit: Limit = 50,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List dead letters by their cause, the one seen last first."""
    with app_at(url, team=team) as app:
        found = app.dead.groups(queue=queue, task=task, limit=limit)
    if as_json:
        say_json({"groups": [group_document(group) for group in found]})
    elif found:
        _show(found)
    else:
        say("No dead letters." if queue is None and task is None else "No dead letter is like that.")


def _show(found: Sequence[Group]) -> None:
    now, digits = SystemClock().now(), _digits([group.fingerprint for group in found])
    table = listing()
    table.add_column("Group", no_wrap=True)
    table.add_column("Jobs", no_wrap=True, justify="right")
    table.add_column("Task", overflow="fold")
    table.add_column("Error", overflow="fold")
    table.add_column("First", no_wrap=True)
    table.add_column("Last", no_wrap=True)
    for group in found:
        error = error_in_short(group.type, group.message)
        table.add_row(
            cell(group.fingerprint[:digits]),
            cell(f"{group.count:,}"),
            cell(group.task),
            cell(error),
            cell(ago(group.first_seen, now)),
            cell(ago(group.last_seen, now)),
        )
    show(table)


def error_in_short(kind: str, message: str) -> str:
    """Return an error in one line: the last part of its type, and the beginning of what it says."""
    text = " ".join(f"{kind.rpartition('.')[2]}: {message}".split())
    return text if len(text) <= _MESSAGE else f"{text[: _MESSAGE - 1]}…"


def _digits(fingerprints: Sequence[str]) -> int:
    """Return how much of fingerprints it takes to tell these apart."""
    longest = max(map(len, fingerprints))
    lengths = range(_SHORTEST, longest)
    return next((n for n in lengths if len({mark[:n] for mark in fingerprints}) == len(fingerprints)), longest)
