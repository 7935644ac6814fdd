"""Revive: let finished jobs live again, and with them what has to.

A member of a workflow brings back its workflow, and those that come after it and were cancelled; a workflow brings back
its members that did not succeed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

from mainspring.model import lifecycle
from mainspring.model.job import Job
from mainspring.model.lifecycle import Settlement
from mainspring.model.workflow import has_begun, plan_of
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import Row, Runner
from mainspring.store.members import is_undone
from mainspring.store.parents import Outlook, look_at
from mainspring.store.rows import to_job
from mainspring.store.tell import FINISH, LINK, TELL, leave

Rewrite = Callable[[Job], str]
"""Returns the payload that a job has from now on."""


def revive(tx: Runner, dead: Sequence[Job], reason: str | None, rewrite: Rewrite | None = None) -> list[Row]:
    """Replay those of the locked jobs *dead* that can be, in the transaction *tx*; return their ids and queues.

    So are those that have to live with them.
    """
    asked = {job.id for job in dead}
    taken_back = _take_back(tx, asked)
    family = _family(tx, dead)
    taken_back += _take_back(tx, family.keys() - asked)
    revived, outlook = _choose(tx, _free_to_live(tx, family))
    _leave_again(tx, taken_back, {job.id for job in revived})
    if not revived:
        return []
    # The edge from a parent of whose end nobody was told yet: to follow that up would count it a second time.
    if former := [(edge.parent, job.id) for job in revived for edge in job.beginnings.parents]:
        tx.run("cut", edges=rows.document(former))
    if outlook.edges:  # first, because a parent that comes back looks whether it has any
        tx.run("link", edges=rows.document(outlook.edges))
    pending = _pending(tx, revived, outlook)
    decided: list[tuple[Settlement, str | None]] = []
    for job in revived:
        settlement = lifecycle.replay(job, reason, pending.get(job.id, 0))
        assert settlement is not None
        decided.append((settlement, rewrite(job) if rewrite and job.id in asked else None))
    found = [
        row
        for piece in chunks(decided, lambda one: len(one[1] or ""))
        for row in tx.run("replay", settlements=rows.replays(piece))
    ]
    _rejoin(tx, revived, {job_id for job_id, what in taken_back if what == TELL})
    leave(tx, FINISH, [job.id for job in revived if has_begun(job) and not pending.get(job.id)])
    return found


def _take_back(tx: Runner, ids: Collection[UUID]) -> list[Row]:
    """Take back what is left to be followed up about jobs that may come back, and return it, by their ids.

    Before anybody else is looked at, for it may be followed up at this very moment. Nobody is to be told of the end of
    a job that lives, and parents that are looked at now are not to be counted a second time.
    """
    return tx.run("drop_follow_ups", ids=rows.ids(ids)) if ids else []


def _leave_again(tx: Runner, taken_back: Sequence[Row], revived: Collection[UUID]) -> None:
    """Leave what was taken back of those that do not come back after all."""
    for follow_up in (LINK, TELL):
        leave(tx, follow_up, [job_id for job_id, what in taken_back if what == follow_up and job_id not in revived])


def _family(tx: Runner, dead: Sequence[Job]) -> dict[UUID, Job]:
    """Return *dead* and whoever has to come back with them, all locked, by their ids."""
    family = {job.id: job for job in dead}
    new = list(dead)
    above: set[UUID] = set()  # workflows that come back for the sake of a member: their other members need not
    while new:
        workflows = _workflows_of(tx, new)
        below = [job for job in new if job.id not in above]
        found = [*_members_of(tx, below), *_descendants_of(tx, new), *workflows]
        above |= {job.id for job in workflows}
        new = [job for job in found if job.id not in family]
        family |= {job.id: job for job in new}
    return family


def _members_of(tx: Runner, jobs: Iterable[Job]) -> list[Job]:
    return _unsuccessful(tx, {job.id for job in jobs if has_begun(job)})


def _descendants_of(tx: Runner, jobs: Sequence[Job]) -> list[Job]:
    """Return those that were cancelled of what comes after *jobs* in their workflows."""
    workflows = {job.workflow for job in jobs if job.workflow is not None}
    found = tx.run("lock_cancelled_members", workflows=rows.ids(workflows)) if workflows else []
    ancestors = {job.id for job in jobs}
    descendants: list[Job] = []
    for job in map(to_job, found):  # in the order of ids, so parents come first
        if any(edge.parent in ancestors for edge in job.beginnings.parents):
            ancestors.add(job.id)
            descendants.append(job)
    return descendants


def _workflows_of(tx: Runner, jobs: Iterable[Job]) -> list[Job]:
    """Return the workflows of *jobs* that have ended; those that live go on living, for they are locked."""
    ids = {job.workflow for job in jobs if job.workflow is not None}
    alive = {row[1] for row in tx.run("lock_live", ids=rows.ids(ids))} if ids else set()
    return [to_job(row) for row in tx.run("lock_done", ids=rows.ids(ids - alive))] if ids - alive else []


def _unsuccessful(tx: Runner, workflows: Collection[UUID]) -> list[Job]:
    found = tx.run("lock_unsuccessful_members", workflows=rows.ids(workflows)) if workflows else []
    return [to_job(row) for row in found]


def _free_to_live(tx: Runner, family: dict[UUID, Job]) -> list[Job]:
    """Return those of *family* for which there is room.

    An id or a key that an unfinished job has by now stays with that job; the dead one stays dead. The same goes for two
    dead jobs with one key: the first lives. A workflow that has undone what it did is not brought back.
    """
    alive = {row[1] for row in tx.run("lock_live", ids=rows.ids(family))}
    taken = {key for key, _ in tx.run("holders", keys=rows.document({job.key for job in family.values() if job.key}))}
    free: list[Job] = []
    for _, job in sorted(family.items()):
        if job.id in alive or job.key in taken or lifecycle.replay(job) is None or is_undone(tx, job):
            continue
        free.append(job)
        taken |= {job.key} - {None}
    return free


def _choose(tx: Runner, free: Sequence[Job]) -> tuple[list[Job], Outlook]:
    """Return those of *free* that may live, and what they wait for: whose parents and workflow let them.

    A workflow that undoes what was done, or has, lets no member live but those that undo.
    """
    chosen = list(free)
    undone, undoing = _undone(tx, chosen)
    while True:
        ids = {job.id for job in chosen}
        outlook, _ = look_at(tx, {job.id: job.beginnings.parents for job in chosen if job.links}, together=ids)
        buried = ({job.id for job in _workflows_of(tx, chosen)} - ids) | undone
        left = [
            job for job in chosen if job.id in undoing or (job.id not in outlook.broken and job.workflow not in buried)
        ]
        if len(left) == len(chosen):
            return chosen, outlook
        chosen = left


def _undone(tx: Runner, jobs: Iterable[Job]) -> tuple[set[UUID], set[UUID]]:
    """Return the workflows of *jobs*, alive or not, that undo what was done, or have, and the jobs that do so."""
    ids = {job.workflow for job in jobs if job.workflow is not None}
    workflows = [job for job in map(to_job, tx.run("get", ids=rows.ids(ids))) if is_undone(tx, job)] if ids else []
    plans = [plan for job in workflows if (plan := plan_of(job)) is not None]
    return {job.id for job in workflows}, {undo.job.id for plan in plans for undo in plan.undo}


def _pending(tx: Runner, revived: Sequence[Job], outlook: Outlook) -> dict[UUID, int]:
    """Return for how many parents or members each has to wait."""
    workflows = [job.id for job in revived if has_begun(job)]
    members: Counter[UUID | None] = Counter(job.workflow for job in revived)
    if workflows:
        members.update(workflow for workflow, _, _ in tx.run("unfinished_members", workflows=rows.ids(workflows)))
    return {**outlook.waiting, **{workflow: members[workflow] for workflow in workflows}}


def _rejoin(tx: Runner, revived: Sequence[Job], untold: Collection[UUID]) -> None:
    """Let workflows that live know of members that live again, except where they were *untold* that those had ended."""
    ids = {job.id for job in revived}
    joined = Counter(
        job.workflow for job in revived if job.workflow is not None and job.workflow not in ids and job.id not in untold
    )
    if joined:
        tx.run("count_down", counts=rows.counts({workflow: -count for workflow, count in joined.items()}))
