"""A look into the database that does not go through Mainspring."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg


def execute(url: str, statement: str) -> list[Any]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        found = connection.execute(statement).fetchall()
        connection.close()
        return found
    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
