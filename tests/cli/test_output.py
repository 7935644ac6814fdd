"""What is said holds no password, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from mainspring.cli.output import printable, without_passwords


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
