"""A look into the database, or a hand in it, that does not go through Mainspring."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run *statement* as a person at the database's own prompt would, and return the rows it found."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()
    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def connected(url: str, **settings: Any) -> Iterator[Any]:
    """A connection as an application would open it, with *settings* for its driver."""
    if url.startswith("sqlite"):
        opened: Any = sqlite3.connect(url.removeprefix("sqlite:///"), **settings)
    else:
        opened = psycopg.connect(url, **settings)
    with closing(opened):
        yield opened


def table(url: str, name: str) -> str:
    """Return what our table *name* is called there."""
    return f"mainspring_{name}" if url.startswith("sqlite") else f"mainspring.{name}"


def dump(url: str) -> str:
    """Return all that is in our tables, as text."""
    if url.startswith("sqlite"):
        tables = execute(url, "SELECT name FROM sqlite_master WHERE type = 'table'")
    else:
        tables = execute(url, "SELECT 'mainspring.' || tablename FROM pg_tables WHERE schemaname = 'mainspring'")
    assert len(tables) > 10
    return "\n".join(f"{name}: {row!r}" for (name,) in tables for row in execute(url, f"SELECT * FROM {name}"))


def make_newer(url: str) -> None:
    """Leave the prepared database at *url* as a later version of the program would."""
    now = "0" if url.startswith("sqlite") else "now()"
    execute(url, f"INSERT INTO {table(url, 'schema')} (version, name, applied_at) VALUES (999, 'later', {now})")
