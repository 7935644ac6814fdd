"""Rows and model, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from mainspring.clock import MICROSECOND, microseconds
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.store.database import Row

Converter = Callable[[Any], Any]

_encoder = msgspec.json.Encoder()
_STATES: Mapping[str, JobState] = {state.value: state for state in JobState}
_WISHES: Mapping[str, Wish] = {wish.value: wish for wish in Wish}

MODEL_CONVERTERS: dict[str, Converter] = {"state": _STATES.__getitem__, "wish": _WISHES.__getitem__}
"""By column name: what neither driver can know."""


def convert_rows(rows: list[Row], names: Sequence[str], converters: Mapping[str, Converter]) -> list[Row]:
    """Return *rows* with each column that has a converter converted, NULL excepted."""
    wanted = [(index, converters[name]) for index, name in enumerate(names) if name in converters]
    return [_convert_row(row, wanted) for row in rows] if wanted else rows


def _convert_row(row: Row, wanted: list[tuple[int, Converter]]) -> Row:
    values = list(row)
    for index, converter in wanted:
        if values[index] is not None:
            values[index] = converter(values[index])
    return tuple(values)


def to_job(row: Row) -> Job:
    """Return the job of a row whose columns are those of the fragments `live` and `done`."""
    return Job(*row)


def document(values: Iterable[object]) -> str:
    """Return *values* as the one JSON document in which a list travels to the database."""
    return _encoder.encode(list(values)).decode()


def new_jobs(jobs: Iterable[NewJob], first: int) -> str:
    """Return *jobs* as a document for the query `enqueue`; *first* is the place of the first in its batch."""
    return document(
        {
            "id": job.id,
            "task": job.task,
            "queue": job.queue,
            "payload": job.payload,
            "priority": job.priority,
            "run_at_us": None if job.run_at is None else microseconds(job.run_at),
            "delay_us": job.delay // MICROSECOND,
            "key": job.key,
            "position": position,
        }
        for position, job in enumerate(jobs, first)
    )


def settlements(decided: Iterable[Settlement]) -> str:
    """Return *decided* as a document for the queries that apply settlements."""
    return document(
        {
            "job_id": settlement.job_id,
            "fence": settlement.fence,
            "source": settlement.source,
            "state": settlement.state,
            "attempt": settlement.attempt,
            "losses": settlement.losses,
            "outcome": settlement.outcome,
            "delay_us": _optional_us(settlement.delay),
            "result": settlement.result,
            "error": None if settlement.failure is None else _encoder.encode(settlement.failure).decode(),
            "reason": settlement.reason,
        }
        for settlement in decided
    )


def wishes(asked: Iterable[Asked]) -> str:
    """Return *asked* as a document for the query `ask`."""
    return document(asked)


def ids(of: Iterable[UUID]) -> str:
    """Return ids as a document."""
    return document(of)


def _optional_us(length: timedelta | None) -> int | None:
    return None if length is None else length // MICROSECOND
