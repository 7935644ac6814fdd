"""Rows and model, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from mainspring.clock import MICROSECOND, microseconds
from mainspring.model.alert import Alert, AlertDefinition, AlertState, NewAlert
from mainspring.model.audit import Record
from mainspring.model.breaker import State
from mainspring.model.fairness import Line
from mainspring.model.firing import Position
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.limits import Want
from mainspring.model.links import IfFailed
from mainspring.model.queue import Pausable
from mainspring.model.schedule import Definition, NewSchedule, Origin, Schedule
from mainspring.model.tick import Tick, Verdict
from mainspring.model.token import Role
from mainspring.store.database import Row

Column = Sequence[Any]
Converter = Callable[[Column], Column]
"""Converts a whole column at once, NULLs included: a call per value would cost more than the query."""

_encoder = msgspec.json.Encoder()
_STATES: Mapping[str, JobState] = {state.value: state for state in JobState}
_WISHES: Mapping[str, Wish] = {wish.value: wish for wish in Wish}

_VERDICTS: Mapping[str, Verdict] = {verdict.value: verdict for verdict in Verdict}
_ORIGINS: Mapping[str, Origin] = {origin.value: origin for origin in Origin}
_PAUSABLES: Mapping[str, Pausable] = {kind.value: kind for kind in Pausable}
_IF_FAILED: Mapping[str, IfFailed] = {choice.value: choice for choice in IfFailed}
_definition = msgspec.json.Decoder(Definition)
_names = msgspec.json.Decoder(tuple[str, ...])
_breaker = msgspec.json.Decoder(State)
_grants = msgspec.json.Decoder(dict[str, Role])
_alert = msgspec.json.Decoder(AlertDefinition)

MODEL_CONVERTERS: dict[str, Converter] = {
    "state": lambda column: [_STATES.get(value) for value in column],
    "wish": lambda column: [_WISHES.get(value) for value in column],
    "verdict": lambda column: [_VERDICTS[value] for value in column],
    "kind": lambda column: [_PAUSABLES[value] for value in column],
    "origin": lambda column: [_ORIGINS[value] for value in column],
    **dict.fromkeys(("queues", "tasks"), lambda column: [_names.decode(value) for value in column]),
    "if_failed": lambda column: [_IF_FAILED[value] for value in column],
    "breaker": lambda column: [None if value is None else _breaker.decode(value) for value in column],
    "grants": lambda column: [_grants.decode(value) for value in column],
    "holds": lambda column: [_names.decode(value) if value else () for value in column],
}
"""By column name: what neither driver can know."""

INSTANTS = (
    *("run_at", "created_at", "started_at", "finished_at", "beat_at", "now_at", "clock_at", "at", "until", "tick"),
    *("tick_at", "due_at", "buffered_at", "ended_at", "expected_by", "changed_at", "decided_at", "first_at", "last_at"),
    *("full_at", "paused_at", "expires_at", "revoked_at", "last_used_at"),
    *("since", "look_at", "evaluated_at", "reached"),
)
"""Columns that hold an instant, in any query."""


def distinct(convert: Callable[[Any], Any]) -> Converter:
    """Return a converter for a column whose values repeat, which converts each of them once.

    Jobs enqueued together share their instants, and so do jobs claimed together.
    """

    def converter(column: Column) -> Column:
        known = {value: None if value is None else convert(value) for value in set(column)}
        return [known[value] for value in column]

    return converter


def convert_rows(rows: list[Row], names: Sequence[str], converters: Mapping[str, Converter]) -> list[Row]:
    """Return *rows* with each column that has a converter converted."""
    return convert_columns(zip(*rows, strict=True), names, converters) if rows else []


def convert_columns(columns: Iterable[Column], names: Sequence[str], converters: Mapping[str, Converter]) -> list[Row]:
    """Return the rows of *columns*, of which each that has a converter is converted."""
    converted = (
        converters[name](column) if name in converters else column for name, column in zip(names, columns, strict=True)
    )
    return list(zip(*converted, strict=True))


def to_job(row: Row) -> Job:
    """Return the job of a row whose columns are those of the fragments `live` and `done`."""
    return Job(*row)


def document(values: Iterable[object]) -> str:
    """Return *values* as the one JSON document in which a list travels to the database.

    What has fields travels as an array of them, which both databases take apart faster than an object; each query
    gives the fields their names back before anything else.
    """
    return _encoder.encode(list(values)).decode()


def new_jobs(jobs: Iterable[NewJob], turns: Mapping[UUID, int], waiting: Mapping[UUID, int]) -> str:
    """Return *jobs*, some of which have *turns* or are *waiting* for so many parents, for the queries that enqueue."""
    return document(
        (
            job.id,
            job.task,
            job.queue,
            job.payload,
            job.priority,
            job.key,
            _instant(job.run_at),
            job.delay // MICROSECOND if job.delay else 0,
            *(
                (job.schedule, _instant(job.tick), _microseconds(job.expires))
                if (related := job.related or job.attributed) or job.schedule or job.expires or job.fair
                else ()
            ),
            *((job.fair, job.fair and job.weight, job.fair and turns.get(job.id)) if related or job.fair else ()),
            *((job.workflow, job.links, waiting.get(job.id, job.members), job.awaited, job.plan) if related else ()),
            *((job.team, job.notify, job.trace) if job.attributed else ()),
        )
        for job in jobs
    )


def counts(by_id: Mapping[UUID, int]) -> str:
    """Return jobs, each with how many of those have ended that it waits for, for the query `count_down`."""
    return encoded(by_id)


def lines(costs: Mapping[Line, int]) -> str:
    """Return lines, each with what is taken from or given back to it, in their order."""
    return document((*line, cost) for line, cost in sorted(costs.items()))


def turns(given: Mapping[UUID, int]) -> str:
    """Return jobs with their turns as a document for the query `line_up`."""
    return _encoder.encode(given).decode()


def replacements(changed: Iterable[tuple[Job, Job]]) -> str:
    """Return jobs as they were and as they are to be as a document for the query `replace`."""
    return document(
        (
            job.id,
            before.fence,
            job.payload,
            job.priority,
            job.state,
            None if job.run_at == before.run_at else microseconds(job.run_at),
        )
        for before, job in changed
    )


def idempotency(holders: Iterable[tuple[NewJob, UUID]]) -> str:
    """Return requests, each with the job that stands for it, as a document for the queries on idempotency keys."""
    return document((job.idempotency_key, job_id, job.idempotency_ttl // MICROSECOND) for job, job_id in holders)


def new_schedules(given: Iterable[tuple[NewSchedule, Position]]) -> str:
    """Return schedules as a document for the query `put_schedules`."""
    return document(
        (
            schedule.id,
            _encoder.encode(schedule.definition).decode(),
            schedule.origin,
            _microseconds(schedule.definition.expect_success_within),
            _instant(position.tick_at),
            _instant(position.due_at),
            position.runs,
            _instant(position.buffered_at),
            position.awaits,
            schedule.definition.depends,
            schedule.definition.team,
        )
        for schedule, position in given
    )


def positions(moved: Mapping[str, Position], *, paused: bool = False, anew: bool = False) -> str:
    """Return where schedules stand as a document for the query `move_schedules`.

    A success is expected as before, or, when they begin *anew*, from the next tick on.
    """
    return _encoder.encode(
        {
            schedule: (
                paused,
                _instant(position.tick_at),
                _instant(position.due_at),
                position.runs,
                _instant(position.buffered_at),
                position.awaits,
                anew,
            )
            for schedule, position in moved.items()
        }
    ).decode()


def ticks(recorded: Iterable[tuple[str, Tick, UUID | None]]) -> str:
    """Return ticks, each with its schedule and the job that it is to become, for the query `keep_ticks`."""
    return document(
        (schedule, microseconds(tick.at), _instant(tick.until), tick.count, tick.verdict, tick.reason, job_id)
        for schedule, tick, job_id in recorded
    )


def limits(wanted: Iterable[Want]) -> str:
    """Return limits as a document for the query `put_limits`."""
    return document(
        (want.key, want.concurrency, _microseconds(want.interval), want.burst, None if want.rule is None else "{}")
        for want in wanted
    )


def new_breakers(keys: Iterable[str]) -> str:
    """Return breakers that are closed as a document for the query `put_limits`."""
    return document((key, None, None, None, "{}") for key in keys)


def moved(limits: Mapping[str, tuple[datetime | None, datetime | None, State | None]]) -> str:
    """Return, for each limit, when it is full, when to look at it, and what the breaker is, for `move_limits`."""
    return encoded(
        {
            key: (_instant(full_at), _instant(release_at), None if state is None else encoded(state))
            for key, (full_at, release_at, state) in limits.items()
        }
    )


def audit(records: Iterable[Record]) -> str:
    """Return *records* as a document for the query `extend_audit`."""
    return document(
        (one.seq, one.id, microseconds(one.at), one.actor, one.team, one.action, one.target, one.details, one.hash)
        for one in records
    )


def instants(of: Iterable[datetime]) -> str:
    """Return instants as a document."""
    return document(map(microseconds, of))


def ended(schedules: Mapping[str, bool]) -> str:
    """Return, for each schedule of which a job has ended, whether one has succeeded, for the query `follow`."""
    return _encoder.encode(schedules).decode()


def to_schedule(row: Row) -> Schedule | None:
    """Return the schedule of a row whose columns are those of the fragment `schedule`; None if it can't be read.

    A newer version may have written it, and must not keep this one from reading the others.
    """
    try:
        return Schedule(row[0], _definition.decode(row[1]), *row[2:])
    except msgspec.DecodeError:
        return None


def standing(row: Row) -> Schedule:
    """Return the same without its definition: where it stands."""
    return Schedule(*row)


def alert_definition(new: NewAlert) -> str:
    """Return what the author of an alert says, as it is stored."""
    return encoded(new.definition)


def to_alert(row: Row) -> Alert | None:
    """Return the alert of a row whose columns are those of the fragment `alert`; None if it can't be read, as above."""
    alert_id, scope, definition, status, *standing = row
    try:
        return Alert(alert_id, scope, _alert.decode(definition), AlertState(status), *standing)
    except msgspec.DecodeError:
        return None


def replays(decided: Iterable[tuple[Settlement, str | None]]) -> str:
    """Return *decided*, each with the payload that takes the old one's place, for the query `replay`."""
    return document(
        (
            job.job_id,
            job.fence,
            job.source,
            job.state,
            job.attempt,
            job.losses,
            _microseconds(job.delay),
            job.reason,
            payload,
            job.pending,
        )
        for job, payload in decided
    )


def discards(decided: Iterable[Settlement]) -> str:
    """Return *decided* as a document for the query `discard`."""
    return document((job.job_id, job.fence, job.source, job.state, job.reason) for job in decided)


def settlements(decided: Iterable[Settlement]) -> str:
    """Return *decided* as a document for the query `settle_again`: by the job's id, the fields in order."""
    return _by_id(
        (
            settlement,
            (
                settlement.fence,
                settlement.source,
                settlement.state,
                settlement.attempt,
                settlement.losses,
                settlement.outcome,
                _failure(settlement),
                settlement.reason,
                _microseconds(settlement.delay),
                settlement.waits_for,
                *_relations(settlement),
            ),
        )
        for settlement in decided
    )


def _relations(settlement: Settlement) -> tuple[object, ...]:
    """Return what is told of few. Fields that are missing at the end are NULL, and change nothing but `signal`."""
    if not settlement.related and settlement.details is None:
        return ()
    expires = -1 if settlement.started else _microseconds(settlement.expires)
    return settlement.pending, settlement.signal, settlement.plan, expires, settlement.details


def endings(decided: Iterable[Settlement]) -> str:
    """Return *decided*, which all end alike, as a document for the query `settle_done`."""
    return _by_id((settlement, _ending(settlement)) for settlement in decided)


def encoded(value: object) -> str:
    """Return *value* as the JSON that one column holds."""
    return _encoder.encode(value).decode()


def _by_id(fields: Iterable[tuple[Settlement, tuple[object, ...]]]) -> str:
    return _encoder.encode({settlement.job_id: told for settlement, told in fields}).decode()


def _ending(settlement: Settlement) -> tuple[object, ...]:
    if settlement.failure is None and settlement.reason is None and settlement.details is None:
        return settlement.fence, settlement.result  # fields that are missing at the end are NULL
    fingerprint = None if settlement.failure is None else settlement.failure.fingerprint
    return settlement.fence, settlement.result, _failure(settlement), settlement.reason, fingerprint, settlement.details


def _failure(settlement: Settlement) -> str | None:
    return None if settlement.failure is None else _encoder.encode(settlement.failure).decode()


def _microseconds(length: timedelta | None) -> int | None:
    return None if length is None else length // MICROSECOND


def _instant(instant: datetime | None) -> int | None:
    return None if instant is None else microseconds(instant)


def read_ids(document: str | None) -> set[UUID]:
    """Return the ids in a document that a query has made; None stands for none."""
    return msgspec.json.decode(document or "[]", type=set[UUID])


def wishes(asked: Iterable[Asked]) -> str:
    """Return *asked* as a document for the query `ask`."""
    return document((ask.job_id, ask.fence, ask.wish, ask.reason) for ask in asked)


def log_lines(lines: Iterable[LogLine]) -> str:
    """Return *lines* as a document for the query `record_lines`."""
    return document((line.job_id, line.fence, line.number, line.level, line.message, line.logger) for line in lines)


def progress(reports: Iterable[Progress]) -> str:
    """Return *reports* as a document for the query `record_progress`."""
    return document((told.job_id, told.fence, _encoder.encode(told.reached).decode()) for told in reports)


def ids(of: Iterable[UUID]) -> str:
    """Return ids as a document."""
    return document(of)
