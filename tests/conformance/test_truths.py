"""The tables guard their own truths: what no code of ours should ever write, they refuse."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from mainspring.store import open_store
from tests.support.factories import claimed_job, new_job

LIES = {
    "running without a holder": "UPDATE jobs SET session = NULL",
    "running without a start": "UPDATE jobs SET started_at = NULL",
    "held without running": "UPDATE jobs SET state = 'ready'",
    "a wish without a worker": ("UPDATE jobs SET state = 'ready', session = NULL, started_at = NULL, wish = 'cancel'"),
    "an unknown state": "UPDATE jobs SET state = 'sleeping', session = NULL, started_at = NULL",
    "a finished job among the unfinished": "UPDATE jobs SET state = 'failed', session = NULL, started_at = NULL",
    "an unknown wish": "UPDATE jobs SET wish = 'dance'",
    "a falling count": "UPDATE jobs SET attempt = -1",
    "a priority out of range": "UPDATE jobs SET priority = 101",
    "two unfinished jobs with one key": "UPDATE jobs SET key = 'same'",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_is_refused(url: str, lie: str) -> None:
    store = open_store(url)
    claimed_job(store, key="one")
    store.enqueue([new_job(key="two")])
    store.close()

    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        execute(url, lie)


def execute(url: str, statement: str) -> None:
    """Run *statement* as a careless person at the database's own prompt would."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            connection.execute(statement.replace("jobs", "mainspring_jobs"))
        finally:
            connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(statement.replace("jobs", "mainspring.jobs").encode())
