"""Rank: give jobs their new place in queues whose ageing was changed, where whoever changed it could not."""

from __future__ import annotations

from mainspring.errors import StoreError
from mainspring.scheduler.log import log
from mainspring.store import Store

EVERY = 5.0
"""Seconds between looks, which cost one small query: nearly always there is nothing to do."""


def rank(store: Store) -> float:
    """Look once, and return the seconds until the next look."""
    try:
        store.rerank()
    except StoreError as error:
        log.warning("can't rank jobs anew, trying on: %s", error)
    return EVERY
