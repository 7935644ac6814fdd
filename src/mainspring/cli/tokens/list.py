"""`mainspring tokens list`: who may do what, and who was here last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.times import ago, until
from mainspring.clock import SystemClock
from mainspring.documents.tokens import token_document
from mainspring.model.token import Token


def list_tokens(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the tokens, oldest first, also those that let nobody in any more."""
    with app_at(url) as app:
        found = app.tokens.list()
    if as_json:
        say_json({"tokens": [token_document(one) for one in found]})
    elif found:
        _show(found)
    else:
        say(f"No token lets anybody into {without_passwords(url)}; make one with `mainspring tokens create`.")


def granted(token: Token) -> str:
    """Return in words what the token grants."""
    return ", ".join(f"{team}: {role}" for team, role in token.grants.items())


def _show(tokens: Sequence[Token]) -> None:
    now = SystemClock().now()
    table = listing()
    table.add_column("Id", no_wrap=True)
    for title in ("Name", "Grants"):
        table.add_column(title, overflow="fold")
    for title in ("Used", "Expires"):
        table.add_column(title, no_wrap=True)
    for one in tokens:
        used = "never" if one.last_used_at is None else ago(one.last_used_at, now)
        table.add_row(cell(one.id), cell(one.name), cell(granted(one)), cell(used), _end(one, now))
    show(table)


def _end(token: Token, now: datetime) -> Text:
    if token.revoked_at is not None:
        return cell("revoked", "red")
    if token.expires_at is None:
        return cell("never")
    return cell(until(token.expires_at, now)) if token.expires_at > now else cell("expired", "red")
