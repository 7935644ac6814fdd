"""Waiting for something to be so, without saying how long that may take."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg


def until(condition: Callable[[], object]) -> None:
    """Look until *condition* holds; the test's time-out ends a wait that is in vain."""
    while not condition():
        time.sleep(0.001)


def waiting_for_a_lock(url: str) -> bool:
    """Return whether anybody in the PostgreSQL database at *url* waits for somebody else's lock."""
    return _anybody(url, "wait_event_type = 'Lock'")


def at_work(url: str) -> bool:
    """Return whether the server runs anybody's query in the PostgreSQL database at *url*."""
    return _anybody(url, "state = 'active'")


def _anybody(url: str, condition: str) -> bool:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT FROM pg_stat_activity WHERE {others} AND {condition}".encode())
        return found.fetchone() is not None
