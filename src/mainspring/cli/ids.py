"""Ids of jobs, and their short form.

The first twelve digits of an id are the time at which it was made, so jobs can be found by them quickly; the last
ones are chance, and tell apart what was made in the same instant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from mainspring.cli.apps import App
from mainspring.errors import InvalidValue, JobNotFound
from mainspring.job_handle import JobHandle
from mainspring.model.text import shortened

if TYPE_CHECKING:
    from mainspring.remote import RemoteJob

Handle: TypeAlias = "JobHandle[Any] | RemoteJob"

_BEGINNING, _END = 12, 6
_DIGITS = 32
_FEWEST = 8
_PAGE = 500
_MOST = 20_000
"""Jobs to look through for one whose end fits."""

_ID = re.compile(r"([0-9a-f]+)(?:(?:\.\.|…)([0-9a-f]*))?")


def short(job_id: UUID) -> str:
    """Return the short form of an id, which `find` understands."""
    return f"{job_id.hex[:_BEGINNING]}..{job_id.hex[-_END:]}"


def whole(text: str) -> UUID | None:
    """Return the id that *text* is, or None if it is not a whole one."""
    try:
        return UUID(text)
    except ValueError:
        return None


def find(app: App, text: str) -> Handle:
    """Return the job with the id *text*: the whole id, its beginning, or beginning and end with `..` between them."""
    parts = _ID.fullmatch(text.strip().lower().replace("-", ""))
    if parts is None or len(parts[0]) > _DIGITS:
        raise InvalidValue(f"expected the id of a job, whole or as a listing shows it, got: {shortened(text)}")
    beginning, end = parts[1], parts[2] or ""
    if len(beginning) == _DIGITS:
        return app.job(UUID(beginning))
    if len(beginning) < _FEWEST:
        raise InvalidValue(f"expected at least the first {_FEWEST} digits of a job's id, got: {shortened(text)}")
    found = _search(app, beginning, end)
    if not found:
        raise JobNotFound(text)
    if len(found) > 1:
        raise InvalidValue(f"more than one job has an id like {text}; give more of it")
    return found[0]


def _search(app: App, beginning: str, end: str) -> list[Handle]:
    """Return up to two jobs whose ids begin and end like that."""
    found: list[Handle] = []
    before = UUID(beginning.ljust(_DIGITS, "f"))
    for _ in range(_MOST // _PAGE):
        page = app.jobs(before=before, limit=_PAGE if end else 2)
        fitting = [job for job in page if job.id.hex.startswith(beginning)]
        found += [job for job in fitting if job.id.hex.endswith(end)]
        if len(found) > 1 or not fitting or len(fitting) < len(page) or len(page) < _PAGE:
            break
        before = page[-1].id
    return found
