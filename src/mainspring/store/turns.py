"""Turns: give jobs with a fair key theirs, and note how far turns have got. `model.fairness` says what that means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from mainspring.errors import StoreError
from mainspring.model.fairness import FIRST, Line, costs, turns
from mainspring.model.job import Job, NewJob
from mainspring.store import rows
from mainspring.store.database import Database, Runner

Standing = Sequence[tuple[UUID, Line, int]]
"""Jobs in the order in which they join their lines, each with its line and its weight."""


def take(tx: Runner, jobs: Iterable[NewJob]) -> dict[UUID, int]:
    """Return the turns of those of *jobs* that are to be ready at once and have a fair key.

    Their lines are locked from here to the end of the transaction. A try whose reply was lost pays twice.
    """
    return _take(tx, [(job.id, job.line, job.weight) for job in jobs if job.line and _is_due(job)])


def _is_due(job: NewJob) -> bool:
    return not (job.delay or job.run_at or job.parents)


def line_up(db: Database, ids: Collection[UUID], ahead: timedelta) -> None:
    """Make those of the jobs with these *ids* ready that are due, each in its line."""
    if ids:
        db.transact(lambda tx: _line_up(tx, ids, ahead))


def _line_up(tx: Runner, ids: Collection[UUID], ahead: timedelta) -> None:
    found = tx.run("lock_turnless", ids=rows.ids(ids), ahead=ahead)
    standing = [(job_id, Line(*line), weight) for job_id, *line, weight in found]
    # Somebody who joins a line himself, and is slow to commit, must hold up nobody but the line.
    lines = rows.lines(costs((line, weight) for _, line, weight in standing))
    busy = {Line(*line) for line in tx.run("lock_lines", lines=lines)} if standing else set()
    given = _take(tx, [one for one in standing if one[1] not in busy])
    if given:
        tx.run("line_up", turns=rows.turns(given))


def _take(tx: Runner, standing: Standing) -> dict[UUID, int]:
    if not standing:
        return {}
    total = costs((line, weight) for _, line, weight in standing)
    moved = {Line(*line): following for *line, following in tx.run("take_turns", lines=rows.lines(total), first=FIRST)}
    return turns(standing, {line: moved[line] - cost for line, cost in total.items()})


def give_back(tx: Runner, left: Iterable[tuple[Line, int] | None]) -> None:
    """Move lines back by what those have paid who left them before it was their turn; None is for one who left none."""
    paid: Counter[Line] = Counter()
    for line, cost in filter(None, left):
        paid[line] += cost
    if paid:
        tx.run("give_turns_back", lines=rows.lines(paid))


def reach(db: Database, started: Iterable[Job]) -> None:
    """See `protocol.Claims.reach`."""
    reached: dict[tuple[str, int, str], int] = {}
    for job in started:
        if job.turn is not None:
            line = job.queue, job.priority, job.task
            reached[line] = max(job.turn, reached.get(line, job.turn))
    if reached:
        with suppress(StoreError):  # the next one says as much; and the jobs that are about to start must not be lost
            db.run("reach", reached=rows.document((*line, turn) for line, turn in sorted(reached.items())))
