"""What a database that is up to date has been through."""

from __future__ import annotations

from tests.support.databases import execute

MIGRATIONS = [
    *("kernel", "schedules", "queues", "limits", "idempotency", "workflows"),
    *("teams", "notifications", "alerts", "retention", "logs", "secrets"),
]
LATEST = len(MIGRATIONS)


def tables(url: str) -> list[str]:
    """Return the names of all our tables that are in the database at *url*."""
    if url.startswith("sqlite"):
        found = execute(
            url, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'mainspring\\_%' ESCAPE '\\'"
        )
        return [name.removeprefix("mainspring_") for (name,) in found]
    return [name for (name,) in execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'mainspring'")]
