"""A machine that was booted again."""

from __future__ import annotations

from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job


def rebooted_store(sqlite_url: str) -> SqlStore:
    """Open a file in which a worker held a job when the machine went down, and the clock began anew."""
    before = SettableClock()
    before.advance("30d")
    store = open_store(sqlite_url, clock=before)
    claimed_job(store)
    store.close()
    return open_store(sqlite_url, clock=SettableClock())
