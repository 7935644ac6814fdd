"""Alerts: rules that people would like to be told about when they hold, and what becomes of one from look to look.

A rule is a value that can be stored and compared. What it asks of the database is measured elsewhere; here is decided
what the figures mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.channel import Channel
from mainspring.model.duration import Duration, duration, spelled
from mainspring.model.job import check_name
from mainspring.model.span import span
from mainspring.model.text import counted, shortened

EVERY = timedelta(seconds=30)
_SHORTEST = timedelta(seconds=1)
"""Below that, to look would keep the database busy with little else."""

_LARGEST_COUNT = 1_000_000
_NAMED = 5
"""How many of those that are to blame a message names."""


class Reading(msgspec.Struct, frozen=True):
    """What a look has found: a figure, whether the rule holds, and that in words.

    Whether it holds is None where too much stood in the way to tell; then all stays as it is.
    """

    value: float | None
    holds: bool | None
    message: str


class Stuck(msgspec.Struct, frozen=True, tag="stuck", tag_field="kind"):
    """Jobs have been running for longer than they should."""

    longer_than: timedelta = timedelta(hours=1)
    queue: str | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        _check_length(self.longer_than, "longer_than")
        _check_names(self.queue, self.task)

    def read(self, jobs: Sequence[tuple[object, str, timedelta]], most: int) -> Reading:
        """Say what it means that these *jobs*, of *most* that are looked for, have run so long, the longest first."""
        if not jobs:
            return Reading(0, False, f"no job has been running for longer than {spelled(self.longer_than)}")
        job_id, task, ran = jobs[0]
        return Reading(
            len(jobs),
            True,
            f"{_up_to(len(jobs), most, 'job')} running for longer than {spelled(self.longer_than)}: "
            f"{task} for {span(ran)}, with the id {job_id}" + (", and others" if len(jobs) > 1 else ""),
        )


class Lag(msgspec.Struct, frozen=True, tag="lag", tag_field="kind"):
    """What is due is not made ready in time: schedules are not fired, or jobs not promoted."""

    above: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        _check_length(self.above, "above")

    def read(self, schedule: tuple[str, timedelta] | None, job: tuple[object, timedelta] | None) -> Reading:
        """Say what it means that the first *schedule* and the first *job* that are due are late by so much."""
        late = [
            (by, f"{what} {name}") for what, one in (("schedule", schedule), ("job", job)) if one for name, by in [one]
        ]
        by, what = max(late, default=(timedelta(0), ""))
        message = f"{what} has been due for {span(by)}" if late else "nothing is due that has not been made ready"
        return Reading(by.total_seconds(), by > self.above, message)


class Depth(msgspec.Struct, frozen=True, tag="depth", tag_field="kind"):
    """Too many jobs of a queue are ready and wait for a worker."""

    queue: str
    above: int = 1_000

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        _check_count(self.above, "above")

    def read(self, ready: int, *, all_seen: bool) -> Reading:
        """Say what it means that so many are *ready*, of which no more are counted than it takes."""
        if ready > self.above:
            return Reading(ready, True, f"more than {counted(self.above, 'job')} ready in queue {self.queue}")
        if not all_seen:
            return Reading(None, None, f"too many jobs of others are ready in queue {self.queue} to count these")
        return Reading(ready, False, f"{counted(ready, 'job')} ready in queue {self.queue}")


class Age(msgspec.Struct, frozen=True, tag="age", tag_field="kind"):
    """A job of a queue has been ready for too long and waits for a worker."""

    queue: str
    above: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        _check_length(self.above, "above")

    def read(self, waited: timedelta | None, *, all_seen: bool) -> Reading:
        """Say what it means that the oldest that was seen has *waited* for so long."""
        if waited is not None and waited > self.above:
            return Reading(
                waited.total_seconds(), True, f"a job of queue {self.queue} has waited for a worker for {span(waited)}"
            )
        if not all_seen:
            return Reading(None, None, f"too many jobs of others are ready in queue {self.queue} to see all of these")
        if waited is None:
            return Reading(0, False, f"no job of queue {self.queue} waits for a worker")
        return Reading(
            waited.total_seconds(), False, f"the oldest job of queue {self.queue} has waited for {span(waited)}"
        )


class ErrorRate(msgspec.Struct, frozen=True, tag="error_rate", tag_field="kind"):
    """Too large a share of the jobs that have ended lately have failed for good."""

    above: float = 0.2
    over: timedelta = timedelta(minutes=10)
    at_least: int = 20
    queue: str | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.above, bool) or not isinstance(self.above, int | float) or not 0 <= self.above < 1:
            raise InvalidValue(f"expected above to be a share from 0 to less than 1, got: {shortened(self.above)}")
        _check_length(self.over, "over")
        _check_count(self.at_least, "at_least", least=1)
        _check_names(self.queue, self.task)

    def read(self, failed: int, ended: int, *, over: timedelta | None = None, all_seen: bool = True) -> Reading:
        """Say what it means that so many have *failed* of those that *ended*, as far *over* time as could be seen."""
        over = self.over if over is None else over
        if ended < self.at_least:
            message = f"{counted(ended, 'job')} ended within {spelled(over)}, too few to tell"
            return Reading(None, False if all_seen else None, message)
        rate = failed / ended
        message = f"{failed:,} of {counted(ended, 'job')} that ended within {spelled(over)} failed ({rate:.1%})"
        return Reading(rate, rate > self.above, message)


class Dead(msgspec.Struct, frozen=True, tag="dead", tag_field="kind"):
    """Jobs have failed for good lately."""

    above: int = 0
    over: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        _check_count(self.above, "above")
        _check_length(self.over, "over")

    def read(self, letters: int, *, all_seen: bool) -> Reading:
        """Say what it means that there are so many new *letters*, of which no more are counted than it takes."""
        if letters > self.above:
            more = f"more than {counted(self.above, 'job')}" if self.above else "at least 1 job"
            return Reading(letters, True, f"{more} failed for good within {spelled(self.over)}")
        if not all_seen:
            return Reading(None, None, f"too many jobs of others failed within {spelled(self.over)} to count these")
        return Reading(letters, False, f"{counted(letters, 'job')} failed for good within {spelled(self.over)}")


class MissingWorkers(msgspec.Struct, frozen=True, tag="missing_workers", tag_field="kind"):
    """Too few workers are alive that serve a queue; or, of no queue in particular, any in which jobs are ready."""

    queue: str | None = None
    fewer_than: int = 1

    def __post_init__(self) -> None:
        _check_names(self.queue, None)
        _check_count(self.fewer_than, "fewer_than", least=1)

    def read(self, workers: Mapping[str, int]) -> Reading:
        """Say what it means that each of these queues has so many *workers*."""
        lacking = {queue: count for queue, count in workers.items() if count < self.fewer_than}
        if lacking:
            queues = _some([f"{queue} ({counted(count, 'worker')})" for queue, count in sorted(lacking.items())])
            wanted = f"expected at least {counted(self.fewer_than, 'worker')}"
            return Reading(min(lacking.values()), True, f"{wanted} for queue {queues}")
        least = min(workers.values(), default=None)
        if self.queue is None:
            return Reading(least, False, "every queue in which jobs are ready has workers")
        return Reading(least, False, f"{counted(least or 0, 'worker')} for queue {self.queue}")


class MissedSchedules(msgspec.Struct, frozen=True, tag="missed_schedules", tag_field="kind"):
    """A schedule has had no success in the time that it should, or nobody was there to fire its ticks lately."""

    over: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        _check_length(self.over, "over")

    def read(self, overdue: Sequence[str], missed: Sequence[str], most: int) -> Reading:
        """Say what it means that these are *overdue*, and these have *missed* ticks, of up to *most* each."""
        told = []
        if overdue:
            told.append(f"{_up_to(len(overdue), most, 'schedule')} without the success expected: {_some(overdue)}")
        if missed:
            told.append(f"{_up_to(len(missed), most, 'schedule')} with ticks missed: {_some(missed)}")
        names = {*overdue, *missed}
        return Reading(len(names), bool(names), "; ".join(told) or "no schedule has missed anything")


Rule = Stuck | Lag | Depth | Age | ErrorRate | Dead | MissingWorkers | MissedSchedules
RULES: Mapping[str, type[Rule]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Stuck, Lag, Depth, Age, ErrorRate, Dead, MissingWorkers, MissedSchedules)
}


def stuck(longer_than: Duration = "1h", *, queue: str | None = None, task: str | None = None) -> Stuck:
    """Tell when jobs have been running for longer than that."""
    return Stuck(duration(longer_than, "longer_than"), queue, task)


def lag(above: Duration = "30s") -> Lag:
    """Tell when a schedule or a job that is due has not been made ready for longer than that."""
    return Lag(duration(above, "above"))


def depth(queue: str, above: int = 1_000) -> Depth:
    """Tell when more jobs than that are ready in a queue."""
    return Depth(queue, above)


def age(queue: str, above: Duration = "10m") -> Age:
    """Tell when a job has been ready in a queue for longer than that."""
    return Age(queue, duration(above, "above"))


def error_rate(
    above: float = 0.2,
    over: Duration = "10m",
    *,
    at_least: int = 20,
    queue: str | None = None,
    task: str | None = None,
) -> ErrorRate:
    """Tell when a larger share than that has failed of the jobs that ended lately, if they are enough to tell."""
    return ErrorRate(above, duration(over, "over"), at_least, queue, task)


def dead(above: int = 0, over: Duration = "1h") -> Dead:
    """Tell when more jobs than that have failed for good lately."""
    return Dead(above, duration(over, "over"))


def missing_workers(queue: str | None = None, fewer_than: int = 1) -> MissingWorkers:
    """Tell when fewer workers than that serve a queue, or any queue in which jobs are ready."""
    return MissingWorkers(queue, fewer_than)


def missed_schedules(over: Duration = "1h") -> MissedSchedules:
    """Tell when a schedule has had no success in time (`expect_success_within`), or missed ticks lately."""
    return MissedSchedules(duration(over, "over"))


class AlertState(StrEnum):
    """How an alert stands."""

    OK = "ok"  # the rule does not hold
    PENDING = "pending"  # it holds, but not for long enough yet
    FIRING = "firing"  # it holds, and whoever is to be told has been told


class AlertDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an alert looks at, how often, and who is told: what its author says, and nothing that happens to it."""

    rule: Rule
    every: timedelta = EVERY
    hold: timedelta = timedelta(0)  # how long the rule must hold before anybody is told
    notify: tuple[Channel, ...] = ()

    def check(self) -> None:
        """Refuse what makes no sense. Not done whenever one is made: those that come from the database were checked."""
        if not isinstance(self.rule, Rule):
            raise InvalidValue(
                f"expected a rule such as dead() or depth('mail', above=1000), got: {shortened(self.rule)}"
            )
        if duration(self.every, "every") < _SHORTEST:
            raise InvalidValue(f"expected every to be at least 1 s, got: {spelled(self.every)}")
        duration(self.hold, "hold")


class NewAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert to be stored, under the name that it has among those of all teams.

    `scope` is the team whose jobs it looks at, by name; one without looks at everybody's.
    """

    id: str
    definition: AlertDefinition
    scope: str | None = None

    def __post_init__(self) -> None:
        self.definition.check()


class Alert(msgspec.Struct, frozen=True):
    """A stored alert as it was at one moment. The fields stand in the order of every query's columns."""

    id: str
    scope: str | None
    definition: AlertDefinition
    state: AlertState
    since: datetime  # when it came to be in that state
    value: float | None  # what the last look has found, and that in words
    message: str | None
    look_at: datetime  # when somebody looks next
    evaluated_at: datetime | None  # when somebody looked last, and who that was
    evaluated_by: str | None
    created_at: datetime
    changed_at: datetime  # when it was defined as it is now


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True):
    """That an alert has begun to fire, or has resolved: what is told to people, once each."""

    alert: str
    scope: str | None
    event: str  # firing or resolved
    rule: Rule
    value: float | None
    message: str
    since: datetime  # when the rule began to hold; of one that has resolved, when it began to fire
    at: datetime


FIRING, RESOLVED = "firing", "resolved"


class Judgement(msgspec.Struct, frozen=True):
    """What becomes of an alert, and what is to be told of it, if anything."""

    state: AlertState
    since: datetime
    event: AlertEvent | None = None


def judge(alert: Alert, reading: Reading, now: datetime) -> Judgement:
    """Decide what becomes of *alert* by what a look has found.

    Whatever is to be told is told at the change, and so once: who looks again finds the alert changed already.
    """
    since = min(alert.since, now)  # a clock that was set back must not make it wait for ever
    if reading.holds is None:
        return Judgement(alert.state, since)
    if not reading.holds:
        if alert.state is AlertState.OK:
            return Judgement(alert.state, since)
        resolved = _event(alert, RESOLVED, reading, since, now) if alert.state is AlertState.FIRING else None
        return Judgement(AlertState.OK, now, resolved)
    if alert.state is AlertState.FIRING:
        return Judgement(alert.state, since)
    began = since if alert.state is AlertState.PENDING else now
    if now - began < alert.definition.hold:
        return Judgement(AlertState.PENDING, began)
    return Judgement(AlertState.FIRING, now, _event(alert, FIRING, reading, began, now))


def described(rule: Rule) -> str:
    """Return *rule* in short: its kind, and what it says."""
    told = [f"{name}={_told(value)}" for name, value in msgspec.structs.asdict(rule).items() if value is not None]
    return f"{rule.__struct_config__.tag}({', '.join(told)})"


def _event(alert: Alert, event: str, reading: Reading, since: datetime, now: datetime) -> AlertEvent:
    return AlertEvent(
        alert=alert.id,
        scope=alert.scope,
        event=event,
        rule=alert.definition.rule,
        value=reading.value,
        message=reading.message,
        since=since,
        at=now,
    )


def _told(value: object) -> str:
    return spelled(value) if isinstance(value, timedelta) else str(value)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _up_to(count: int, most: int, noun: str) -> str:
    return f"at least {counted(count, noun)}" if count >= most else counted(count, noun)


def _check_length(length: timedelta, name: str) -> None:
    if not isinstance(length, timedelta) or duration(length, name) == timedelta(0):
        raise InvalidValue(f"expected {name} to be a duration longer than 0, such as 10m, got: {shortened(length)}")


def _check_count(count: int, name: str, least: int = 0) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= _LARGEST_COUNT:
        raise InvalidValue(
            f"expected {name} to be a whole number from {least} to {_LARGEST_COUNT:,}, got: {shortened(count)}"
        )


def _check_names(queue: str | None, task: str | None) -> None:
    for name, what in ((queue, "queue"), (task, "task")):
        if name is not None:
            check_name(name, what)
