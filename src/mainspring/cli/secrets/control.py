"""`mainspring secrets set` and `remove`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import say, say_json, warn
from mainspring.errors import InvalidValue
from mainspring.model.redact import SHORTEST
from mainspring.model.secret import check_secret_name, check_secret_value
from mainspring.model.team import DEFAULT_TEAM

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name by which jobs call it, as in secret://NAME.")]


def set_secret(name: Name, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Keep a secret, or another value for it. The value is asked for, or read from the standard input."""
    check_secret_name(name)
    value = _value(name)
    check_secret_value(value)
    with app_at(url, team=team) as app:
        note(app, "secret.set", [name])
        app.secrets.set(name, value)
    if as_json:
        say_json({"set": name})
    else:
        say(f"secret://{name} is set; jobs get it within seconds")
    if len(value) < SHORTEST:
        warn(f"its value has fewer than {SHORTEST} characters, too few to be told from other text in logs")


def remove(name: Name, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Forget a secret. Jobs that name it fail until it is set again."""
    with app_at(url, team=team) as app:
        if any((one.team, one.name) == (team or DEFAULT_TEAM, name) for one in app.secrets.list()):
            note(app, "secret.remove", [name])
        app.secrets.remove(name)  # which says so if there is no such secret
    if as_json:
        say_json({"removed": name})
    else:
        say(f"secret://{name} is removed")


def _value(name: str) -> str:
    """Return the value, which is no argument: those stand in the shell's history, and every user can list them."""
    if sys.stdin.isatty():
        return str(typer.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True))
    try:
        text = sys.stdin.read()
        text.encode()  # bytes that are no text are lone surrogates in some locales, and refused at once in others
    except UnicodeError:
        raise InvalidValue(
            "expected the value of a secret to be UTF-8 text, got bytes that are none; encode it"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")
