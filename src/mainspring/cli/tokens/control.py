"""`mainspring tokens create` and `revoke`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import say, say_json
from mainspring.cli.tokens.list import granted
from mainspring.cli.values import length
from mainspring.documents.tokens import token_document
from mainspring.errors import InvalidValue
from mainspring.model.text import shortened
from mainspring.model.token import Role, grants_of

Name = Annotated[str, typer.Argument(metavar="NAME", help="What it is for, for whoever sees it in a list.")]
Grants = Annotated[
    list[str],
    typer.Option(
        "--grant",
        metavar="TEAM=ROLE",
        help=f"A role in a team, * for all teams; any number. Roles: {', '.join(Role)}.",
    ),
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="LENGTH", help="How long it lets in, as in 90d; always unless given.")
]
TokenIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of tokens.")]


def create(
    name: Name, grants: Grants, expires: Expires = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Make a token, and print it: this once, for it is stored nowhere."""
    wanted = grants_of(_read(grants))
    lasting = None if expires is None else length(expires, "--expires")
    with app_at(url, new=True) as app:
        note(app, "token.create", [name], grants=wanted, expires=expires)
        text, token = app.tokens.create(name, wanted, expires=lasting)
    if as_json:
        say_json({"token": text, **token_document(token)})
        return
    say(text)
    typer.echo(f"{token.id} ({granted(token)}): keep it well, it is not shown again.", err=True)


def revoke(ids: TokenIds, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let nobody in with tokens any more."""
    with app_at(url) as app:
        known = [app.tokens.get(one) for one in dict.fromkeys(ids)]  # all of them first, so that nothing is half done
        note(app, "token.revoke", [token.id for token in known])
        revoked = [app.tokens.revoke(token.id) for token in known]
    if as_json:
        say_json({"revoked": [token_document(token) for token in revoked]})
    else:
        for token in revoked:
            say(f"{token.id} ({token.name}) lets nobody in any more")


def _read(texts: Sequence[str]) -> dict[str, str]:
    grants: dict[str, str] = {}
    for text in texts:
        team, equals, role = text.partition("=")
        if not equals or team in grants:
            raise InvalidValue(f"expected --grant to be TEAM=ROLE, once for each team, got: {shortened(text)}")
        grants[team] = role
    return grants
