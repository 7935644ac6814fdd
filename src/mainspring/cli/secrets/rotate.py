"""`mainspring secrets new-key` and `rotate`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import database_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, DatabaseUrl, Team
from mainspring.cli.output import say, say_json
from mainspring.keys import new_key
from mainspring.model.text import counted


def print_new_key() -> None:
    """Print a new encryption key, for MAINSPRING_KEYS or a key file. It is not kept anywhere."""
    say(new_key())


def rotate(team: Team = None, url: DatabaseUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Seal all secrets anew that are not sealed with the first key, so that the others can be given up."""
    with database_at(url, team) as app:
        note(app, "secret.rotate", [None])
        done = app.secrets.rotate()
    if as_json:
        say_json({"rotated": done})
    else:
        say(f"{counted(done, 'secret')} sealed anew")
