"""Results: what jobs returned, as JSON, for other jobs and for whoever asks.

That of a workflow is not stored a second time: it is put together from those of its members when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from mainspring.errors import InvalidPayload
from mainspring.keys import Keyring
from mainspring.model.job import JobState
from mainspring.model.sealed import result_context
from mainspring.model.workflow import decode_plan
from mainspring.store import rows
from mainspring.store.database import Database, Row

LARGEST = 64 * 1024 * 1024
"""Characters that the results of a workflow's members may have together, to be read by one process."""


def results(db: Database, keys: Keyring, ids: Collection[UUID]) -> dict[UUID, str]:
    """See `protocol.Workflows.results`."""
    found = db.read("results", ids=rows.ids(ids)) if ids else []
    return {row[0]: result for row in found if (result := _result(db, keys, row)) is not None}


def _result(db: Database, keys: Keyring, row: Row) -> str | None:
    """Return what a job returned that succeeded; None of any other."""
    job_id, task, state, result, plan = row
    if state is not JobState.SUCCEEDED:
        return None
    decided = None if plan is None else decode_plan(plan)
    if decided is None:
        return keys.open_document(result or "null", result_context(job_id, task), f"the result of job {job_id}")
    if decided.gathers:
        return _gathered(db, keys, job_id)
    return results(db, keys, [decided.output]).get(decided.output, "null") if decided.output else "null"


def _gathered(db: Database, keys: Keyring, workflow: UUID) -> str:
    """Return the results of all members as a list, in the order of their ids; those that have none are null."""
    ((size,),) = db.read("gathered_size", workflow=workflow)  # before any of it is in our memory
    _check_size(workflow, size)
    parts = [_result(db, keys, row) or "null" for row in db.read("gathered", workflow=workflow)]
    _check_size(workflow, sum(map(len, parts)))  # a member may be a workflow itself, and have none of its own
    return f"[{','.join(parts)}]"


def _check_size(workflow: UUID, characters: int) -> None:
    if characters > LARGEST:
        raise InvalidPayload(
            f"the results of workflow {workflow} are larger than {LARGEST:,} characters together; "
            "have its jobs store their data elsewhere and return references"
        )
