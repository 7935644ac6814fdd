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
from mainspring.store.database import DUE, RELEASE, WISH, Database, Row, Runner
from mainspring.store.follow import follow_to_the_end
from mainspring.store.members import lock_running, unfinished
from mainspring.store.revive import revive
from mainspring.store.rows import to_job
from mainspring.store.settle import apply
from mainspring.store.tell import FINISH, leave

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
        found = [(to_job(tuple(row)), now) for now, *row in tx.run("lock_live", ids=rows.ids(ids))]
        answers += [decide(job, now) for job, now in found]
        # What is said to a workflow is said to its members. Those of one that is to be cancelled know already; what is
        # left of it may be undoing what they did.
        workflows = [job.id for job, _ in found if has_begun(job) and job.wish is not Wish.CANCEL]
        ids = unfinished(tx, workflows) if workflows else []
        begun += workflows
    wishes = [answer for answer in answers if isinstance(answer, Asked)]
    if wishes:
        tx.run("ask", wishes=rows.wishes(wishes))
    _, topics = apply(tx, [answer for answer in answers if isinstance(answer, Settlement)])
    # Members may all have ended while their workflow was held, or have now.
    topics |= leave(tx, FINISH, begun)
    return topics | {WISH} if wishes else topics


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
