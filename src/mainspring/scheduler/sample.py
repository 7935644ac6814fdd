"""Sample: take note once a minute of how many jobs are ready, for whoever looks back."""

from __future__ import annotations

from mainspring.errors import StoreError
from mainspring.scheduler.log import log
from mainspring.store import Store

_PAUSE_AFTER_ERROR = 5.0


def sample(store: Store) -> float:
    """Look once, and return the seconds until the next look. One node among all looks in each minute."""
    try:
        return store.sample().total_seconds()
    except StoreError as error:
        log.warning("can't take note of how many jobs are ready, trying on: %s", error)
        return _PAUSE_AFTER_ERROR
