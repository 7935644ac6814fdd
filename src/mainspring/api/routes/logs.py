"""What jobs have logged: of one, line by line, and of all what is searched for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query
from pydantic import PlainValidator, WithJsonSchema
from starlette.responses import Response

from mainspring.api import values
from mainspring.api.callers import Asking
from mainspring.api.documents import NO_NUL, Document, LineDocument, Lines
from mainspring.api.pages import Limit, TaskName, page
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.jobs import found_document, line_document
from mainspring.model.journal import LogEntry
from mainspring.model.token import Role

routes = Routes("logs")

_MOST_LINES = 10_000
_AN_HOUR = timedelta(hours=1)

Level = Annotated[
    Literal["debug", "info", "warning", "error", "critical"] | None,
    Query(description="Only lines of this level and more serious ones."),
]
Contains = Annotated[
    str | None,
    Query(min_length=1, max_length=1_000, pattern=NO_NUL, description="Only lines with this in them, to the letter."),
]


class FoundLineDocument(LineDocument):
    """A line that was searched for, and the job that logged it."""

    job: UUID
    task: str


class FoundLines(Document):
    """Lines of any jobs of the team, newest first."""

    items: list[FoundLineDocument]


@routes.get("/jobs/{job_id}/logs", needs(Role.VIEWER), gives=Lines)
def list_logs(
    caller: Asking,
    job_id: UUID,
    contains: Contains = None,
    level: Level = None,
    after: Annotated[
        str | None,
        Query(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$", description="Only those behind this one; `0.0` is before all."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_LINES, description="How many lines to list.")] = 1_000,
) -> Response:
    """List what a job has logged, oldest first: the last lines, or those behind one.

    A line is named by its fence and its number, as in `2.17`. Whoever goes on asking for what comes behind the last
    line that he has seen misses none.
    """
    job = caller.app.job(job_id)
    if after is None:
        last = job.logs(contains=contains, level=level)[-limit:]
        return answer({"items": [line_document(one) for one in last], "next": None})
    fence, _, number = after.partition(".")
    found = job.log_page((int(fence), int(number)), limit, contains=contains, level=level)
    return answer(page(found, limit, line_document, _mark))


@routes.get("/logs", needs(Role.VIEWER), gives=FoundLines)
def find_logs(
    caller: Asking,
    contains: Contains = None,
    level: Level = None,
    task: TaskName = None,
    since: Annotated[
        datetime | timedelta,
        PlainValidator(values.since),
        WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 50}),
        Query(description="An instant, or how long ago it is, such as `90m`; an hour, unless told."),
    ] = _AN_HOUR,
    limit: Limit = 100,
) -> Response:
    """Search what the team's jobs have logged lately, newest first."""
    found = caller.app.logs(contains=contains, level=level, task=task, since=since, limit=limit)
    return answer({"items": [found_document(one) for one in found]})


def _mark(line: LogEntry) -> str:
    return f"{line.fence}.{line.number}"
