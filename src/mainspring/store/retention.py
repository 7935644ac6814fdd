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
from mainspring.model.job import JobState
from mainspring.model.retention import (
    DAY,
    Covers,
    Edge,
    Kept,
    Prunable,
    RetentionRule,
    covering,
    day_of,
    exceptions,
    nth_newest,
)
from mainspring.model.team import stored_team
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
_tally = msgspec.json.Decoder(list[tuple[str, str, JobState, int, int]])
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
    latest = first
    for rule, edge in zip(kept, _edges(db, kept), strict=True):
        latest = max(latest, edge.at)
        for day in _days(db, max(first, rule.reached or first), edge):
            _prune_day(db, rule, edge, day, tell)
            if day + DAY <= edge.at:
                db.run("reach_retention", reached=day + DAY, changes=rule.changes, **_selection(rule.covers))
    _forget_members(db, tell)
    return latest


def prunable(db: Database, age: timedelta) -> list[Prunable]:
    """See `protocol.Sweeps.prunable`."""
    kept = in_force(db, age)
    return [_prunable(db, rule, edge) for rule, edge in zip(kept, _edges(db, kept), strict=True)]


def _prunable(db: Database, rule: Kept, edge: Edge) -> Prunable:
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


def _edges(db: Database, kept: Sequence[Kept]) -> list[Edge]:
    """Return where what each rule keeps begins, by age or by count, whichever is later."""
    today = now(db)
    counted = _edges_by_count(db, kept, today)
    aged = [rule.aged(today) for rule in kept]
    return [max(edge, counted.get(rule.covers, edge), key=_place) for rule, edge in zip(kept, aged, strict=True)]


def _place(edge: Edge) -> tuple[datetime, UUID]:
    return edge.at, edge.id


def _edges_by_count(db: Database, kept: Sequence[Kept], today: datetime) -> dict[Covers, Edge]:
    """Return the oldest of the newest so many that each rule keeps, looking back day by day, once for all of them.

    There is none of a rule of which there are not so many.
    """
    left = {rule: rule.count for rule in kept if rule.count is not None and _may_have_more(db, rule, rule.count)}
    edges: dict[Covers, Edge] = {}
    for (day,) in reversed(db.read("finished_days", since=None, until=today + DAY)) if left else ():
        left = {rule: count for rule, count in left.items() if rule.reached is None or rule.reached <= day}
        if not left:
            break
        tallies = _tallies(db, [rule.covers for rule in kept], day)
        for rule, count in [*left.items()]:
            tally = tallies.get(rule.covers, Counter())
            left[rule] = count - tally.total()
            found = nth_newest([*tally.items()], count)
            if found is not None:
                del left[rule]
                for at, job_id in _nth(db, rule, *found):  # none, if some have gone meanwhile: there are not so many
                    edges[rule.covers] = Edge(at, job_id)
    return edges


def _may_have_more(db: Database, rule: Kept, count: int) -> bool:
    """Return whether more than *count* jobs of the team have ended, of which others may be about some; for a small one
    nobody has to look through all."""
    team = None if rule.covers.team is None else stored_team(rule.covers.team)
    return team is None or db.read("ended_of_team", team=team, most=count + 1)[0][0] > count


def _nth(db: Database, rule: Kept, minute: datetime, skip: int) -> list[Row]:
    until = minute + timedelta(minutes=1)
    return db.read("nth_newest", since=minute, until=until, skip=skip, **_wanted(rule))


def _tallies(db: Database, rules: Sequence[Covers], day: datetime) -> dict[Covers, Counter[datetime]]:
    """Return how many jobs ended in each minute of *day*, by the rule that counts for them."""
    kinds: dict[tuple[str, str, JobState], Counter[int]] = {}
    for page in _walk(db, "tally_page", day):
        for team, queue, state, minute, jobs in _tally.decode(page):
            kinds.setdefault((team, queue, state), Counter())[minute] += jobs
    tallies: dict[Covers, Counter[datetime]] = {}
    for kind, minutes in kinds.items():
        tally = tallies.setdefault(covering(Covers(*kind), rules), Counter())
        tally.update({moment(minute): jobs for minute, jobs in minutes.items()})
    return tallies


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
