"""Migrations: numbered .sql files, forward only, the same numbers in both dialects."""

from __future__ import annotations

from importlib.resources import files

from mainspring.errors import SchemaMissing, SchemaNewer, SchemaOutdated
from mainspring.store.database import Database, Migration


def load_migrations(package: str) -> list[Migration]:
    """Return the migrations of *package*, in order."""
    scripts = sorted(files(package).joinpath("migrations").iterdir(), key=lambda script: script.name)
    return [
        Migration(int(script.name[:4]), script.name[5:].removesuffix(".sql"), script.read_text()) for script in scripts
    ]


def migrate(db: Database) -> list[Migration]:
    """See `protocol.Store.migrate`."""
    known = db.migrations[-1].number
    found = db.version()
    if found > known:
        raise SchemaNewer(found, known)
    return db.apply(db.migrations) if found < known else []


def check(db: Database) -> None:
    """See `protocol.Store.check`."""
    known, found = db.migrations[-1].number, db.version()
    if found > known:
        raise SchemaNewer(found, known)
    if found < known:
        raise SchemaOutdated(found, known)


def prepare(db: Database) -> None:
    """Make sure that the schema fits: migrate a database that is new, refuse one that is older or newer."""
    known, found = db.migrations[-1].number, db.version()
    if found == known:
        return
    if found > known:
        raise SchemaNewer(found, known)
    if found > 0:
        raise SchemaOutdated(found, known)
    if db.in_use_by_others():
        raise SchemaMissing
    db.apply(db.migrations)
