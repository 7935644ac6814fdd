"""Retention: rules for how long finished jobs are kept, and what goes by them before its whole day does.

What all rules let go is dropped by the day, see `sweep`. Here is what goes sooner: day by day, page by page in the
order of a key, each page a short transaction, so that a backlog of millions holds up nobody. How far a rule has come is
kept with it, because a day from which much has gone is still as long to walk through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from mainspring.clock import moment
from mainspring.model.retention import (
    DAY,
    Covers,
    Edge,
    Kept,
    Prunable,
    RetentionRule,
    day_of,
    exceptions,
    nth_newest,
)
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.inspect import now

PAGE = 2_000
"""Jobs at which to look in one statement, and to forget in one transaction at most."""

Tell = Callable[[int], None]
"""Called with each number of jobs that have gone."""

_FIRST = UUID(int=0)


class Going(NamedTuple):
    """A finished job that goes, as it was filed when somebody decided so."""

    id: UUID
    created_us: int
    filed_us: int
    workflow: bool


_going = msgspec.json.Decoder(list[Going], strict=False)  # SQLite has numbers for truths
_tally = msgspec.json.Decoder(list[tuple[int, int]])
_ids = msgspec.json.Decoder(list[UUID])


def set_rule(db: Database, rule: RetentionRule) -> None:
    """See `protocol.Retention.set_retention`."""
    _change(db, "put_retention", rule.covers, age=rule.age, keep=rule.count)


def rules(db: Database) -> list[RetentionRule]:
    """See `protocol.Retention.retention`."""
    found = [_rule(row) for row in db.read("retention")]
    return [rule for rule in found if rule.age is not None or rule.count is not None]


def remove(db: Database, covers: Covers) -> bool:
    """See `protocol.Retention.remove_retention`."""
    known = any(rule.covers == covers for rule in rules(db))
    if covers == Covers():  # its row stays: it says how far the nodes have come by themselves
        set_rule(db, RetentionRule(covers))
    else:
        _change(db, "remove_retention", covers)
    return known


def _change(db: Database, query: str, covers: Covers, **given: object) -> None:
    """Change a rule and count that, one after the other: what was read before must never seem to be as it is."""

    def work(tx: Runner) -> None:
        tx.run("lock_room", room="retention")
        tx.run(query, **_selection(covers), **given)

    db.transact(work)


def in_force(db: Database, age: timedelta) -> list[Kept]:
    """Return all rules as they are applied by a node that keeps other jobs for *age*."""
    found = db.read("retention")
    known = [(_rule(row), row[-2:]) for row in found]
    general = next((rule.age for rule, _ in known if rule.covers == Covers()), None) or age
    everybody = [rule.covers for rule, _ in known]
    return [
        Kept(rule.covers, rule.age or general, rule.count, exceptions(rule.covers, everybody), *progress)
        for rule, progress in known
    ]


def prune_ahead(db: Database, kept: Sequence[Kept], first: datetime, tell: Tell) -> datetime:
    """Remove what goes sooner than its whole day, which those do that lie before *first*; say until when jobs went."""
    today = now(db)
    latest = first
    for rule in kept:
        edge = _edge(db, rule, today)
        latest = max(latest, edge.at)
        for day in _days(db, max(first, rule.reached or first), edge):
            _prune_day(db, rule, edge, day, tell)
            if day + DAY <= edge.at:
                db.run("reach_retention", reached=day + DAY, changes=rule.changes, **_selection(rule.covers))
    _forget_members(db, tell)
    return latest


def prunable(db: Database, age: timedelta) -> list[Prunable]:
    """See `protocol.Sweeps.prunable`."""
    today = now(db)
    return [_prunable(db, rule, today) for rule in in_force(db, age)]


def _prunable(db: Database, rule: Kept, today: datetime) -> Prunable:
    edge = _edge(db, rule, today)
    jobs, oldest = 0, None
    for day in _days(db, None, edge):
        for going in _pages(db, rule, edge, day):
            families = [one.id for one in going if one.workflow]
            jobs += len(going) + _family(db, families)
            oldest = min([one.filed_us for one in going] + ([] if oldest is None else [oldest]), default=None)
    first = None if oldest is None else moment(oldest)
    return Prunable(covers=rule.covers, age=rule.age, count=rule.count, jobs=jobs, oldest=first)


def _family(db: Database, workflows: Sequence[UUID]) -> int:
    """Return how many members go with *workflows*, and with those that are workflows among them."""
    total = 0
    while workflows:
        ((members, nested),) = db.read("family", ids=rows.ids(workflows))
        total += members
        workflows = _ids.decode(nested)
    return total


def _edge(db: Database, rule: Kept, today: datetime) -> Edge:
    """Return where what *rule* keeps begins, by age or by count, whichever is later."""
    aged = rule.aged(today)
    counted = None if rule.count is None else _edge_by_count(db, rule, rule.count)
    return aged if counted is None or (counted.at, counted.id) < (aged.at, aged.id) else counted


def _edge_by_count(db: Database, rule: Kept, count: int) -> Edge | None:
    """Return the oldest of the newest *count*, looking back day by day; None where there are not so many."""
    left = count
    for day in reversed(db.read("finished_days", since=rule.reached, until=now(db) + DAY)):
        tally: Counter[datetime] = Counter()
        for minute, jobs in _tallies(db, rule, day[0]):
            tally[moment(minute)] += jobs
        found = nth_newest([*tally.items()], left)
        if found is not None:
            minute_of, skip = found
            return _nth(db, rule, minute_of, skip)
        left -= tally.total()
    return None


def _nth(db: Database, rule: Kept, minute: datetime, skip: int) -> Edge | None:
    until = minute + timedelta(minutes=1)
    for at, job_id in db.read("nth_newest", since=minute, until=until, skip=skip, **_wanted(rule)):
        return Edge(at, job_id)
    return None  # some have gone meanwhile: then there are not so many


def _tallies(db: Database, rule: Kept, day: datetime) -> Iterator[tuple[int, int]]:
    for page in _walk(db, "tally_page", day, **_wanted(rule)):
        yield from _tally.decode(page)


def _pages(db: Database, rule: Kept, edge: Edge, day: datetime) -> Iterator[list[Going]]:
    for page in _walk(db, "going_page", day, edge_at=edge.at, edge_id=edge.id, **_wanted(rule)):
        yield _going.decode(page)


def _walk(db: Database, query: str, day: datetime, **given: Any) -> Iterator[str]:
    """Walk through a day, page by page, and yield what *query* finds in each."""
    since, after = day, _FIRST
    while found := db.read(query, since=since, until=day + DAY, after=after, limit=PAGE, **given):
        ((since, after, page),) = found
        yield page


def _prune_day(db: Database, rule: Kept, edge: Edge, day: datetime, tell: Tell) -> None:
    for going in _pages(db, rule, edge, day):
        if going:
            tell(_forget(db, going))
            _forget_members(db, tell)


def _forget_members(db: Database, tell: Tell) -> None:
    """Remove the members of workflows that have gone, with whoever may be doing the same."""
    while found := db.read("pruned_workflow"):
        ((workflow,),) = found
        while going := _going.decode(db.read("members_to_go", workflow=workflow, limit=PAGE)[0][0]):
            gone = _forget(db, going)
            if not gone:
                return  # others have them in their hands; what they leave, the next prune finds
            tell(gone)
        db.run("members_are_gone", workflow=workflow)


def _forget(db: Database, going: Sequence[Going]) -> int:
    since, until = min(one.created_us for one in going), max(one.filed_us for one in going)
    forget = partial(db.run, "forget", going=rows.document(going))
    ((gone,),) = forget(since=moment(min(since, until)), until=moment(until))
    return int(gone)


def _days(db: Database, since: datetime | None, edge: Edge) -> Iterable[datetime]:
    start = None if since is None else day_of(since)
    found = db.read("finished_days", since=start, until=edge.at)
    return [day for (day,) in found if Edge(day) != edge]  # of a day that begins with the edge nothing goes


def _wanted(rule: Kept) -> dict[str, str]:
    others = rows.document(tuple(_selection(one).values()) for one in rule.exceptions)
    return {**_selection(rule.covers), "others": others}


def _selection(covers: Covers) -> dict[str, str]:
    return {"team": covers.team or "", "queue": covers.queue or "", "state": covers.state or ""}


def _rule(row: Row) -> RetentionRule:
    team, queue, state, age, keep, *_ = row
    return RetentionRule(Covers(team or None, queue or None, state), age, keep)
