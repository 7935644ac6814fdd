"""`mainspring breakers`: which are open, why, until when, and what waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from mainspring.cli.apps import app_at
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.times import since, span
from mainspring.clock import SystemClock
from mainspring.documents.limits import breaker_document
from mainspring.model.breaker import BreakerStatus, Phase

_STYLES = {Phase.CLOSED: "green", Phase.OPEN: "bold red", Phase.HALF_OPEN: "yellow"}


def list_breakers(url: str, as_json: bool) -> None:
    """List the breakers of the database at *url*."""
    with app_at(url) as app:
        found = app.breakers.list()
    if as_json:
        say_json({"breakers": [breaker_document(one) for one in found]})
    elif found:
        _show(found, SystemClock().now())
    else:
        say(f"No breaker in {without_passwords(url)} has been tripped, or has seen anything fail lately.")


def why(breaker: BreakerStatus) -> str:
    """Return what has failed of how much lately, or who tripped it and why."""
    if breaker.by is not None:
        return f"tripped by {breaker.by}{f': {breaker.reason}' if breaker.reason else ''}"
    return f"{breaker.failures} of the last {breaker.attempts} attempts failed" if breaker.attempts else ""


def _show(breakers: Sequence[BreakerStatus], now: datetime) -> None:
    table = listing()
    table.add_column("Breaker", overflow="fold")
    table.add_column("State", no_wrap=True)
    table.add_column("When", no_wrap=True)
    table.add_column("Waiting", no_wrap=True, justify="right")
    table.add_column("Probes", no_wrap=True, justify="right")
    table.add_column("Why", overflow="fold")
    for one in breakers:
        state = cell(one.phase, _STYLES[one.phase])
        table.add_row(cell(one.key), state, _when(one, now), cell(one.waiting), cell(one.probes), cell(why(one)))
    show(table)


def _when(breaker: BreakerStatus, now: datetime) -> Text:
    if breaker.until is not None:
        return cell(f"for {span(breaker.until - now)}")
    return cell("" if breaker.since is None else since(breaker.since, now))
