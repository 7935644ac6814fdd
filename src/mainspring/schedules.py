"""Schedules of an app: those that its code defines, and those that are made while it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypedDict, TypeVar, Unpack

from msgspec.structs import replace

from mainspring.client import Client, check_limit
from mainspring.errors import (
    DuplicateSchedule,
    InvalidValue,
    ScheduleNotFound,
    SealBroken,
    check_known,
    did_you_mean,
)
from mainspring.job_handle import JobHandle
from mainspring.keys import Keyring, key_id_of
from mainspring.model.channel import Channel, encode_channels
from mainspring.model.duration import Duration, duration
from mainspring.model.job import check_instant, priority_of
from mainspring.model.preview import Preview, preview
from mainspring.model.schedule import Definition, Misfire, NewSchedule, Origin, Overlap, Schedule
from mainspring.model.sealed import is_closed, schedule_context, sealed_in
from mainspring.model.task import Registry, Task
from mainspring.model.team import full_name, local_name
from mainspring.model.text import counted, said, shortened
from mainspring.model.tick import TickRecord
from mainspring.model.trigger import After, Trigger, ticks
from mainspring.service import node_name, person
from mainspring.task_handle import TaskHandle

T = TypeVar("T", bound=TaskHandle[..., Any])
M = TypeVar("M", Overlap, Misfire)

LARGEST_BACKFILL = 10_000
"""Ticks in one call: a slip of the pen over years of every second would be millions."""

_BATCH = 5_000
_PAGE = 1_000

log = logging.getLogger("mainspring.scheduler")


class ScheduleOptions(TypedDict, total=False):
    """What a schedule may say beside its task and its trigger. A queue or a priority is the task's unless given."""

    args: Sequence[object]
    kwargs: Mapping[str, object]
    queue: str
    priority: int | str
    overlap: Overlap | str
    misfire: Misfire | str
    grace: Duration
    jitter: Duration
    start: datetime
    end: datetime
    max_runs: int
    expect_success_within: Duration
    notes: str
    notify: Sequence[Channel]


class Schedules:
    """All schedules of the app's database; `define` takes those of its code, which every worker writes as it starts."""

    def __init__(self, client: Client, tasks: Registry) -> None:
        self._client = client
        self._tasks = tasks
        self._in_code: dict[str, NewSchedule] = {}

    def add(
        self,
        schedule_id: str,
        task: TaskHandle[..., Any] | str,
        trigger: Trigger,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Store a schedule that enqueues *task* when *trigger* says so, and return it.

        One whose id is known is defined anew: it goes on where it stands, unless its times are other ones.
        """
        self.add_many([self.new(schedule_id, task, trigger, **options)])
        return self.get(schedule_id)

    def add_many(self, schedules: Iterable[NewSchedule]) -> int:
        """Store what `new` has made, some thousands at a time, and return how many; `add` says what that means."""
        remaining, count = map(self._ours, schedules), 0
        while batch := list(islice(remaining, _BATCH)):
            self._put(batch)
            count += len(batch)
        return count

    def new(
        self,
        schedule_id: str,
        task: TaskHandle[..., Any] | str,
        trigger: Trigger,
        **options: Unpack[ScheduleOptions],
    ) -> NewSchedule:
        """Return a schedule that is checked but not stored, for `add_many`."""
        return self._new(schedule_id, self._task(task), trigger, options, Origin.CALL)

    def get(self, schedule_id: str) -> Schedule:
        """Return the schedule with this id."""
        stored = self._stored(schedule_id)
        found = self._client.store.get_schedules([stored]).get(stored)
        if found is None:
            raise self._unknown(schedule_id)
        return self._shown(found)

    def pause(self, schedule_id: str, *, reason: str | None = None, by: str | None = None) -> Schedule:
        """Hold it until `resume`. What it has enqueued goes on.

        *by* is who says so: the user of this process and its host, unless told.
        """
        who, why = said(person() if by is None else by, reason, "pauses the schedule")
        return self._moved(schedule_id, self._client.store.pause_schedules([self._stored(schedule_id)], who, why))

    def resume(self, schedule_id: str) -> Schedule:
        """Let it go on with the next tick; those that came in the meantime are recorded as skipped."""
        return self._moved(schedule_id, self._client.store.resume_schedules([self._stored(schedule_id)], node_name()))

    def remove(self, schedule_id: str) -> None:
        """Remove it. Its jobs and its history stay; one that is defined in code comes back with the next worker."""
        if not self._client.store.remove_schedules([self._stored(schedule_id)], node_name()):
            raise self._unknown(schedule_id)

    def trigger(self, schedule_id: str) -> JobHandle[Any]:
        """Enqueue its job now, out of turn, even when it is paused."""
        (job_id,) = self._client.new_ids(1)
        if not self._client.store.trigger_schedule(self._stored(schedule_id), job_id, node_name()):
            raise self._unknown(schedule_id)
        return JobHandle(self._client, job_id)

    def preview(self, schedule_id: str, n: int = 10, after: datetime | None = None) -> Sequence[Preview]:
        """Return its next *n* ticks, without jitter, with a remark where the clocks change.

        They are those that it would have by its trigger, paused or not; none when it has ended.
        """
        schedule = self.get(schedule_id)
        definition = schedule.definition
        if schedule.ended:
            return []
        if isinstance(definition.trigger, After):
            return [Preview(schedule.tick_at, schedule.tick_at)] if schedule.tick_at else []
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise InvalidValue(f"expected n to be a whole number from 0 on, got: {shortened(n)}")
        left = n if definition.max_runs is None else min(n, definition.max_runs - schedule.runs)
        start = after or self._client.clock.now()
        if definition.start is not None:
            start = max(start, definition.start - datetime.resolution)
        found = preview(definition.trigger, start, left)
        return [tick for tick in found if definition.end is None or tick.at <= definition.end]

    def backfill(self, schedule_id: str, start: datetime, end: datetime) -> Sequence[JobHandle[Any]]:
        """Enqueue jobs for the ticks from *start* until before *end* that are no jobs yet, and return them.

        Only the past can be filled, and only where the schedule's own start and end allow it.
        """
        found = self.ticks(schedule_id, start, end)
        ids = self._client.new_ids(len(found)) if found else []
        wanted = dict(zip(found, ids, strict=True))
        made = self._client.store.backfill(self._stored(schedule_id), wanted, node_name())
        return [JobHandle(self._client, job_id) for job_id in made]

    def ticks(self, schedule_id: str, start: datetime, end: datetime) -> Sequence[datetime]:
        """Return the ticks from *start* until before *end* that could be backfilled, jobs or not."""
        definition = self.get(schedule_id).definition
        if isinstance(definition.trigger, After):
            raise InvalidValue(
                f"schedule {schedule_id!r} has no ticks of its own in the past: each follows a job's end"
            )
        check_instant(start, "start")
        check_instant(end, "end")
        if end < start:
            raise InvalidValue(f"expected end to come after start, got: {start} and {end}")
        first = max(start, definition.start or start) - datetime.resolution
        last = min(end - datetime.resolution, definition.end or end, self._client.clock.now())
        found = list(islice(ticks(definition.trigger, first, last), LARGEST_BACKFILL + 1))
        if len(found) > LARGEST_BACKFILL:
            raise InvalidValue(
                f"expected at most {LARGEST_BACKFILL:,} ticks to backfill at once, got more; split the time"
            )
        return found

    def history(self, schedule_id: str, *, before: datetime | None = None, limit: int = 50) -> Sequence[TickRecord]:
        """Return what became of its ticks, the latest first; pass the last one's `at` as *before* for more."""
        found = self._client.store.ticks(self._stored(schedule_id), before, limit)
        if not found:
            self.get(schedule_id)  # which says so if there is no such schedule
        return [replace(tick, schedule=schedule_id) for tick in found]

    def list(self) -> Sequence[Schedule]:
        """Return all schedules, in the order of their ids."""
        return [self._shown(one) for one in self._all(None)]

    def page(self, after: str = "", limit: int = 50) -> Sequence[Schedule]:
        """Return up to *limit* schedules, in the order of their ids; pass the last one's id as *after* for more."""
        check_limit(limit)
        start = self._stored(after) if after else ""
        found = self._client.store.schedules(after=start, limit=limit, team=self._client.scope)
        return [self._shown(one) for one in found]

    def coming(self, limit: int = 10) -> Sequence[Schedule]:
        """Return the *limit* schedules that fire next, the first one first; one that is paused does not."""
        check_limit(limit)
        found = self._client.store.coming_schedules(limit, self._client.scope)
        return [self._shown(one) for one in found]

    def define(self, schedule_id: str | None, task: T, trigger: Trigger, options: ScheduleOptions) -> T:
        """Take note of a schedule that the program defines in its code; `sync` stores it."""
        if not isinstance(task, TaskHandle):
            raise InvalidValue(f"expected @app.schedule to stand above @app.task, got: {shortened(task)}")
        named = schedule_id if schedule_id is not None else task.name
        if named in self._in_code:
            raise DuplicateSchedule(named)
        self._in_code[named] = self._new(named, task.task, trigger, options, Origin.CODE)
        return task

    def sync(self) -> None:
        """Store the schedules that the program defines, and tell of those that it no longer does."""
        self._put(list(self._in_code.values()))
        if not self._in_code:
            return
        # Only of its own team: another may be served by another program.
        known, team = {one.id for one in self._in_code.values()}, self._client.team
        orphans = [one.id for one in self._all(Origin.CODE) if one.definition.team == team and one.id not in known]
        if orphans:
            log.warning(
                "%s defined in code once, but not in this program: %s; if it is meant to be gone, remove it with "
                "`mainspring schedules remove`",
                counted(len(orphans), "schedule"),
                ", ".join(orphans[:20]),
            )

    def _put(self, schedules: Sequence[NewSchedule]) -> None:
        sealed = [one for one in schedules if self._tasks.known(one.definition.task).encrypt]
        if sealed:
            before = self._client.store.get_schedules([one.id for one in sealed])
            schedules = [self._sealed(one, before.get(one.id)) if one in sealed else one for one in schedules]
        self._client.store.put_schedules(schedules, node_name())

    def _sealed(self, new: NewSchedule, before: Schedule | None) -> NewSchedule:
        """Return *new* with its payload sealed.

        Where the one *before* has the same payload, in the same way: to seal it anew would look like a change.
        """
        keys, plain = self._client.keys, new.definition.payload
        context = schedule_context(new.id, new.definition.task)
        payload = None if before is None else before.definition.payload
        if payload is None or not _holds(keys, payload, context, plain):
            payload = keys.seal_document(plain, context)
        return replace(new, definition=replace(new.definition, payload=payload))

    def _all(self, origin: Origin | None) -> Sequence[Schedule]:
        scope = self._client.scope
        page = self._client.store.schedules(limit=_PAGE, origin=origin, team=scope)
        found = [*page]
        while page:  # not by its length: what can't be read is left out of a page
            page = self._client.store.schedules(after=page[-1].id, limit=_PAGE, origin=origin, team=scope)
            found += page
        return found

    def _new(
        self, schedule_id: str, task: Task, trigger: Trigger, options: ScheduleOptions, origin: Origin
    ) -> NewSchedule:
        definition = _definition(task, trigger, options, self._client.team)
        self._client.check_queues([definition.queue])
        return NewSchedule(id=full_name(definition.team, schedule_id), definition=definition, origin=origin)

    def _ours(self, new: NewSchedule) -> NewSchedule:
        """Return *new* if it was made here, or within the same team."""
        if new.definition.team != self._client.team:
            raise InvalidValue(f"expected a schedule that was made within the same team, got: {new.id!r}")
        return new

    def _stored(self, schedule_id: str) -> str:
        """Return the id of the schedule among those of all teams."""
        if not isinstance(schedule_id, str):
            raise InvalidValue(f"expected the id of a schedule, got: {shortened(schedule_id)}")
        return self._client.full_name(schedule_id)

    def _shown(self, schedule: Schedule) -> Schedule:
        return schedule if self._client.team is None else replace(schedule, id=local_name(schedule.id))

    def _task(self, task: TaskHandle[..., Any] | str) -> Task:
        if isinstance(task, TaskHandle):
            return task.task
        if not isinstance(task, str):
            raise InvalidValue(f"expected a task or the name of one, got: {shortened(task)}")
        return self._tasks.to_send(task)

    def _moved(self, schedule_id: str, known: set[str]) -> Schedule:
        if self._stored(schedule_id) not in known:
            raise self._unknown(schedule_id)
        return self.get(schedule_id)

    def _unknown(self, schedule_id: str) -> ScheduleNotFound:
        near = self._client.store.schedules(limit=_PAGE, team=self._client.scope)
        return ScheduleNotFound(schedule_id, [self._shown(one).id for one in near])


def check_trigger(trigger: Trigger) -> None:
    """Refuse what is no trigger."""
    if not isinstance(trigger, Trigger):
        raise InvalidValue(f"expected a trigger such as every('15m') or cron('0 9 * * *'), got: {shortened(trigger)}")


def _definition(task: Task, trigger: Trigger, options: ScheduleOptions, team: str | None) -> Definition:
    check_known(options, ScheduleOptions)
    check_trigger(trigger)
    given: dict[str, Any] = {name: value for name, value in options.items() if name not in ("args", "kwargs")}
    for name in ("grace", "jitter", "expect_success_within"):
        if name in given:
            given[name] = duration(given[name], name)
    for name in ("start", "end"):
        if given.get(name) is not None:
            check_instant(given[name], name)
            given[name] = given[name].astimezone(UTC)
    if "overlap" in given:
        given["overlap"] = _member(Overlap, given["overlap"], "overlap")
    if "misfire" in given:
        given["misfire"] = _member(Misfire, given["misfire"], "misfire")
    given["priority"] = priority_of(given.get("priority", task.priority))
    given.setdefault("queue", task.queue)
    given["expires"] = task.expires
    given["workflow"] = task.makes_workflow
    given["notify"] = encode_channels(given["notify"]) if "notify" in given else task.notify
    payload = task.encode(*options.get("args", ()), **options.get("kwargs", {}))
    fair = task.fair_of(payload)
    return Definition(task=task.name, trigger=trigger, payload=payload, fair=fair, team=team, **given)


def _holds(keys: Keyring, payload: str, context: str, plain: str) -> bool:
    """Return whether *payload* is *plain*, sealed for *context* with the first key."""
    if not is_closed(payload) or key_id_of(sealed_in(payload)) != keys.first:
        return False
    try:
        return keys.open_document(payload, context) == plain
    except SealBroken:
        return False


def _member(kind: type[M], value: object, name: str) -> M:
    word = str(value).lower()
    if word not in tuple(kind):
        hint = did_you_mean(word, kind)
        raise InvalidValue(f"expected {name} to be one of {', '.join(kind)}, got: {shortened(value)}{hint}")
    return kind(word)
