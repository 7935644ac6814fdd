"""Keys: what becomes of an unfinished job whose key another request wants."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from mainspring.model import lifecycle
from mainspring.model.job import IfTaken, Job, NewJob
from mainspring.store import rows
from mainspring.store.database import Runner
from mainspring.store.rows import to_job
from mainspring.store.turns import give_back

Changed = dict[UUID, Job]
"""By the id of a request, the job that it has changed, as it was left."""


def stand_ins(tx: Runner, refused: Iterable[NewJob], changed: Changed) -> dict[UUID, UUID]:
    """Change the jobs that have the keys of *refused* as those say; return, for each, the id of the job that has it.

    One whose key became free meanwhile is left out. What was changed is noted in *changed*.
    """
    wanted = [job for job in refused if job.key]
    holders: dict[str | None, UUID] = dict(tx.run("holders", keys=rows.document(job.key for job in wanted)))
    standing = {job.id: holders[job.key] for job in wanted if job.key in holders}
    changing = [job for job in wanted if job.id in standing and job.if_taken is not IfTaken.RETURN]
    if changing:
        _change(tx, changing, standing, changed)
    return standing


def _change(tx: Runner, changing: Iterable[NewJob], standing: dict[UUID, UUID], changed: Changed) -> None:
    """Let each of *changing* change its holder, one after the other; one that is gone is no longer *standing*."""
    locked = tx.run("lock_live", ids=rows.ids({standing[new.id] for new in changing}))
    moments = {row[1]: row[0] for row in locked}
    before = {row[1]: to_job(tuple(row[1:])) for row in locked}
    after = dict(before)
    for new in changing:
        holder = standing[new.id]
        if holder not in after:
            del standing[new.id]
            continue
        after[holder] = lifecycle.give_way(after[holder], new, moments[holder])
        changed[new.id] = after[holder]
    different = [(before[holder], job) for holder, job in after.items() if job != before[holder]]
    if different:
        tx.run("replace", changed=rows.replacements(different))
        give_back(tx, (lifecycle.leaves(was, job.state) for was, job in different))


def changed_before(tx: Runner, changed: Changed) -> dict[UUID, UUID]:
    """Return, for each request of which an earlier try may have changed a job, the id of that job if it did.

    The job may have run and finished since, which leaves its key free; but then it ran with what we gave it.
    """
    if not tx.in_doubt or not changed:
        return {}
    found = {row[0]: to_job(row) for row in tx.run("get", ids=rows.ids({job.id for job in changed.values()}))}
    return {new: job.id for new, job in changed.items() if job.id in found and _is_left(job, found[job.id])}


def _is_left(job: Job, found: Job) -> bool:
    """Return whether *found* is *job* as we left it, or has been claimed as such."""
    claimed = found.fence > job.fence
    return found.payload == job.payload and (claimed or (found.run_at, found.priority) == (job.run_at, job.priority))
