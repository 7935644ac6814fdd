"""`mainspring secrets list`: which there are, and who has set them when."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.times import local
from mainspring.documents.secrets import secret_document
from mainspring.model.secret import Secret


def list_secrets(team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the names of secrets, with the key that each is sealed with."""
    with app_at(url, team=team) as app:
        found = app.secrets.list()
    if as_json:
        say_json({"secrets": [secret_document(one) for one in found]})
    elif found:
        _show(found)
    else:
        say(f"There are no secrets in {without_passwords(url)}.")


def _show(secrets: Sequence[Secret]) -> None:
    table = listing("Team", "Secret", "Set", "By", "Key")
    for one in secrets:
        table.add_row(*map(cell, (one.team, one.name, local(one.changed_at), one.changed_by, one.key_id)))
    show(table)
