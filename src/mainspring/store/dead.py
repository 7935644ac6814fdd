"""Dead letters: which there are, and what a person does about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

import msgspec
from msgspec.structs import asdict

from mainspring.clock import MICROSECOND
from mainspring.model import lifecycle
from mainspring.model.dead import Count, Group, Letter, Meant
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.store import rows
from mainspring.store.control import topics_of
from mainspring.store.database import Database, Row, Runner
from mainspring.store.protocol import LetterFilter
from mainspring.store.revive import Rewrite, revive
from mainspring.store.rows import to_job

_failure = msgspec.json.Decoder(Failure)

Act = Callable[[Runner, Sequence[Job]], list[Row]]
"""Acts on locked jobs, and returns a row for each on which it did, its id first."""


def groups(db: Database, match: LetterFilter, limit: int) -> list[Group]:
    """See `protocol.DeadLetters.dead_groups`."""
    given = {name: value for name, value in asdict(match).items() if name != "group"}
    found = db.read("dead_groups", limit=limit, **given)
    return [_group(row) for row in found]


def fingerprints(db: Database, prefix: str, limit: int, team: str | None) -> list[str]:
    """See `protocol.DeadLetters.dead_fingerprints`."""
    return [row[0] for row in db.read("dead_fingerprints", prefix=prefix, team=team, limit=limit)]


def count(db: Database, match: LetterFilter) -> int:
    """See `protocol.DeadLetters.dead_count`."""
    return meant(db, match).letters


def meant(db: Database, match: LetterFilter) -> Meant:
    """See `protocol.DeadLetters.dead_meant`."""
    ((letters, last_at),) = db.read("dead_count", **asdict(match))
    return Meant(letters, None if last_at is None else last_at + MICROSECOND)


def count_among(db: Database, most: int, team: str | None) -> Count:
    """See `protocol.DeadLetters.dead_among`."""
    ((letters, looked),) = db.read("dead_among", most=most, team=team)
    return Count(letters, more=looked >= most)


def letters(db: Database, match: LetterFilter, after: UUID | None, limit: int) -> list[Letter]:
    """See `protocol.DeadLetters.dead_letters`."""
    found = db.read("dead_letters", after=after, limit=limit, **asdict(match))
    return [Letter(*row) for row in found]


def page(db: Database, match: LetterFilter, before: UUID | None, limit: int) -> list[Job]:
    """See `protocol.DeadLetters.dead_page`."""
    found = db.read("dead_page", before=before, limit=limit, **asdict(match))
    return [to_job(row) for row in found]


def replay(db: Database, given: Collection[Letter], reason: str | None, rewrite: Rewrite | None) -> set[UUID]:
    """See `protocol.DeadLetters.replay_letters`."""
    topics: set[str] = set()
    died = dict(given)

    def act(tx: Runner, dead: Sequence[Job]) -> list[Row]:
        revived = revive(tx, dead, reason, rewrite)
        topics.update(topics_of(revived))
        return [row for row in revived if row[0] in died]

    done = _on_the_dead(db, given, act)
    db.wake(topics)
    return done


def discard(db: Database, given: Collection[Letter], reason: str | None) -> set[UUID]:
    """See `protocol.DeadLetters.discard_letters`."""

    def act(tx: Runner, dead: Sequence[Job]) -> list[Row]:
        decided = [lifecycle.discard(job, reason) for job in dead]
        return tx.run("discard", settlements=rows.discards(one for one in decided if one is not None))

    return _on_the_dead(db, given, act)


def _on_the_dead(db: Database, given: Collection[Letter], act: Act) -> set[UUID]:
    """Act in one transaction on those of the letters *given* that are dead still; return the ids it acted on."""
    died = dict(given)
    tried: set[UUID] = set()

    def work(tx: Runner) -> set[UUID]:
        found = [to_job(row) for row in tx.run("lock_done", ids=rows.ids(died))]
        dead = [job for job in found if job.state is JobState.FAILED and job.finished_at == died[job.id]]
        # After a lost reply, those that are no longer dead are the ones on which the try before this has acted.
        before = tried - {job.id for job in dead} if tx.in_doubt else set()
        done = {row[0] for row in act(tx, dead)}
        tried.update(done)
        return done | before

    return db.transact(work) if died else set()


def _group(row: Row) -> Group:
    fingerprint, task, error, letters, first_at, last_at, sample = row
    failure = _failure.decode(error)
    return Group(
        fingerprint=fingerprint,
        task=task,
        type=failure.type,
        message=failure.message,
        count=letters,
        first_seen=first_at,
        last_seen=last_at,
        sample=sample,
    )
