"""Results: what jobs returned, as JSON, for other jobs and for whoever asks.

That of a workflow is not stored a second time: it is put together from those of its members when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from mainspring.errors import InvalidPayload
from mainspring.model.job import JobState
from mainspring.model.workflow import decode_plan
from mainspring.store import rows
from mainspring.store.database import Database, Row

LARGEST = 64 * 1024 * 1024
"""Characters that the results of a workflow's members may have together, to be read by one process."""


def results(db: Database, ids: Collection[UUID]) -> dict[UUID, str]:
    """See `protocol.Workflows.results`."""
    found = db.read("results", ids=rows.ids(ids)) if ids else []
    return {row[0]: result for row in found if (result := _result(db, row)) is not None}


def _result(db: Database, row: Row) -> str | None:
    """Return what a job returned that succeeded; None of any other."""
    job_id, state, result, plan = row
    if state is not JobState.SUCCEEDED:
        return None
    decided = None if plan is None else decode_plan(plan)
    if decided is None:
        return result or "null"
    if decided.gathers:
        return _gathered(db, job_id)
    return results(db, [decided.output]).get(decided.output, "null") if decided.output else "null"


def _gathered(db: Database, workflow: UUID) -> str:
    """Return the results of all members as a list, in the order of their ids; those that have none are null."""
    ((size,),) = db.read("gathered_size", workflow=workflow)  # before any of it is in our memory
    _check_size(workflow, size)
    parts = [_result(db, row) or "null" for row in db.read("gathered", workflow=workflow)]
    _check_size(workflow, sum(map(len, parts)))  # a member may be a workflow itself, and have none of its own
    return f"[{','.join(parts)}]"


def _check_size(workflow: UUID, characters: int) -> None:
    if characters > LARGEST:
        raise InvalidPayload(
            f"the results of workflow {workflow} are larger than {LARGEST:,} characters together; "
            "have its jobs store their data elsewhere and return references"
        )
