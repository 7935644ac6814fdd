"""Samples: what became of jobs and what waits, kept span by span for whoever looks back.

Workers add what they have settled, and the reaper what has failed by it. How many jobs are ready is looked at once a
minute, by whichever node is the first to write down that it does; and what is older than anybody is shown goes with
that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TypeVar

from mainspring.clock import MICROSECOND
from mainspring.model.history import SCALES, History, Sample, scale, span_start
from mainspring.model.job import Job
from mainspring.model.team import DEFAULT_TEAM
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.inspect import now
from mainspring.tally import SECONDS, Counts, Histogram, Place

T = TypeVar("T")

LOOK = 1_000_000
"""Jobs of a queue to count at most: where more are ready, so many are said to be."""

QUEUES = 1_000
"""Queues to look at one by one, the first by name: names are free, and nobody draws more. Others are seen as one."""

PLACES = 1_000
"""Places to add of themselves at once, the busiest: others come under their team alone."""

PIECE = 200
"""Places to write in one statement, and so at most some 10,000 rows, which takes a tenth of a second."""

PRUNE_BATCH = 10_000

OTHERS = ""
"""In place of a queue, as none can be called: those that nobody has looked at or counted by themselves."""

_MINUTE = min(one.span for one in SCALES.values())
_SPANS = rows.document(one.span // timedelta(seconds=1) for one in SCALES.values())


def add(db: Database, counts: Mapping[Place, Counts]) -> None:
    """See `protocol.Samples.add_counts`."""
    # In the same order whoever adds, or two that add together could each wait for the other.
    named = (((team or DEFAULT_TEAM, queue), one) for (team, queue), one in _folded(counts).items())
    for piece in _pieces(sorted(named, key=itemgetter(0))):
        _add(db, piece)


def _add(db: Database, named: Sequence[tuple[tuple[str, str], Counts]]) -> None:
    ended = [(*place, *numbers) for place, one in named if any(numbers := (one.succeeded, one.failed, one.retried))]
    waits = [(*place, bound, jobs) for place, one in named for bound, jobs in enumerate(one.waits.counts) if jobs]

    def work(tx: Runner) -> None:
        if tx.in_doubt:
            return  # a try whose reply was lost may have added it, and it is better left out than counted twice
        tx.run("add_counts", spans=_SPANS, counts=rows.document(ended))
        tx.run("add_waits", spans=_SPANS, waits=rows.document(waits))

    if ended or waits:
        db.transact(work)


def _folded(counts: Mapping[Place, Counts]) -> Mapping[Place, Counts]:
    """Return *counts* of no more places than are added, with those of the others put together by team."""
    if len(counts) <= PLACES:
        return counts
    busiest = sorted(counts, key=lambda place: counts[place].jobs, reverse=True)
    folded = {place: counts[place] for place in busiest[:PLACES]}
    for team, queue in busiest[PLACES:]:
        folded.setdefault((team, OTHERS), Counts()).merge(counts[team, queue])
    return folded


def _pieces(many: Sequence[T]) -> Iterator[Sequence[T]]:
    return (many[start : start + PIECE] for start in range(0, len(many), PIECE))


def add_failed(tx: Runner, jobs: Iterable[Job]) -> None:
    """Add *jobs* that have failed for good by the transaction *tx*, and so are added once, whatever becomes of that."""
    failed = Counter((job.team or DEFAULT_TEAM, job.queue) for job in jobs)
    if failed:
        ended = [(*place, 0, many, 0) for place, many in sorted(failed.items())]
        tx.run("add_counts", spans=_SPANS, counts=rows.document(ended))


def sample(db: Database) -> timedelta:
    """See `protocol.Sweeps.sample`."""
    for (since,) in db.run("take_look", span=_seconds(_MINUTE)):
        # With nothing locked, for it may take a while; one that dies here has not looked, as far as others can tell.
        levels, last = _levels(db)
        _put(db, since, levels, last)
        _prune(db)
    moment = now(db)
    return span_start(moment, _MINUTE) + _MINUTE - moment


def _levels(db: Database) -> tuple[list[Row], str | None]:
    """Return how many jobs of each team are ready in each queue, and for how long the oldest has been.

    With it comes the last queue that was looked at by itself, if there are others.
    """
    names = [queue for (queue,) in db.read("ready_queues", team=None, look=1)]
    last = names[QUEUES - 1] if len(names) > QUEUES else None
    asked = [("ready_by_team", queue, queue) for queue in names[:QUEUES]]
    if last is not None:
        asked.append(("ready_beyond", last, OTHERS))
    levels = [
        (team, place, ready, max(0, waited_us))
        for query, queue, place in asked
        for team, ready, waited_us in db.read(query, queue=queue, look=LOOK)
    ]
    return levels, last


def _put(db: Database, since: datetime, levels: Sequence[Row], last: str | None) -> None:
    for piece in _pieces(sorted(levels)):
        db.run("put_levels", spans=_SPANS, at=since, levels=rows.document(piece))
    db.run("put_looks", spans=_SPANS, at=since, upto=last)


def _prune(db: Database) -> None:
    """Remove what is older than anybody is shown, bit by bit: where that takes too long, what is done is done."""
    for one in SCALES.values():
        for query in ("prune_waits", "prune_looks", "prune_samples"):
            while db.run(query, span=_seconds(one.span), age=one.back + one.span, limit=PRUNE_BATCH):
                pass


def history(db: Database, over: str, team: str | None, queue: str | None) -> History:
    """See `protocol.Samples.history`."""
    wanted = scale(over)
    starts = wanted.starts(now(db))
    span, first = _seconds(wanted.span), starts[0]
    looked = {since for (since,) in db.read("looks", span=span, first=first, queue=queue)}
    waits: dict[datetime, Histogram] = {}
    for since, bound, jobs in db.read("waits", span=span, first=first, team=team, queue=queue):
        waits.setdefault(since, Histogram(SECONDS)).counts[bound] += jobs
    found = {row[0]: row for row in db.read("samples", span=span, first=first, team=team, queue=queue)}
    samples = [
        _sample(found.get(since, (since, 0, 0, 0, None, None)), waits.get(since), looked=since in looked)
        for since in starts
    ]
    return History(over=over, span=wanted.span, samples=samples)


def _sample(row: Row, waits: Histogram | None, *, looked: bool) -> Sample:
    since, succeeded, failed, retried, ready, oldest_us = row
    return Sample(
        since=since,
        succeeded=succeeded,
        failed=failed,
        retried=retried,
        ready=ready or 0 if looked else None,
        oldest=(oldest_us or 0) * MICROSECOND if looked else None,
        wait_p50=_quantile(waits, 0.5),
        wait_p99=_quantile(waits, 0.99),
    )


def _quantile(waits: Histogram | None, share: float) -> timedelta | None:
    seconds = None if waits is None else waits.quantile(share)
    return None if seconds is None else timedelta(seconds=seconds)


def _seconds(span: timedelta) -> int:
    return span // timedelta(seconds=1)
