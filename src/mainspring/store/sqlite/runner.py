"""Named queries on one connection, and the rows that they return."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import msgspec

from mainspring.clock import MICROSECOND, microseconds, moment
from mainspring.store.database import Row
from mainspring.store.queries import Query
from mainspring.store.rows import INSTANTS, MODEL_CONVERTERS, Converter, convert_columns, convert_rows, distinct

_CONVERTERS: Mapping[str, Converter] = {
    **MODEL_CONVERTERS,
    **dict.fromkeys(
        ("id", "job_id", "session", "workflow", "parent", "child"),
        lambda column: msgspec.convert(column, list[UUID | None]),
    ),
    **dict.fromkeys(INSTANTS, distinct(moment)),
    **dict.fromkeys(
        ("lease", "success_in", "ageing", "was", "gap", "age"), distinct(lambda length: length * MICROSECOND)
    ),
    **dict.fromkeys(
        ("alive", "paused", "awaits", "overdue", "waiting", "awaited", "passed", "live", "idle"),
        lambda column: [bool(value) for value in column],
    ),
}

_GATHERED: dict[str, tuple[str, list[str]]] = {}
"""For each SELECT, the one that gathers its rows into one, and the names of its columns."""

_array = msgspec.json.Decoder(list[Any])


class Executes(Protocol):
    """A connection, or what stands for one."""

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor: ...


class SqliteRunner:
    """Runs named queries inside a transaction that is open already."""

    def __init__(
        self,
        connection: Executes,
        queries: Mapping[str, Query],
        ambient: Mapping[str, object],
        in_doubt: bool = False,
    ) -> None:
        self.in_doubt = in_doubt
        self._connection = connection
        self._queries = queries
        self._ambient = ambient

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        values = {name: _plain(value) for name, value in parameters.items()}
        values.update(self._ambient)
        found: list[Row] = []
        for statement in self._queries[query].statements:
            if statement.startswith("SELECT"):
                found += self._select(statement, values)
                continue
            cursor = self._connection.execute(statement, values)
            if cursor.description:
                found += convert_rows(cursor.fetchall(), _names(cursor), _CONVERTERS)
        return found

    def _select(self, statement: str, values: dict[str, object]) -> list[Row]:
        """Return the rows of *statement*, fetched as one row that holds each column as a JSON array.

        The sqlite3 module lets go of the interpreter at every row, and a thread that computes may then keep it for
        5 ms: row by row, to claim 500 jobs takes up to a second beside one busy handler.
        """
        if statement not in _GATHERED:
            names = _names(self._connection.execute(f"SELECT * FROM ({statement}) LIMIT 0", values))  # noqa: S608
            columns = ", ".join(f'json_group_array("{name}")' for name in names)
            _GATHERED[statement] = f"SELECT {columns} FROM ({statement})", names  # noqa: S608
        gathered, names = _GATHERED[statement]
        try:
            (row,) = self._connection.execute(gathered, values)
        except sqlite3.DataError:  # a column of more than a gigabyte
            return convert_rows(self._connection.execute(statement, values).fetchall(), names, _CONVERTERS)
        return convert_columns(map(_array.decode, row), names, _CONVERTERS)


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]


def _plain(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, timedelta):
        return value // MICROSECOND
    return microseconds(value) if isinstance(value, datetime) else value
