"""Tell: what the end of jobs means for those that wait for it, their children and their workflow.

Whoever ends a job that runs tells so in the same transaction: its row is nobody else's, so only those are left to lock
that are told, and all lock these in the order of ids. What follows from that in turn, as when a child is cancelled
that has children itself, is a *follow-up*, for a transaction of its own; and so is the end of a job that did not run.
See `follow.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from mainspring.model import lifecycle
from mainspring.model.job import JobState
from mainspring.model.lifecycle import Settlement
from mainspring.model.links import IfFailed
from mainspring.store import rows
from mainspring.store.database import RELEASE, Runner
from mainspring.store.parents import Broken, disown
from mainspring.store.rows import to_job

LINK, TELL, FINISH = "link", "tell", "finish"
"""Follow-ups: look at the parents of a job, tell those that wait for the end of one, end a workflow without members."""


class Ended(NamedTuple):
    """A job that has ended, how, and the workflow that counts it."""

    job_id: UUID
    state: JobState
    workflow: UUID | None


class Told(NamedTuple):
    """What becomes of those that were told, and which workflows have no members left that have not ended."""

    settlements: Sequence[Settlement]
    complete: Sequence[UUID]


def tell(tx: Runner, ended: Sequence[Ended], joined: Mapping[UUID, int], *, awaited: bool) -> Told:
    """Tell that jobs have *ended*, some of which are *awaited* by children, and that others have *joined* workflows."""
    counts, broken = _count_children(tx, ended) if awaited else (Counter(), {})
    members = Counter(one.workflow for one in ended if one.workflow is not None)
    members.subtract(joined)
    if not counts and not broken and not members:
        return Told((), ())
    everybody = {**counts, **dict.fromkeys(broken, 0), **members}
    left: dict[UUID, int] = dict(tx.run("count_down", counts=rows.counts(everybody)))
    free = [child for child in counts if left.get(child) == 0 and child not in broken]
    settlements = [*set_free(tx, free), *(disown(tx, broken) if broken else ())]
    return Told(settlements, [workflow for workflow in members if left.get(workflow) == 0])


def set_free(tx: Runner, children: Sequence[UUID]) -> list[Settlement]:
    """Return how those of *children* go on whose parents have all ended."""
    if not children:
        return []
    found = [(now, to_job(tuple(row))) for now, *row in tx.run("lock_live", ids=rows.ids(children))]
    decided = [lifecycle.release(job, now) for now, job in found]
    return [settlement for settlement in decided if settlement is not None]


def leave(tx: Runner, what: str, jobs: Sequence[UUID]) -> set[str]:
    """Leave something to be followed up about *jobs*; return the topics to wake."""
    if not jobs:
        return set()
    tx.run("put_follow_ups", follow_ups=rows.document((job_id, what) for job_id in jobs))
    return {RELEASE}


def _count_children(tx: Runner, ended: Sequence[Ended]) -> tuple[Counter[UUID], Broken]:
    """Take the edges of parents that have *ended*; return of how many each child need wait no more, and who won't run.

    The edges of a child that waits for a replay stay.
    """
    states = {one.job_id: one.state for one in ended}
    succeeded = [job_id for job_id, state in states.items() if state is JobState.SUCCEEDED]
    others = [job_id for job_id in states if job_id not in set(succeeded)]
    found = [
        edge
        for parents, held in ((succeeded, ""), (others, IfFailed.WAIT.value))
        if parents
        for edge in tx.run("unlink", parents=rows.ids(parents), **{"except": held})
    ]
    met: Counter[UUID] = Counter()
    broken: dict[UUID, tuple[UUID, JobState | None]] = {}
    for parent, child, if_failed in found:
        if lifecycle.may_follow(if_failed, states[parent]):
            met[child] += 1
        elif child not in broken or parent < broken[child][0]:  # in whatever order the database names them
            broken[child] = parent, states[parent]
    return met, broken
