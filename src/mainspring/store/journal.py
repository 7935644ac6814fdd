"""Journal: keep what attempts say while they run, and give it back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from mainspring.model.journal import FoundLine, LogEntry, LogFilter, LogLine, Progress
from mainspring.store import rows
from mainspring.store.database import Database, Runner
from mainspring.store.inspect import now
from mainspring.store.protocol import Journals, LogSearch

_NEWEST = timedelta(minutes=1)
_FURTHER = 4
"""So many times as much is looked through next, if too little was found: what is asked for is mostly new."""

_FURTHEST = timedelta(days=36_525)


def record(db: Database, lines: Sequence[LogLine], progress: Sequence[Progress]) -> set[UUID]:
    """See `protocol.Journals.record`."""
    if not lines and not progress:
        return set()
    last = {(report.job_id, report.fence): report for report in progress}
    return db.transact(lambda tx: record_within(tx, lines, last.values()))


def record_within(tx: Runner, lines: Sequence[LogLine], progress: Collection[Progress]) -> set[UUID]:
    """Write both in the transaction *tx*; return the ids of the jobs whose attempt still holds them."""
    if not lines and not progress:
        return set()
    told = {(line.job_id, line.fence) for line in lines} | {(report.job_id, report.fence) for report in progress}
    held = {job_id for (job_id,) in tx.run("lock_running", attempts=rows.document(told))}
    if held and lines:
        tx.run("record_lines", lines=rows.log_lines(lines))
    if held and progress:
        tx.run("record_progress", progress=rows.progress(progress))
    return held


def logs(db: Database, job_id: UUID, after: tuple[int, int], limit: int, match: LogFilter) -> list[LogEntry]:
    """See `protocol.Journals.logs`."""
    fence, number = after
    return [
        LogEntry(*row)
        for row in db.read("logs", job_id=job_id, fence=fence, number=number, limit=limit, **_wanted(match))
    ]


def all_logs(store: Journals, job_id: UUID, match: LogFilter | None = None) -> list[LogEntry]:
    """Return every line of a job, oldest first, or of those the ones that *match*."""
    lines: list[LogEntry] = []
    while page := store.logs(job_id, after=(lines[-1].fence, lines[-1].number) if lines else (0, 0), match=match):
        lines += page
    return lines


def find_logs(db: Database, search: LogSearch, limit: int) -> list[FoundLine]:
    """See `protocol.Journals.find_logs`."""
    found: list[FoundLine] = []
    at, length = now(db), _NEWEST
    before, end = at + _NEWEST, at - min(search.within, _FURTHEST)  # a little ahead, lest a clock was set back
    while len(found) < limit and before > end:
        since = max(end, at - length)
        given = {"since": since, "before": before, "task": search.task, "team": search.team}
        page = db.read("find_logs", limit=limit - len(found), **given, **_wanted(search.match))
        found += [FoundLine(*row) for row in page]
        before, length = since, length * _FURTHER
    return found


def _wanted(match: LogFilter) -> dict[str, object]:
    return {"contains": match.contains, "left_out": rows.document(match.left_out)}
