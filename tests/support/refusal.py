"""A database that refuses one kind of write, so that a call fails halfway."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

import psycopg


@contextlib.contextmanager
def refusing(url: str, write: str, table: str, when: str = "TRUE") -> Iterator[None]:
    """Let the database at *url* refuse each *write* (INSERT, UPDATE, DELETE) of a row of *table*, for a while."""
    begin, end = (_sqlite if url.startswith("sqlite") else _postgres)(write, table, when)
    _execute(url, begin)
    try:
        yield
    finally:
        _execute(url, end)


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


def _execute(url: str, statements: str) -> None:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        try:
            connection.execute(statements)
        finally:
            connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(statements.encode())
