"""What a database that is up to date has been through."""

from __future__ import annotations

MIGRATIONS = ["kernel", "schedules", "queues", "limits", "idempotency", "workflows"]
LATEST = len(MIGRATIONS)
