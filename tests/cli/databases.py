"""Databases brought into the state that a test needs."""

from __future__ import annotations

import sqlite3

import psycopg

from mainspring.store import open_store


def migrated(url: str) -> str:
    """Prepare the database at *url* as its first user would."""
    open_store(url).close()
    return url


def make_newer(url: str) -> None:
    """Leave the database at *url* as a later version of the program would."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("INSERT INTO mainspring_schema (version, name, applied_at) VALUES (999, 'later', 0)")
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute("INSERT INTO mainspring.schema (version, name) VALUES (999, 'later')")
