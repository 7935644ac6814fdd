"""Databases brought into the state that a test needs."""

from __future__ import annotations

from mainspring.store import open_store


def migrated(url: str) -> str:
    """Prepare the database at *url* as its first user would."""
    open_store(url).close()
    return url
