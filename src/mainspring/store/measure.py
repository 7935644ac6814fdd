"""Measure: what the rules of alerts ask of the database, in reads that look at no more rows than it takes to tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from mainspring.clock import MICROSECOND
from mainspring.model.alert import (
    Age,
    Dead,
    Depth,
    ErrorRate,
    Lag,
    MissedSchedules,
    MissingWorkers,
    Reading,
    Rule,
    Stuck,
)
from mainspring.model.team import local_name
from mainspring.store import rows
from mainspring.store.database import Database, Row
from mainspring.store.sessions import sessions

MOST = 100
"""How many of those that are to blame are looked for, where the rule does not say how many it takes."""

LOOK = 10_000
"""Rows to look at where those that come first tell enough."""

LOOK_THROUGH = 100_000
"""Rows to look through for those of one team, or of one queue: some 50 ms for either database."""


def measure(db: Database, rule: Rule, team: str | None) -> Reading:
    """Return what *rule* finds now among the jobs of *team*, by its name, or among all."""
    return _MEASURES[type(rule)](db, rule, team)


def _stuck(db: Database, rule: Stuck, team: str | None) -> Reading:
    found = db.read("stuck_jobs", longer_than=rule.longer_than, queue=rule.queue, task=rule.task, team=team, most=MOST)
    return rule.read([(job_id, task, ran * MICROSECOND) for job_id, task, ran in found], MOST)


def _lag(db: Database, rule: Lag, team: str | None) -> Reading:
    schedule = _late(db.read("late_schedule", team=team, look=LOOK), team)
    return rule.read(schedule, _late(db.read("late_job", team=team, look=LOOK), team))


def _late(found: list[Row], team: str | None) -> tuple[str, timedelta] | None:
    return (_named(str(found[0][0]), team), found[0][1] * MICROSECOND) if found else None


def _named(name: str, team: str | None) -> str:
    """Return what whoever is told of it calls that which is called *name* among all."""
    return name if team is None else local_name(name)


def _depth(db: Database, rule: Depth, team: str | None) -> Reading:
    look = rule.above + 1 if team is None else max(rule.above + 1, LOOK_THROUGH)
    ((ready, looked),) = db.read("ready_jobs", queue=rule.queue, team=team, look=look)
    return rule.read(ready, all_seen=looked < look)


def _age(db: Database, rule: Age, team: str | None) -> Reading:
    look = LOOK if team is None else LOOK_THROUGH
    ((_, waited, looked),) = db.read("oldest_ready", queues=rows.document([rule.queue]), team=team, look=look)
    # Without a team the first of each priority have been seen as well, wherever they are.
    return rule.read(None if waited is None else max(0, waited) * MICROSECOND, all_seen=team is None or looked < look)


def _error_rate(db: Database, rule: ErrorRate, team: str | None) -> Reading:
    """Look back as far as the rule says, or a quarter as far, and so on, where more has ended than can be looked at."""
    over, wanted = rule.over, {"queue": rule.queue, "task": rule.task, "team": team}
    while True:
        ((failed, ended, looked),) = db.read("lately_ended", over=over, look=LOOK_THROUGH, **wanted)
        if looked < LOOK_THROUGH or over < timedelta(seconds=1):
            return rule.read(failed, ended, over=over, all_seen=over == rule.over)
        over /= 4


def _dead(db: Database, rule: Dead, team: str | None) -> Reading:
    look = rule.above + 1 if team is None else max(rule.above + 1, LOOK_THROUGH)
    ((letters, looked),) = db.read("lately_dead", over=rule.over, team=team, look=look)
    return rule.read(letters, all_seen=looked < look)


def _missing_workers(db: Database, rule: MissingWorkers, team: str | None) -> Reading:
    if rule.queue is not None:
        queues = [rule.queue]
    else:
        queues = [queue for (queue,) in db.read("ready_queues", team=team, look=LOOK)]
    workers = Counter(queue for one in sessions(db) if one.alive for queue in one.queues)
    return rule.read({queue: workers[queue] for queue in queues})


def _missed_schedules(db: Database, rule: MissedSchedules, team: str | None) -> Reading:
    overdue = db.read("overdue_schedules", team=team, most=MOST)
    missed = db.read("missed_ticks", over=rule.over, team=team, look=LOOK, most=MOST)
    return rule.read(_names(overdue, team), _names(missed, team), MOST)


def _names(found: list[Row], team: str | None) -> list[str]:
    return sorted(_named(name, team) for (name,) in found)


_MEASURES: Mapping[type[Rule], Callable[[Database, Any, str | None], Reading]] = {
    Stuck: _stuck,
    Lag: _lag,
    Depth: _depth,
    Age: _age,
    ErrorRate: _error_rate,
    Dead: _dead,
    MissingWorkers: _missing_workers,
    MissedSchedules: _missed_schedules,
}
