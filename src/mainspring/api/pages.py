"""Pages: what listings have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from fastapi import Path, Query
from pydantic import PlainValidator, WithJsonSchema

from mainspring.api import values
from mainspring.api.documents import NO_NUL, Name

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=1_000, description="How many to list.")]
QueueName = Annotated[Name | None, Query(alias="queue", description="Only those of this queue.")]
TaskName = Annotated[Name | None, Query(alias="task", description="Only those of this task.")]
KeyText = Annotated[
    str | None,
    Query(alias="key", min_length=1, max_length=512, pattern=NO_NUL, description="Only those with this key."),
]
ErrorText = Annotated[
    str | None,
    Query(
        alias="error",
        min_length=1,
        max_length=1_000,
        pattern=NO_NUL,
        description="Only those whose last failure says this, in its type or message, in ASCII letters of either case.",
    ),
]
Moment = Annotated[
    datetime | timedelta | None,
    PlainValidator(values.since),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": values.LONGEST_LENGTH}),
]
NameInPath = Annotated[Name, Path()]


def page(
    items: Sequence[T], limit: int, document: Callable[[T], object], mark: Callable[[T], Any]
) -> dict[str, object]:
    """Return *items* as one page of a listing, with where the next begins if there may be one."""
    return {"items": [document(one) for one in items], "next": mark(items[-1]) if len(items) == limit else None}
