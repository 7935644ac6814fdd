"""The tables guard their own truths: what no code of ours should ever write, they refuse."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from mainspring.store import open_store
from tests.support.databases import execute, table
from tests.support.factories import claimed_job, new_job

LIES = {
    "running without a holder": "session = NULL",
    "running without a start": "started_at = NULL",
    "held without running": "state = 'ready'",
    "a wish without a worker": "state = 'ready', session = NULL, started_at = NULL, wish = 'cancel'",
    "an unknown state": "state = 'sleeping', session = NULL, started_at = NULL",
    "a finished job among the unfinished": "state = 'failed', session = NULL, started_at = NULL",
    "an unknown wish": "wish = 'dance'",
    "a falling count": "attempt = -1",
    "a priority out of range": "priority = 101",
    "two unfinished jobs with one key": "key = 'same'",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_is_refused(url: str, lie: str) -> None:
    store = open_store(url)
    claimed_job(store, key="one")
    store.enqueue([new_job(key="two")])
    store.close()

    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        execute(url, f"UPDATE {table(url, 'jobs')} SET {lie}")
