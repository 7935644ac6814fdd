"""How commands speak: sentences and tables for people, JSON for programs, and never a password."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mainspring.errors import MainspringError

_PASSWORDS = (
    # In an address: what stands between the user's colon and the host's @. The colon of :// is no such colon.
    (re.compile(r":(?!//)\S*@"), ":***@"),
    # In a libpq string, or among the options of an address.
    (re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE), r"\1***"),
)


def without_passwords(text: str) -> str:
    """Return *text* with every database password in it replaced by stars."""
    for pattern, stars in _PASSWORDS:
        text = pattern.sub(stars, text)
    return text


def say(sentence: str) -> None:
    """Print a sentence, whole: a terminal wraps it, a pipe gets one line."""
    with _written():
        _console().print(Text(sentence), soft_wrap=True)


def show(table: Table) -> None:
    """Print a table that fits the terminal."""
    with _written():
        _console().print(table)


def say_json(document: Mapping[str, object]) -> None:
    """Print *document* as one JSON object."""
    with _written():
        typer.echo(json.dumps(document, indent=2))


def complain(sentence: str) -> None:
    """Print what went wrong as one line on stderr."""
    one_line = without_passwords(" ".join(sentence.split()))
    _console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {one_line}"), soft_wrap=True)


def mark(good: bool) -> Text:
    """Return a tick or a cross, in letters where the terminal has no such signs."""
    signs = ("ok", "XX") if _console().options.ascii_only else ("✓", "✗")
    return Text(signs[0], "green") if good else Text(signs[1], "bold red")


def _console(*, stderr: bool = False) -> Console:
    # Made when needed, so that it speaks to the stream and the width of that moment.
    return Console(stderr=stderr, highlight=False)


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has seen enough, which is no mistake
    except OSError as error:
        raise MainspringError(f"can't write the output: {error.strerror}; send it elsewhere") from error
