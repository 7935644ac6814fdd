"""Control: what a person does to jobs: cancel, pause, resume, replay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from uuid import UUID

from mainspring.model import lifecycle
from mainspring.model.job import Job, JobState, Wish
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.workflow import has_begun
from mainspring.store import rows
from mainspring.store.chunks import batched
from mainspring.store.database import DUE, RELEASE, WISH, Database, Row, Runner
from mainspring.store.follow import follow_to_the_end
from mainspring.store.members import is_undone, lock_running, unfinished
from mainspring.store.revive import revive
from mainspring.store.rows import to_job
from mainspring.store.settle import apply
from mainspring.store.tell import FINISH, leave

_PIECE = 1_000

Decide = Callable[[Job, datetime], Settlement | Asked | None]


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
    ends: dict[UUID, datetime | None] = {}
    topics = db.transact(lambda tx: _replay(tx, ids, reason, ends))
    db.wake(topics)
    follow_to_the_end(db)
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
    lock_running(tx, ids)
    while ids:
        workflows: list[UUID] = []
        # By and by, because rows are large: a workflow may have a hundred thousand members.
        for piece in batched(sorted(ids), _PIECE):
            for now, *row in tx.run("lock_live", ids=rows.ids(piece)):
                job = to_job(tuple(row))
                answers.append(decide(job, now))
                if _concerns_members(tx, job, answers[-1]):
                    workflows.append(job.id)
        ids = unfinished(tx, workflows) if workflows else []
        begun += workflows
    wishes = [answer for answer in answers if isinstance(answer, Asked)]
    if wishes:
        tx.run("ask", wishes=rows.wishes(wishes))
    _, topics = apply(tx, [answer for answer in answers if isinstance(answer, Settlement)])
    # Members may all have ended while their workflow was held, or have now.
    topics |= leave(tx, FINISH, begun)
    return topics | {WISH} if wishes else topics


def _concerns_members(tx: Runner, job: Job, answer: Settlement | Asked | None) -> bool:
    """Return whether what is said to *job* is said to its members: unless they know, or undo what was done."""
    if not has_begun(job) or job.wish is Wish.CANCEL:
        return False
    return not (isinstance(answer, Asked) and answer.wish is Wish.CANCEL and is_undone(tx, job))


def _replay(tx: Runner, ids: Collection[UUID], reason: str | None, ends: dict[UUID, datetime | None]) -> set[str]:
    dead = [to_job(row) for row in tx.run("lock_done", ids=rows.ids(ids))]
    # *ends* remembers what the first try saw: after a lost reply a job that has ended since was replayed already.
    dead = [job for job in dead if ends.setdefault(job.id, job.finished_at) == job.finished_at]
    return topics_of(revive(tx, dead, reason))


def topics_of(revived: Sequence[Row]) -> set[str]:
    """Return who should hear that jobs live again, by their ids and queues."""
    return {DUE, RELEASE, *(queue for _, queue in revived)} if revived else set()


def _states(db: Database, ids: Collection[UUID]) -> dict[UUID, JobState]:
    return {row[0]: row[5] for row in db.read("get", ids=rows.ids(ids))}
