"""A caller's own connection to PostgreSQL: may we write on it, and how to without disturbing him."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format, PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8BinaryLoader

from mainspring.store.callers import refused


class PlainCursor(psycopg.Cursor[Any]):
    """A cursor on somebody's connection that knows nothing of the row factories and adapters he set there."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self.format = Format.BINARY
        self._adapters = AdaptersMap(psycopg.adapters)
        self._adapters.register_loader("timestamptz", Int8BinaryLoader)


def check_usable(connection: object) -> psycopg.Connection[Any]:
    """Return *connection*, or say why nothing can be written on it; its server is not asked."""
    if not isinstance(connection, psycopg.Connection):
        raise refused(connection, "the app's database is PostgreSQL, for which it must be one of psycopg 3")
    if connection.closed:
        raise refused(connection, "it is closed")
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise refused(connection, "it is in pipeline mode; enqueue before or after that block")
    status = connection.pgconn.transaction_status
    if status == TransactionStatus.INERROR:
        raise refused(connection, "a statement in its transaction has failed, so nothing more is kept; roll back first")
    if status == TransactionStatus.ACTIVE:
        raise refused(connection, "it is busy with another statement; end that first")
    return connection


def idle(connection: psycopg.Connection[Any]) -> bool:
    """Return whether no transaction is open on *connection*."""
    return connection.pgconn.transaction_status == TransactionStatus.IDLE
