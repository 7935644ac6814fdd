"""Follow up: what the ends of jobs lead to, one step after the other, each in a transaction of its own.

A crash in between loses nothing: what is left to do is a row, and the sweep `release` comes by.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from uuid import UUID

import msgspec

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model import lifecycle
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.lifecycle import Settlement
from mainspring.model.links import Edge, IfFailed
from mainspring.model.workflow import Plan, Tally, plan_of
from mainspring.store import rows
from mainspring.store.database import Database, Runner
from mainspring.store.insert import insert, known, topics_of
from mainspring.store.parents import link, look_at
from mainspring.store.rows import to_job
from mainspring.store.settle import apply
from mainspring.store.tell import FINISH, LINK, TELL, Ended, leave, set_free, tell

BATCH = 500
_ROUNDS = 1_000
_SHOWN = 3


def follow(db: Database) -> int:
    """Follow up some of what is left, and return how many jobs that was about.

    One about which nothing can be done must not keep the others from going on: it is told of when those are done.
    """
    total = 0
    problems: list[StoreError] = []
    for (what,) in db.read("follow_ups"):
        jobs = sorted(job_id for (job_id,) in db.read("left_to_follow_up", what=what, limit=BATCH))
        total += _follow_up(db, what, jobs, problems)
    if problems:
        raise problems[0]
    return total


def follow_to_the_end(db: Database) -> None:
    """Follow up until nothing is left that can be: for callers who want to see what has come of what they did.

    That is done already, so what goes wrong here is for others to hear.
    """
    with suppress(StoreError):
        for _ in range(_ROUNDS):
            if not follow(db):
                return


def _follow_up(db: Database, what: str, jobs: Sequence[UUID], problems: list[StoreError]) -> int:
    try:
        count, topics = db.transact(partial(_WORK[what], jobs=jobs))
    except StoreUnavailable:
        raise
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one, it is not wrong with all
        if len(jobs) > 1:
            return sum(_follow_up(db, what, [job_id], problems) for job_id in jobs)
        problems.append(StoreError(f"what follows from the end of job {jobs[0]} can't be done: {error}"))
        return 0
    db.wake(topics)
    return count


def _take(tx: Runner, what: str, jobs: Collection[UUID]) -> set[UUID]:
    """Take what is left to be done about *jobs*; return those that nobody else has taken meanwhile."""
    return {job_id for (job_id,) in tx.run("take_follow_ups", ids=rows.ids(jobs), what=what)} if jobs else set()


def _link(tx: Runner, jobs: Sequence[UUID]) -> tuple[int, set[str]]:
    """Look at the parents of *jobs* that were stored in a transaction of their caller's."""
    taken = _take(tx, LINK, jobs)  # before parents are locked, as whoever replays a child does
    found = [to_job(row) for row in tx.run("get", ids=rows.ids(taken))] if taken else []
    children = {job.id: job.beginnings.parents for job in found if not job.state.final}
    outlook, _ = look_at(tx, children)
    ended = {child: len(edges) - outlook.waiting[child] for child, edges in children.items()}
    left: dict[UUID, int] = dict(tx.run("count_down", counts=rows.counts(ended))) if ended else {}
    free = [child for child, pending in left.items() if not pending and child not in outlook.broken]
    _, topics = apply(tx, [*link(tx, outlook), *set_free(tx, free)])
    return len(taken), topics


def _tell(tx: Runner, jobs: Sequence[UUID]) -> tuple[int, set[str]]:
    """Tell those that wait for the ends of *jobs*."""
    # Before it is taken, because whoever replays a job has that locked first, and he is not waited for.
    found = {row[0]: Ended(*row) for row in tx.run("lock_endings", ids=rows.ids(jobs))}
    gone = set(jobs) - found.keys()
    gone -= known(tx, gone) if gone else set()
    taken = _take(tx, TELL, found.keys() | gone)
    told = tell(tx, [ended for job_id, ended in found.items() if job_id in taken], {}, awaited=True)
    _, topics = apply(tx, told.settlements)
    return len(taken), topics | leave(tx, FINISH, told.complete)


def _finish(tx: Runner, jobs: Sequence[UUID]) -> tuple[int, set[str]]:
    """End workflows whose members have all ended, or have undone first what those did that should not have."""
    # Schedules before jobs, as everywhere; which one has made a job does not change. Then the workflow, and what is
    # left to be done about it last, as whoever ends its last member does.
    schedules = [job.schedule for job in map(to_job, tx.run("get", ids=rows.ids(jobs))) if job.schedule]
    if schedules:
        tx.run("lock_followed", ended=rows.ended(dict.fromkeys(schedules, False)))
    found = [to_job(tuple(row)) for _, *row in tx.run("lock_live", ids=rows.ids(jobs))]
    taken = _take(tx, FINISH, jobs)
    topics: set[str] = set()
    decided: list[Settlement] = []
    for job in found:
        if job.id not in taken or job.pending:
            continue
        settlement = lifecycle.finish(job, _tally(tx, job.id))
        undoing = _undo(tx, job) if settlement is not None and settlement.state is not JobState.SUCCEEDED else []
        if undoing:
            topics |= _begin(tx, job, undoing)
        elif settlement is not None:
            decided.append(settlement)
    _, wakes = apply(tx, decided)
    return len(taken), topics | wakes


_WORK = {LINK: _link, TELL: _tell, FINISH: _finish}


def _tally(tx: Runner, workflow: UUID) -> Tally:
    counts: dict[JobState, int] = dict(tx.run("tally", workflow=workflow))
    if not counts.keys() & {JobState.FAILED, JobState.EXPIRED}:
        return Tally(counts=counts)
    failed = [to_job(row) for row in tx.run("failed_members", workflow=workflow, limit=_SHOWN)]
    return Tally(counts=counts, failed=failed)


def _undo(tx: Runner, job: Job) -> list[NewJob]:
    """Return the jobs that undo what members of a workflow have done, last done first; none if they were made before.

    Each comes after the one before it, whatever becomes of that.
    """
    plan = plan_of(job) or Plan()
    if not plan.undo or known(tx, (undo.job.id for undo in plan.undo)):
        return []
    members = [to_job(row) for row in tx.run("get", ids=rows.ids(undo.member for undo in plan.undo))]
    done = {job.id: job.finished_at for job in members if job.state is JobState.SUCCEEDED}
    undone = [undo for undo in plan.undo if undo.member in done]
    undone.sort(key=lambda undo: (done[undo.member], undo.member), reverse=True)
    ids = sorted(undo.job.id for undo in undone)  # which of them has which does not matter, but that they grow
    return [
        msgspec.structs.replace(
            undo.job if job.team is None else undo.job.given_to(job.team),
            id=job_id,
            parents=() if before is None else (Edge(before, IfFailed.RUN),),
            awaited=job_id != ids[-1],
        )
        for undo, job_id, before in zip(undone, ids, [None, *ids], strict=False)
    ]


def _begin(tx: Runner, job: Job, undoing: Sequence[NewJob]) -> set[str]:
    """Store the jobs *undoing* as members of the workflow *job*; return the topics to wake."""
    insert(tx, undoing, waiting={one.id: 1 for one in undoing if one.parents})
    edges = [(edge.parent, one.id, edge.if_failed) for one in undoing for edge in one.parents]
    if edges:
        tx.run("link", edges=rows.document(edges))
    tx.run("count_down", counts=rows.counts({job.id: -len(undoing)}))
    return set(topics_of(undoing[0]))
