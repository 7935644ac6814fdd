"""Open a store by the address of its database."""

from __future__ import annotations

from math import inf
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from mainspring.clock import Clock
from mainspring.errors import InvalidURL, InvalidValue, StoreError, did_you_mean
from mainspring.keys import Keyring
from mainspring.store.database import Database
from mainspring.store.migrate import prepare
from mainspring.store.sql import SqlStore

DEADLINE = 15.0
_PATIENCE = 5.0
"""Seconds for one try of a call, where there is time for three."""

_EXPECTED = "expected a database address like sqlite:///mainspring.db or postgresql://user@host/name"
_SCHEMES = ("sqlite", "postgresql", "postgres")
_SQLITE_OPTIONS = {"synchronous": ("full", "normal", "extra")}


def open_store(url: str, *, clock: Clock | None = None, prepared: bool = True, deadline: float = DEADLINE) -> SqlStore:
    """Open the database at *url* and return its store, ready for use.

    A SQLite file or an empty database is given its tables on the way. With *prepared* false the schema is not
    looked at. A call that can't reach the database is tried again for *deadline* seconds. A *clock* takes the place
    of the database's own; it is meant for tests.
    """
    if not 0 < deadline < inf:
        raise InvalidValue(f"expected deadline to be a number of seconds greater than 0, got: {deadline!r}")
    db = _connect(url.strip(), clock, deadline)
    try:
        if prepared:
            prepare(db)
    except BaseException:
        db.close()
        raise
    return SqlStore(db)


def check_url(url: str) -> None:
    """Refuse what can't be the address of a database; whether one is there is not asked."""
    if _scheme(url.strip()) == "sqlite":
        _sqlite_parts(url.strip())
    else:
        _check_postgres(url.strip())


def _connect(url: str, clock: Clock | None, deadline: float) -> Database:
    return _sqlite(url, clock, deadline) if _scheme(url) == "sqlite" else _postgres(url, clock, deadline)


def _scheme(url: str) -> str:
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise InvalidURL(f"{_EXPECTED}, got: {_shown(url)}")
    if scheme.lower() in ("http", "https"):
        raise InvalidURL(
            f"{_EXPECTED}, got that of a server, but this needs the database itself: name it by --url or MAINSPRING_URL"
        )
    if scheme not in _SCHEMES:
        # The rest of the address may hold a password, so only the scheme is shown.
        hint = did_you_mean(scheme, _SCHEMES)
        raise InvalidURL(f"{_EXPECTED}, got one that begins with {scheme!r}{hint}")
    return scheme


def _sqlite(url: str, clock: Clock | None, deadline: float) -> Database:
    from mainspring.store.sqlite.database import SqliteDatabase

    path, options = _sqlite_parts(url)
    synchronous = options.get("synchronous", "full").lower()
    return SqliteDatabase(path, clock=clock, synchronous=synchronous, deadline=deadline)


def sqlite_file(url: str) -> Path | None:
    """Return the file that *url* names, made or not; None when it names a server."""
    return Path(_sqlite_parts(url)[0]).absolute() if url.startswith("sqlite://") else None


def keyring(url: str) -> Keyring:
    """Return the encryption keys that belong to the database at *url*."""
    file = sqlite_file(url)
    if file is None:
        return Keyring(None)
    real = file.resolve()  # so that all agree who call it by different names
    return Keyring(Path(f"{real}.keys"), lambda: sqlite_holds_sealed(real))


def sqlite_holds_sealed(file: Path) -> bool:
    """Return whether anything in *file* is sealed; looking changes nothing in it."""
    from mainspring.store.sqlite.file import holds_sealed

    return holds_sealed(file)


def sqlite_prepared(file: Path) -> bool:
    """Return whether our tables are in *file*; looking changes nothing in it."""
    from mainspring.store.sqlite.file import prepared

    return prepared(file)


def _sqlite_parts(url: str) -> tuple[str, dict[str, str]]:
    """Return the path and the options that *url* names."""
    place, _, query = url.removeprefix("sqlite://").partition("?")
    path = unquote(place.removeprefix("/"))
    if not place.startswith("/") or path in ("", ":memory:") or "\0" in path:
        raise InvalidURL(
            "expected the path of a SQLite file, as in sqlite:///relative.db or sqlite:////absolute/path.db, "
            f"got: {_shown(url)} (jobs must outlive the process, so there is no in-memory database)"
        )
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name not in _SQLITE_OPTIONS:
            raise InvalidURL(f"unknown SQLite option {name!r}{did_you_mean(name, _SQLITE_OPTIONS)}")
        if value.lower() not in _SQLITE_OPTIONS[name]:
            raise InvalidURL(f"expected {name} to be one of {', '.join(_SQLITE_OPTIONS[name])}, got: {value!r}")
    return path, options


def _postgres(url: str, clock: Clock | None, deadline: float) -> Database:
    _check_postgres(url)
    from mainspring.store.postgres.database import PostgresDatabase

    return PostgresDatabase(url, clock=clock, patience=min(_PATIENCE, deadline / 3), deadline=deadline)


def _check_postgres(url: str) -> None:
    try:
        from mainspring.store.postgres.connections import check_address
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise StoreError("PostgreSQL needs its driver; run `pip install 'mainspring[postgres]'`") from None
    # A bare @ or / in a password makes its rest part of the host or the database name, which errors do show.
    server, _, rest = url.partition("://")[2].partition("/")
    if server.count("@") > 1 or "@" in rest.partition("?")[0]:
        raise InvalidURL("expected at most one @ in the database address; write @ in a password as %40 and / as %2F")
    check_address(url)


def _shown(url: str) -> str:
    return "one that may hold a password, so it is not shown" if "@" in url or "=" in url else repr(url)
