"""`mainspring prune`: remove finished jobs that are kept no longer, or say which these are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import database_at
from mainspring.cli.note import note
from mainspring.cli.options import DEFAULT_RETENTION, AsJson, DatabaseUrl, Retention
from mainspring.cli.output import cell, counting, listing, say, say_json, show
from mainspring.cli.times import ago, local
from mainspring.cli.values import length
from mainspring.clock import SystemClock
from mainspring.documents.retention import covers_document
from mainspring.model.duration import spelled
from mainspring.model.retention import Covers, Prunable
from mainspring.model.text import counted

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would go, by rule, and change nothing.")]


def prune(
    dry_run: DryRun = False,
    kept_for: Retention = DEFAULT_RETENTION,
    url: DatabaseUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove finished jobs that are kept no longer, as every worker does about once an hour.

    What no rule covers is kept for as long as --retention says, which should be what workers are told.
    """
    default = length(kept_for, "--retention")
    with database_at(url) as app:
        found = app.retention.prunable(default)
        total = sum(one.jobs for one in found)
        gone = None
        if not dry_run:
            note(app, "retention.prune", [None], jobs=total)
            with counting("Prune jobs", total, quiet=as_json) as bar:
                gone = app.retention.prune(default, tell=bar)
    if as_json:
        say_json({"dry_run": dry_run, "pruned": gone, "rules": [_document(one) for one in found]})
        return
    if total:
        _show(found, SystemClock().now())
    if gone is None:
        say(f"{counted(total, 'job')} would go.")
    else:
        say(f"{counted(gone, 'job')} pruned.")


def _document(one: Prunable) -> dict[str, object]:
    return {
        **covers_document(one.covers),
        "age_seconds": one.age.total_seconds(),
        "count": one.count,
        "jobs": one.jobs,
        "oldest": None if one.oldest is None else one.oldest.isoformat(),
    }


def _show(found: Sequence[Prunable], now: datetime) -> None:
    table = listing()
    table.add_column("Rule", overflow="fold")
    table.add_column("Kept", no_wrap=True)
    table.add_column("Jobs", no_wrap=True, justify="right")
    table.add_column("Oldest", overflow="fold")
    for one in found:
        rule = "everything" if len(found) == 1 and one.covers == Covers() else str(one.covers)
        kept = spelled(one.age) + (f", {one.count:,} at most" if one.count is not None else "")
        oldest = f"{local(one.oldest)} ({ago(one.oldest, now)})" if one.oldest else ""
        table.add_row(cell(rule), cell(kept), cell(f"{one.jobs:,}"), cell(oldest))
    show(table)
