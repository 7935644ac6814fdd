"""Control: what a person does to jobs: cancel, pause, resume, replay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from uuid import UUID

from mainspring.model import lifecycle
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.workflow import has_begun
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import DUE, RELEASE, WISH, Database, Row, Runner
from mainspring.store.follow import follow_to_the_end
from mainspring.store.members import unfinished
from mainspring.store.rows import to_job
from mainspring.store.settle import apply
from mainspring.store.tell import FINISH, leave

Decide = Callable[[Job, datetime], Settlement | Asked | None]
Rewrite = Callable[[Job], str]
"""Returns the payload that a job has from now on."""


def cancel(db: Database, ids: Collection[UUID], reason: str | None) -> dict[UUID, JobState]:
    """See `protocol.Controls.cancel`."""
    return _control(db, ids, lambda job, _: lifecycle.cancel(job, reason))


def pause(db: Database, ids: Collection[UUID], reason: str | None) -> dict[UUID, JobState]:
    """See `protocol.Controls.pause`."""
    return _control(db, ids, lambda job, _: lifecycle.pause(job, reason))


def resume(db: Database, ids: Collection[UUID]) -> dict[UUID, JobState]:
    """See `protocol.Controls.resume`."""
    return _control(db, ids, lifecycle.resume)


def replay(db: Database, ids: Collection[UUID], reason: str | None) -> dict[UUID, JobState]:
    """See `protocol.Controls.replay`."""
    fences: dict[UUID, int] = {}
    topics = db.transact(lambda tx: _replay(tx, ids, reason, fences))
    db.wake(topics)
    return _states(db, ids)


def _control(db: Database, ids: Collection[UUID], decide: Decide) -> dict[UUID, JobState]:
    topics = db.transact(lambda tx: decide_and_write(tx, ids, decide))
    db.wake(topics)
    if RELEASE in topics:
        follow_to_the_end(db)
    return _states(db, ids)


def decide_and_write(tx: Runner, ids: Collection[UUID], decide: Decide) -> set[str]:
    """Write in the transaction *tx* what *decide* says of each job that is alive; return the topics to wake."""
    answers: list[Settlement | Asked | None] = []
    begun: list[UUID] = []
    while ids:
        found = [(to_job(tuple(row)), now) for now, *row in tx.run("lock_live", ids=rows.ids(ids))]
        answers += [decide(job, now) for job, now in found]
        # What is said to a workflow is said to its members.
        workflows = [job.id for job, _ in found if has_begun(job)]
        ids = unfinished(tx, workflows) if workflows else []
        begun += workflows
    wishes = [answer for answer in answers if isinstance(answer, Asked)]
    if wishes:
        tx.run("ask", wishes=rows.wishes(wishes))
    _, topics = apply(tx, [answer for answer in answers if isinstance(answer, Settlement)])
    # Members may all have ended while their workflow was held, or have now.
    topics |= leave(tx, FINISH, begun)
    return topics | {WISH} if wishes else topics


def _replay(tx: Runner, ids: Collection[UUID], reason: str | None, fences: dict[UUID, int]) -> set[str]:
    dead = [to_job(row) for row in tx.run("lock_done", ids=rows.ids(ids))]
    # *fences* remembers what the first try saw: after a lost reply a job that has run since was replayed already.
    dead = [job for job in dead if fences.setdefault(job.id, job.fence) == job.fence]
    return topics_of(dead, revive(tx, dead, reason))


def revive(tx: Runner, dead: Sequence[Job], reason: str | None, rewrite: Rewrite | None = None) -> list[Row]:
    """Replay those of the locked jobs *dead* that can be, in the transaction *tx*; return their ids and queues."""
    # An id or a key that an unfinished job has by now stays with that job; the dead one stays dead. The same goes for
    # two dead jobs with one key: the first lives.
    alive = {row[1] for row in tx.run("lock_live", ids=rows.ids(job.id for job in dead))}
    taken = {key for key, _ in tx.run("holders", keys=rows.document({job.key for job in dead if job.key}))}
    decided: list[tuple[Settlement, str | None]] = []
    for job in dead:
        settlement = lifecycle.replay(job, reason)
        if settlement is not None and job.id not in alive and job.key not in taken:
            decided.append((settlement, rewrite(job) if rewrite else None))
            taken |= {job.key} - {None}
    pieces = chunks(decided, lambda one: len(one[1] or "")) if decided else []
    return [row for piece in pieces for row in tx.run("replay", settlements=rows.replays(piece))]


def topics_of(dead: Sequence[Job], revived: Sequence[Row]) -> set[str]:
    """Return who should hear that some of *dead* live again, by their ids and queues."""
    topics = {queue for _, queue in revived}
    return topics | {DUE} if any(job.fair for job in dead) else topics


def _states(db: Database, ids: Collection[UUID]) -> dict[UUID, JobState]:
    return {row[0]: row[5] for row in db.read("get", ids=rows.ids(ids))}
