"""A question before what is not easily undone."""

from __future__ import annotations

import sys

import typer

from mainspring.errors import InvalidValue


def confirmed(deed: str, as_json: bool) -> bool:
    """Ask at the terminal whether to do *deed*, such as `remove 3 schedules`; refuse where nobody can be asked."""
    if as_json or not sys.stdin.isatty():
        raise InvalidValue(f"this would {deed}; add --yes to do it")
    return typer.confirm(f"{deed[0].upper()}{deed[1:]}?", err=True)
