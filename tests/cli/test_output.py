"""Passwords in what is said."""

from __future__ import annotations

import pytest

from mainspring.cli.output import without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ada:secret@host/name", "postgresql://ada:***@host/name"),
        ("postgresql://ada:se:cr@et@host/name", "postgresql://ada:***@host/name"),
        ("postgresql://:secret@host/name", "postgresql://:***@host/name"),
        ("postgresql://host/name?user=ada&password=secret&x=1", "postgresql://host/name?user=ada&password=***&x=1"),
        ("host=here password = 'se cret' user=ada", "host=here password = *** user=ada"),
    ],
)
def test_a_password_is_replaced_by_stars(text: str, shown: str) -> None:
    assert without_passwords(f"got: '{text}'") == f"got: '{shown}'"


@pytest.mark.parametrize(
    "text",
    [
        "expected an address like postgresql://user@host:5432/name or sqlite:///mainspring.db",
        "can't reach PostgreSQL at localhost:5432, database name; is it running there?",
        "check user, password and database name",
    ],
)
def test_what_holds_no_password_is_left_as_it_is(text: str) -> None:
    assert without_passwords(text) == text
