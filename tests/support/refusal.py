"""A database that refuses one kind of write, so that a call fails halfway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.support.databases import execute


@contextlib.contextmanager
def refusing(url: str, write: str, table: str, when: str = "TRUE") -> Iterator[None]:
    """Let the database at *url* refuse each *write* (INSERT, UPDATE, DELETE) of a row of *table*, for a while."""
    begin, end = (_sqlite if url.startswith("sqlite") else _postgres)(write, table, when)
    execute(url, begin)
    try:
        yield
    finally:
        execute(url, end)


def _sqlite(write: str, table: str, when: str) -> tuple[str, str]:
    return (
        f"CREATE TRIGGER refusal BEFORE {write} ON mainspring_{table} WHEN ({when})"
        " BEGIN SELECT RAISE(ABORT, 'refused'); END",
        "DROP TRIGGER refusal",
    )


def _postgres(write: str, table: str, when: str) -> tuple[str, str]:
    return (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;"
        f"CREATE TRIGGER refusal BEFORE {write} ON mainspring.{table} FOR EACH ROW WHEN ({when})"
        " EXECUTE FUNCTION refuse()",
        "DROP FUNCTION refuse CASCADE",
    )
