"""What is said holds no password, nothing that a terminal would obey, and for a pipe all there is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from mainspring.cli.output import cell, listing, printable, show, without_passwords
from tests.cli.databases import migrated


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ada:secret@host/name", "postgresql://ada:***@host/name"),
        ("postgresql://ada:se:cr@et@host/name", "postgresql://ada:***@host/name"),
        ("postgresql://:secret@host/name", "postgresql://:***@host/name"),
        ("postgresql://host/name?user=ada&password=secret&x=1", "postgresql://host/name?user=ada&password=***&x=1"),
        ("postgresql://ada://secret@host/name", "postgresql://ada:***@host/name"),
        ("postgresql://ada:se cret@host/name", "postgresql://ada:***@host/name"),
        ("postgresql://ada lovelace:se cret@host/name", "postgresql://ada lovelace:***@host/name"),
        ("postgresql://host/name?sslpassword=se cret&x=1", "postgresql://host/name?sslpassword=***&x=1"),
        ("host=here password = 'se cret' user=ada", "host=here password = *** user=ada"),
    ],
)
def test_a_password_is_replaced_by_stars(text: str, shown: str) -> None:
    assert without_passwords(f"got: '{text}'") == f"got: '{shown}'"


@pytest.mark.parametrize(
    "text",
    [
        "expected an address like postgresql://user@host:5432/name or sqlite:///mainspring.db",
        "expected an address like sqlite:///mainspring.db or postgresql://user@host:5432/name",
        "can't reach PostgreSQL at localhost:5432, database name; is it running there?",
        "check user, password and database name",
    ],
)
def test_what_holds_no_password_is_left_as_it_is(text: str) -> None:
    assert without_passwords(text) == text


def test_a_password_that_ends_an_address_is_replaced_too() -> None:
    assert without_passwords("postgresql://host/name?password=it's a 'secret'") == "postgresql://host/name?password=***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("red \x1b[31m, bell \x07, back \r, C1 \x9b", "red \\x1b[31m, bell \\x07, back \\x0d, C1 \\x9b"),
        ("a\u202eb\u2066c\u2069d\u202a", "a\\u202eb\\u2066c\\u2069d\\u202a"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("jöbs\tof\nאדה 🎉", "jöbs\tof\nאדה 🎉"),
    ],
)
def test_what_a_terminal_would_obey_is_written_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of a list whose rows are long, or of several lines."""
    table = listing("Name", "Says")
    table.columns[1].max_width = 9
    table.add_row(cell("n" * 300), cell("one\ntwo"))
    table.add_row(cell("m"), cell("a " * 100))
    show(table, indent=2)
    return capsys.readouterr().out.splitlines()


def test_a_pipe_gets_each_row_whole_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    head, first, second = shown(capsys)

    assert (head.split(), first) == (["Name", "Says"], f"  {'n' * 300}  one two")
    assert second == f"  m{' ' * 301}{'a ' * 100}".rstrip()


def test_a_list_fits_its_terminal(capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]) -> None:
    terminal(60)

    assert max(map(len, shown(capsys))) <= 60


def test_an_output_that_is_closed_is_told_as_one_that_is_full(sqlite_url: str) -> None:
    migrated(sqlite_url)
    program = f"{sys.executable} -m mainspring jobs list --url {sqlite_url}"

    for end, why in ((">&-", "it is closed"), (">/dev/full", "No space left on device")):
        done = subprocess.run(["sh", "-c", f"{program} {end}"], capture_output=True, text=True, check=False)

        assert (done.returncode, done.stderr) == (2, f"error: can't write the output: {why}; send it elsewhere\n")
