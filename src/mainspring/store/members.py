"""Members: store the jobs of a workflow together with what makes them, and have them share its fate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from uuid import UUID

from mainspring.errors import KeyTaken
from mainspring.model import lifecycle
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.workflow import plan_of
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import Runner
from mainspring.store.insert import Waiting, insert, known, topics_of
from mainspring.store.parents import link, look, look_later, marked
from mainspring.store.rows import to_job
from mainspring.store.tell import LINK, leave


def plant(tx: Runner, jobs: Sequence[NewJob]) -> tuple[set[str], list[Settlement]]:
    """Store *jobs* as new ones, with their edges; return the topics to wake, and how those end that are not to run.

    None can be left out, for others depend on it: a key that an unfinished job has is an error.
    """
    if not jobs:
        return set(), []
    jobs = marked(jobs)
    outlook = look(tx, jobs, {job.id for job in jobs})
    topics = _insert_all(tx, jobs, outlook.waiting)
    return topics, link(tx, outlook)


def plant_unlinked(tx: Runner, jobs: Sequence[NewJob]) -> tuple[set[str], list[Settlement]]:
    """Store *jobs* likewise, in a transaction that may lock no others: who their parents are is looked at later."""
    if not jobs:
        return set(), []
    waiting = look_later(tx, jobs, {job.id for job in jobs}).waiting
    topics = _insert_all(tx, jobs, waiting)
    return topics | leave(tx, LINK, list(waiting)), []


def _insert_all(tx: Runner, jobs: Sequence[NewJob], waiting: Waiting) -> set[str]:
    pieces = chunks(jobs, lambda job: len(job.payload))
    for piece, first in zip(pieces, accumulate(map(len, pieces), initial=0), strict=False):
        refused = insert(tx, piece, first, waiting=waiting)
        if refused:
            raise KeyTaken(refused[0].task, refused[0].key)
    return {topic for job in jobs if not waiting.get(job.id) for topic in topics_of(job)}


def share_fate(tx: Runner, jobs: Sequence[NewJob]) -> list[Settlement]:
    """Return what becomes of new members whose workflow is held, or about to be cancelled."""
    workflows = {job.workflow for job in jobs if job.workflow is not None}
    held = [to_job(tuple(row)) for _, *row in tx.run("lock_live", ids=rows.ids(workflows))] if workflows else []
    # Who joins one that undoes what was done takes part in that.
    cancelled = {job.id for job in held if job.wish is Wish.CANCEL and not is_undone(tx, job)}
    fates = {job.id: job for job in held if job.state is JobState.PAUSED or job.id in cancelled}
    new = [job.id for job in jobs if job.workflow in fates]
    if not new:
        return []
    found = [to_job(tuple(row)) for _, *row in tx.run("lock_live", ids=rows.ids(new))]
    decided = [_fate(job, fates[job.workflow]) for job in found if job.workflow is not None]
    return [settlement for settlement in decided if isinstance(settlement, Settlement)]


def unfinished(tx: Runner, workflows: Sequence[UUID]) -> list[UUID]:
    """Return the members of *workflows* that have not ended."""
    return [job_id for _, job_id, _ in tx.run("unfinished_members", workflows=rows.ids(workflows))]


def lock_running(tx: Runner, workflows: Collection[UUID]) -> None:
    """Lock the members of *workflows*, and theirs, that run: who settles one has it, and then wants its workflow."""
    running: list[UUID] = []
    while workflows:
        found = tx.run("unfinished_members", workflows=rows.ids(workflows))
        running += [job_id for _, job_id, state in found if state is JobState.RUNNING]
        workflows = [job_id for _, job_id, state in found if state in (JobState.BLOCKED, JobState.PAUSED)]
    if running:
        tx.run("lock_live", ids=rows.ids(running))


def is_undone(tx: Runner, job: Job) -> bool:
    """Return whether the workflow *job* undoes, or has undone, what its members did."""
    plan = plan_of(job)
    return plan is not None and bool(plan.undo) and bool(known(tx, (undo.job.id for undo in plan.undo)))


def _fate(job: Job, workflow: Job) -> Settlement | Asked | None:
    decide = lifecycle.cancel if workflow.wish is Wish.CANCEL else lifecycle.pause
    return decide(job, workflow.reason)
