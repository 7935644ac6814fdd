"""A secret: a text that a team keeps, and that its jobs name instead of holding it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.payload import Call
from mainspring.model.text import shortened, storable

SCHEME = "secret://"
"""What a text begins with that stands for a secret."""

LONGEST = 65_536
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")

Path = tuple[int | str, ...]
"""Where among the arguments of a job something is."""


class Secret(msgspec.Struct, frozen=True):
    """What may be known of a secret; its value is not."""

    team: str
    name: str
    key_id: str  # of the key with which it is sealed
    created_at: datetime
    changed_at: datetime
    changed_by: str


class SealedSecret(msgspec.Struct, frozen=True):
    """A secret as it is kept."""

    team: str
    name: str
    sealed: str

    @property
    def described(self) -> str:
        """What to call it in a message."""
        return f"secret {self.name!r} of team {self.team!r}"


def check_secret_name(name: str) -> None:
    """Refuse what a reference could not name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidValue(
            "expected the name of a secret to be 1 to 128 ASCII letters, digits or any of _.- "
            f"(beginning with a letter, digit or _), got: {shortened(name)}"
        )


def check_secret_value(value: str) -> None:
    """Refuse what is no text that a job could be given; it is not shown, whatever it is."""
    if not isinstance(value, str):
        raise InvalidValue(f"expected the value of a secret to be text, got a {type(value).__name__}")
    if not 1 <= len(value) <= LONGEST:
        raise InvalidValue(f"expected the value of a secret to be 1 to {LONGEST:,} characters, got {len(value):,}")
    if storable(value) != value:
        raise InvalidValue("expected the value of a secret to be text without NUL or lone surrogates; encode it")


def named_by(value: object) -> str | None:
    """Return the name of the secret that *value* stands for, if it does."""
    if not isinstance(value, str) or not value.startswith(SCHEME):
        return None
    name = value.removeprefix(SCHEME)
    return name if _NAME.fullmatch(name) else None


def places(call: Call) -> dict[Path, str]:
    """Return which secrets stand where among the arguments of *call*, by their names."""
    found: dict[Path, str] = {}
    waiting: list[tuple[Path, Any]] = [(("args",), call.args), (("kwargs",), call.kwargs)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [((*path, place), inner) for place, inner in enumerate(value)]
        elif isinstance(value, dict):
            waiting += [((*path, name), inner) for name, inner in value.items()]
        elif (name := named_by(value)) is not None:
            found[path] = name
    return found


def put_in(arguments: Any, path: Path, value: Any) -> None:
    """Put *value* where *path* leads among *arguments*."""
    for part in path[:-1]:
        arguments = arguments[part]
    arguments[path[-1]] = value


def revealed(call: Call, at: Mapping[Path, str], values: Mapping[str, str]) -> Call:
    """Return *call*, which may be changed, with the *values* of secrets in the places *at* which they stand."""
    arguments = {"args": call.args, "kwargs": call.kwargs}
    for path, name in at.items():
        put_in(arguments, path, values[name])
    return call
