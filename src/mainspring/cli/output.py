"""How commands speak: sentences and tables for people, JSON for programs, and never a password."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from mainspring.errors import MainspringError

# A password may hold anything, so only the last sign that may be its end is taken for one: of a sentence that goes on
# after an address, rather too much is hidden than too little.
_PASSWORDS = (
    # In an address: what stands between the user's colon and the host's @. The next address begins with no user's.
    (re.compile(r"(://(?:(?!\s\w+://)[^:@])*):.*@", re.DOTALL), r"\1:***@"),
    # The same without the beginning of the address.
    (re.compile(r":(?!//)\S*@"), ":***@"),
    # Among the options of an address.
    (re.compile(r"([?&]\w*password=)[^&]*", re.IGNORECASE), r"\1***"),
    # In a libpq string.
    (re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE), r"\1***"),
)

ENDLESS = 100_000
"""Columns of an output that is no terminal: more than anybody fills. What is cut or wrapped there is lost to `grep`."""

_LAST_BLANKS = re.compile(r" +$", re.MULTILINE)

# What a terminal would obey instead of showing it, and what would have it show the rest in another order. Texts of jobs
# may come from anybody.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def without_passwords(text: str) -> str:
    """Return *text* with every database password in it replaced by stars."""
    for pattern, stars in _PASSWORDS:
        text = pattern.sub(stars, text)
    return text


def printable(text: str) -> str:
    """Return *text* with what would move the cursor or change the terminal written as escapes."""
    return _CONTROLS.sub(lambda control: _escaped(ord(control[0])), text)


def say(sentence: str, style: str = "") -> None:
    """Print a sentence, whole: a terminal wraps it, a pipe gets one line."""
    with _written():
        _console().print(Text(printable(sentence), style), soft_wrap=True)


def show(table: RenderableType, indent: int = 0) -> None:
    """Print a table, or a text, that fits the terminal; elsewhere it is as wide as it takes, one line for each row."""
    console, shown = _console(), Padding(table, (0, 0, 0, indent), expand=False) if indent else table
    with _written():
        if console.is_terminal:
            console.print(shown)
            return
        if isinstance(table, Table):
            _unfold(table)
        with console.capture() as lines:
            console.print(shown)
        typer.echo(_LAST_BLANKS.sub("", lines.get()), nl=False)


def listing(*columns: str) -> Table:
    """Return an empty table with a header, for a list of things."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column)
    return table


def cell(text: object, style: str = "") -> Text:
    """Return *text* as a cell of a table, with nothing in it taken for markup."""
    return Text(printable(str(text)), style)


def width() -> int:
    """Return how many columns the output has: a terminal's own, and else ENDLESS."""
    return _console().width


@contextmanager
def counting(label: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far a long work is; the block calls what it gets with each number of things done.

    Without a *total*, because it is done in one go, it shows that it goes on, and for how long. It is *quiet* for
    programs: whoever reads JSON may draw on the terminal by himself.
    """
    counted = (MofNCompleteColumn(), TimeRemainingColumn()) if total is not None else (TimeElapsedColumn(),)
    console = _console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), *counted)
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


def say_json(document: Mapping[str, object]) -> None:
    """Print *document* as one JSON object."""
    with _written():
        typer.echo(json.dumps(document, indent=2))


def say_json_line(document: Mapping[str, object]) -> None:
    """Print *document* as one of many JSON objects, each on a line of its own."""
    with _written():
        typer.echo(json.dumps(document))


def complain(sentence: str) -> None:
    """Print what went wrong as one line on stderr."""
    _remark("error:", "bold red", sentence)


def warn(sentence: str) -> None:
    """Print what is odd about something that went well, likewise."""
    _remark("warning:", "yellow", sentence)


def aside(sentence: str) -> None:
    """Tell whoever sits at a terminal what goes on; it is no part of the output, and nobody else hears of it."""
    console = _console(stderr=True)
    if console.is_terminal:
        console.print(Text(printable(sentence), "dim"), soft_wrap=True)


def ascii_only() -> bool:
    """Return whether the terminal has no signs beyond letters."""
    return _console().options.ascii_only


def mark(good: bool) -> Text:
    """Return a tick or a cross, in letters where the terminal has no such signs."""
    signs = ("ok", "XX") if ascii_only() else ("✓", "✗")
    return Text(signs[0], "green") if good else Text(signs[1], "bold red")


def _remark(kind: str, style: str, sentence: str) -> None:
    one_line = printable(without_passwords(" ".join(sentence.split())))
    _console(stderr=True).print(Text.assemble((kind, style), f" {one_line}"), soft_wrap=True)


def _console(*, stderr: bool = False) -> Console:
    # Made when needed, so that it speaks to the stream and the width of that moment.
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = ENDLESS
    return console


def _unfold(table: Table) -> None:
    """Have each row of *table* take one line, if it lists things: what tells of one may have paragraphs."""
    for column in table.columns:
        column.max_width = None
        for one in column.cells if table.show_header else ():
            if isinstance(one, Text):
                one.plain = one.plain.replace("\n", " ")


@contextmanager
def _written() -> Iterator[None]:
    if sys.stdout is None:  # closed before we began; what is said would go nowhere, without a word
        raise MainspringError("can't write the output: it is closed; send it elsewhere")
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has seen enough, which is no mistake
    except OSError as error:
        raise MainspringError(f"can't write the output: {error.strerror}; send it elsewhere") from error


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
