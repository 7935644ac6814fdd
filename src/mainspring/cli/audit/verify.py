"""`mainspring audit verify`: whether the log is as it was written."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import database_at
from mainspring.cli.options import AsJson, DatabaseUrl
from mainspring.cli.output import complain, say, say_json

_BROKEN = 1


def verify(url: DatabaseUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Look at the whole log. The exit code is 1 if an entry was changed, removed or put in between."""
    with database_at(url) as app:
        verdict = app.audit.verify()
    if as_json:
        say_json({"whole": verdict.whole, "entries": verdict.entries, "broken": verdict.broken, "why": verdict.why})
    elif verdict.whole:
        say(f"The log is as it was written: {verdict.entries:,} {'entry' if verdict.entries == 1 else 'entries'}.")
    if not verdict.whole:
        complain(f"the audit log is broken at entry {verdict.broken:,}: {verdict.why}")
        raise typer.Exit(_BROKEN)
