"""`mainspring migrate`: bring the database's tables up to date."""

from __future__ import annotations

from contextlib import closing

from mainspring.app import DEFAULT_URL
from mainspring.cli.options import AsJson, DatabaseUrl
from mainspring.cli.output import counting, say, say_json
from mainspring.store import open_store


def migrate(url: DatabaseUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Bring the database's tables up to date. Running it again does no harm."""
    with closing(open_store(url, prepared=False)) as store:
        with counting("Migrate", quiet=as_json):
            applied = store.migrate()
        version = store.version()
    if as_json:
        steps = [{"number": migration.number, "name": migration.name} for migration in applied]
        say_json({"applied": steps, "version": version})
        return
    for migration in applied:
        say(f"Applied migration {migration.number:04} ({migration.name}).")
    say(f"The database is now at schema version {version}." if applied else f"Up to date: schema version {version}.")
