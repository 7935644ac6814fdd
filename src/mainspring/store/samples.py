"""Samples: what became of jobs and what waits, kept span by span for whoever looks back.

Workers add what they have settled, and the reaper what has failed by it. How many jobs are ready is looked at once a
minute, by whichever node is the first to write down that it does; and what is older than anybody is shown goes with
that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial

from mainspring.clock import MICROSECOND
from mainspring.model.history import SCALES, History, Sample, scale, span_start
from mainspring.model.job import Job
from mainspring.model.team import DEFAULT_TEAM
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.inspect import now
from mainspring.tally import SECONDS, Counts, Histogram, Place

LOOK = 1_000_000
"""Jobs of a queue to count at most: where more are ready, so many are said to be."""

QUEUES = 1_000
"""Queues to look at: names are free, and nobody draws more."""

_MINUTE = min(one.span for one in SCALES.values())
_SPANS = rows.document(one.span // timedelta(seconds=1) for one in SCALES.values())


def add(db: Database, counts: Mapping[Place, Counts]) -> None:
    """See `protocol.Samples.add_counts`."""
    # In the same order whoever adds, or two that add together could each wait for the other.
    named = sorted(((team or DEFAULT_TEAM, queue), one) for (team, queue), one in counts.items())
    ended = [(*place, *numbers) for place, one in named if any(numbers := (one.succeeded, one.failed, one.retried))]
    waits = [(*place, bound, jobs) for place, one in named for bound, jobs in enumerate(one.waits.counts) if jobs]

    def work(tx: Runner) -> None:
        if tx.in_doubt:
            return  # a try whose reply was lost may have added it, and it is better left out than counted twice
        tx.run("add_counts", spans=_SPANS, counts=rows.document(ended))
        tx.run("add_waits", spans=_SPANS, waits=rows.document(waits))

    if ended or waits:
        db.transact(work)


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
        levels = rows.document(sorted(_levels(db)))
        db.transact(partial(_put, since=since, levels=levels))
    moment = now(db)
    return span_start(moment, _MINUTE) + _MINUTE - moment


def _levels(db: Database) -> list[Row]:
    """Return how many jobs of each team are ready in each queue, and for how long the oldest has been."""
    names = [queue for (queue,) in db.read("ready_queues", team=None, look=1)][:QUEUES]
    return [
        (team, queue, ready, max(0, waited_us))
        for queue in names
        for team, ready, waited_us in db.read("ready_by_team", queue=queue, look=LOOK)
    ]


def _put(tx: Runner, since: datetime, levels: str) -> None:
    tx.run("put_levels", spans=_SPANS, at=since, levels=levels)
    tx.run("put_looks", spans=_SPANS, at=since)
    for one in SCALES.values():
        tx.run("prune_samples", span=_seconds(one.span), age=one.back + one.span)


def history(db: Database, over: str, team: str | None, queue: str | None) -> History:
    """See `protocol.Samples.history`."""
    wanted = scale(over)
    starts = wanted.starts(now(db))
    span, first = _seconds(wanted.span), starts[0]
    looked = {since for (since,) in db.read("looks", span=span, first=first)}
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
