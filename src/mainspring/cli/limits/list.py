"""`mainspring limits`: what they allow, what has a slot of them, and what waits."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.cli.apps import app_at
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.times import span
from mainspring.documents.limits import limit_document
from mainspring.model.limits import LimitStatus


def list_limits(url: str, as_json: bool) -> None:
    """List the limits of the database at *url*."""
    with app_at(url) as app:
        found = app.limits.list()
    if as_json:
        say_json({"limits": [limit_document(one) for one in found]})
    elif found:
        _show(found)
    else:
        say(f"No job in {without_passwords(url)} has come to a limit lately.")


def _show(limits: Sequence[LimitStatus]) -> None:
    table = listing()
    table.add_column("Limit", overflow="fold")
    table.add_column("Allows", no_wrap=True)
    table.add_column("Held", no_wrap=True, justify="right")
    table.add_column("Waiting", no_wrap=True, justify="right")
    for one in limits:
        table.add_row(cell(one.key), cell(_allows(one)), cell(one.held), cell(one.waiting))
    show(table)


def _allows(limit: LimitStatus) -> str:
    if limit.interval is None:
        return f"{limit.concurrency} at once"
    return f"1 every {span(limit.interval)}, {limit.burst} together"
