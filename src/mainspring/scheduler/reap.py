"""Reap: take back the jobs of workers that died."""

from __future__ import annotations

from mainspring.errors import StoreError
from mainspring.model.text import counted
from mainspring.scheduler.log import log
from mainspring.store import Store

EVERY = 1.0
"""Seconds between looks, which cost one small query: a job is back within its worker's lease and this."""


def reap(store: Store) -> float:
    """Reap once, and return the seconds until the next look."""
    try:
        reaped = store.reap()
    except StoreError as error:
        log.warning("can't reap, trying on: %s", error)
        return EVERY
    if reaped:
        log.warning("took back %s of workers that did not renew their lease", counted(reaped, "job"))
    return EVERY
