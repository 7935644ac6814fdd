"""Release: let jobs go on that wait for a limit."""

from __future__ import annotations

from mainspring.scheduler.sweep import sweep
from mainspring.store import Store


def release(store: Store) -> float:
    """Release what may go on, and return the seconds until there may be more."""
    return sweep("release", lambda: store.release().next_due)
