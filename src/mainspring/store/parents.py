"""Parents: what a job waits for that comes after others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from mainspring.errors import JobNotFound
from mainspring.model import lifecycle
from mainspring.model.job import JobState, NewJob
from mainspring.model.lifecycle import Settlement
from mainspring.model.links import Edge, IfFailed
from mainspring.store import rows
from mainspring.store.database import Runner
from mainspring.store.insert import known
from mainspring.store.rows import to_job

Broken = Mapping[UUID, tuple[UUID, JobState | None]]
"""By the ids of children that are not to run, a parent that has ended badly, and how; None if it is not there."""


class Outlook(NamedTuple):
    """For how many parents children have to wait, by which edges those find them, and which are not to run at all."""

    waiting: Mapping[UUID, int]
    edges: Sequence[tuple[UUID, UUID, IfFailed]]
    broken: Broken

    def of(self, children: Collection[UUID]) -> Outlook:
        """Return that of some of them."""
        return Outlook(
            {child: count for child, count in self.waiting.items() if child in children},
            [edge for edge in self.edges if edge[1] in children],
            {child: why for child, why in self.broken.items() if child in children},
        )


NO_PARENTS = Outlook({}, (), {})


def marked(jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """Return *jobs*, which are stored together, with those marked that are parents of others."""
    parents = {edge.parent for job in jobs for edge in job.parents}
    if not parents:
        return jobs
    return [replace(job, awaited=True) if job.id in parents else job for job in jobs]


def look(tx: Runner, jobs: Sequence[NewJob], together: Collection[UUID]) -> Outlook:
    """Look at the parents of *jobs*, which are about to be stored; those stay as they are until we have committed.

    A parent may be stored *together* with its child. One that is not known is an error.
    """
    children = {job.id: job.parents for job in jobs if job.parents}
    if not children:
        return NO_PARENTS
    outlook, unknown = look_at(tx, children, together)
    if unknown:
        raise JobNotFound(min(unknown))
    return outlook


def look_later(tx: Runner, jobs: Sequence[NewJob], together: Collection[UUID]) -> Outlook:
    """Have *jobs* wait for all their parents until somebody has looked, because their caller may lock none for long."""
    children = {job.id: job.parents for job in jobs if job.parents}
    if not children:
        return NO_PARENTS
    wanted = {edge.parent for edges in children.values() for edge in edges}
    unknown = wanted.difference(together)
    unknown -= known(tx, unknown)
    if unknown:
        raise JobNotFound(min(unknown))
    return Outlook({child: len(edges) for child, edges in children.items()}, (), {})


def look_at(
    tx: Runner, children: Mapping[UUID, Sequence[Edge]], together: Collection[UUID] = ()
) -> tuple[Outlook, set[UUID]]:
    """Look at the parents of *children*; return what comes of it, and the parents that are not known.

    For a child of one of those, the outlook is broken.
    """
    wanted = {edge.parent for edges in children.values() for edge in edges}.difference(together)
    alive, ended = _states(tx, wanted)
    waiting = dict.fromkeys(children, 0)
    found: list[tuple[UUID, UUID, IfFailed]] = []
    broken: dict[UUID, tuple[UUID, JobState | None]] = {}
    for child, edges in children.items():
        for edge in edges:
            state = ended.get(edge.parent)
            waits = edge.parent in alive or edge.parent in together
            if not waits:
                may = lifecycle.may_follow(edge.if_failed, state)
                waits = may is None
                if may is False:
                    broken.setdefault(child, (edge.parent, state))
            if waits:
                waiting[child] += 1
                found.append((edge.parent, child, edge.if_failed))
    # One that will not run is stored as waiting, and ended as any other that waits.
    waiting |= {child: max(1, waiting[child]) for child in broken}
    return Outlook(waiting, found, broken), wanted - alive - ended.keys()


def link(tx: Runner, outlook: Outlook) -> list[Settlement]:
    """Let parents find the children that are stored now; return how those end that are not to run."""
    if outlook.edges:
        tx.run("link", edges=rows.document(outlook.edges))
    return disown(tx, outlook.broken) if outlook.broken else []


def disown(tx: Runner, broken: Broken) -> list[Settlement]:
    """Return how the children *broken* end that wait still."""
    found = [to_job(tuple(row)) for _, *row in tx.run("lock_live", ids=rows.ids(broken))]
    return [lifecycle.disown(job, *broken[job.id]) for job in found if job.state in (JobState.BLOCKED, JobState.PAUSED)]


def _states(tx: Runner, ids: Iterable[UUID]) -> tuple[set[UUID], dict[UUID, JobState]]:
    """Return which jobs are alive, and locked now, and how others have ended."""
    left = set(ids)
    alive: set[UUID] = set()
    ended: dict[UUID, JobState] = {}
    for _ in range(2):  # one that was replayed between our two looks is alive at the second
        if left:
            alive |= {job_id for (job_id,) in tx.run("lock_parents", ids=rows.ids(sorted(left)))}
            ended |= {row[0]: row[1] for row in tx.run("endings_of", ids=rows.ids(left - alive))}
            left -= alive | ended.keys()
    return alive, ended
