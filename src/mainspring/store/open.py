"""Open a store by the address of its database."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from mainspring.clock import Clock
from mainspring.errors import InvalidURL, StoreError, did_you_mean
from mainspring.store.database import Database
from mainspring.store.migrate import prepare
from mainspring.store.sql import SqlStore

_EXPECTED = "expected a database address like sqlite:///mainspring.db or postgresql://user@host/name"
_SQLITE_OPTIONS = {"synchronous": ("full", "normal", "extra")}


def open_store(url: str, *, clock: Clock | None = None, prepared: bool = True) -> SqlStore:
    """Open the database at *url* and return its store, ready for use.

    A SQLite file or an empty database is given its tables on the way. With *prepared* false the schema is not
    looked at. A *clock* takes the place of the database's own; it is meant for tests.
    """
    db = _connect(url, clock)
    try:
        if prepared:
            prepare(db)
    except BaseException:
        db.close()
        raise
    return SqlStore(db)


def _connect(url: str, clock: Clock | None) -> Database:
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise InvalidURL(f"{_EXPECTED}, got: {url!r}")
    if scheme == "sqlite":
        return _sqlite(url, clock)
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, clock)
    # The rest of the address may hold a password, so only the scheme is shown.
    hint = did_you_mean(scheme, ["sqlite", "postgresql", "postgres"])
    raise InvalidURL(f"{_EXPECTED}, got one that begins with {scheme!r}{hint}")


def _sqlite(url: str, clock: Clock | None) -> Database:
    from mainspring.store.sqlite.database import SqliteDatabase

    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or path in ("", ":memory:"):
        raise InvalidURL(
            "expected the path of a SQLite file, as in sqlite:///relative.db or sqlite:////absolute/path.db, "
            f"got: {url!r} (jobs must outlive the process, so there is no in-memory database)"
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in options.items():
        if name not in _SQLITE_OPTIONS:
            raise InvalidURL(f"unknown SQLite option {name!r}{did_you_mean(name, _SQLITE_OPTIONS)}")
        if value.lower() not in _SQLITE_OPTIONS[name]:
            raise InvalidURL(f"expected {name} to be one of {', '.join(_SQLITE_OPTIONS[name])}, got: {value!r}")
    return SqliteDatabase(path, clock=clock, synchronous=options.get("synchronous", "full").lower())


def _postgres(url: str, clock: Clock | None) -> Database:
    try:
        from mainspring.store.postgres.database import PostgresDatabase
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise StoreError("PostgreSQL needs its driver; run `pip install 'mainspring[postgres]'`") from None
    return PostgresDatabase(url, clock=clock)
