"""A caller's own connection, under whatever it is wrapped in."""

from __future__ import annotations

from typing import Any

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

EXPECTED = (
    "expected conn to be an open connection to the app's own database: a psycopg or sqlite3 Connection, an SQLAlchemy "
    "Connection or Session, or Django's connection"
)


def driver_connection(conn: Any) -> Any:
    """Return the driver's connection that *conn* is or stands for; the dialect says whether it will do.

    SQLAlchemy and Django are told by what they can do: neither is imported here.
    """
    if conn is None:
        raise InvalidValue(f"{EXPECTED}, got: None; leave conn out for a transaction of the job's own")
    found = _unwrapped(conn)
    if hasattr(type(conn), "__aenter__") or hasattr(type(found), "__aenter__"):
        raise refused(conn, "it is one for coroutines; open a plain one for this transaction")
    return found


def _unwrapped(conn: Any) -> Any:
    if hasattr(conn, "ensure_connection"):  # Django's, which connects when it is first needed
        conn.ensure_connection()
        return conn.connection
    if hasattr(conn, "get_bind") and callable(getattr(conn, "connection", None)):  # SQLAlchemy's Session
        conn = conn.connection()
    if hasattr(conn, "exec_driver_sql"):  # SQLAlchemy's Connection
        if not conn.in_transaction():
            # It commits what it has begun itself, and would take a transaction of the driver's alone for none.
            conn.exec_driver_sql("SELECT 1")
        conn = conn.connection
    return getattr(conn, "driver_connection", conn)


def refused(conn: object, why: str) -> InvalidValue:
    """Return the error for a connection that will not do."""
    return InvalidValue(f"{EXPECTED}, got {shortened(conn)}: {why}")
