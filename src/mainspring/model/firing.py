"""Firing: what becomes of the ticks of a schedule that are due, and where the schedule stands afterwards.

Pure, as the lifecycle is: a node that holds the schedule's row asks here first and writes second.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.schedule import CATCH_UP, MICROSECOND, Misfire, NewSchedule, Overlap, Schedule, spread
from mainspring.model.tick import Tick, Verdict
from mainspring.model.trigger import After, count_ticks, last_ticks

LEAD = timedelta(seconds=1)
"""How long before its time a tick becomes a job that waits for it: so it starts on the dot, however many others do."""

LATE = timedelta(minutes=1)
"""A job that is made so long after its tick is called late."""

_COUNTED = 100


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a schedule stands: its fields of the same names."""

    tick_at: datetime | None
    due_at: datetime | None
    runs: int = 0
    buffered_at: datetime | None = None
    awaits: bool = False


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of ticks, where their schedule stands then, and which of its jobs are to be cancelled first."""

    position: Position
    ticks: Sequence[Tick] = ()
    cancels: Sequence[UUID] = ()


def begin(schedule: NewSchedule, now: datetime) -> Position:
    """Return where a schedule stands that has just been made."""
    first = schedule.definition.first_tick(now)
    return Position(tick_at=first, due_at=_due(schedule, first))


def change(before: Schedule, schedule: NewSchedule, now: datetime) -> Decision:
    """Return what it takes to define a schedule anew: with the same times it stays where it stands.

    With other times it begins anew, and what was due by the old ones is on record as missed.
    """
    old, new = before.definition, schedule.definition
    if new.max_runs is not None and before.runs >= new.max_runs:
        return _abandon(before, now, Position(tick_at=None, due_at=None, runs=before.runs))
    if before.awaits and isinstance(old.trigger, After) and isinstance(new.trigger, After):
        return Decision(position=_standing(before, due_at=now))  # it waits as before, and then as long as it says now
    if not before.ended and (old.trigger, old.start, old.end) == (new.trigger, new.start, new.end):
        # What it awaits may have ended a moment ago, which it must not forget.
        return Decision(position=_standing(before, due_at=now if before.awaits else _due(schedule, before.tick_at)))
    anew = msgspec.structs.replace(begin(schedule, now), runs=before.runs)
    if before.buffered_at is None or isinstance(new.trigger, After):
        return _abandon(before, now, anew)
    kept = msgspec.structs.replace(anew, due_at=now, buffered_at=before.buffered_at, awaits=True)
    return Decision(position=kept, ticks=_unfired(before, now))


def remove(schedule: Schedule, now: datetime) -> Decision:
    """Return what becomes of the ticks that nobody will fire any more because *schedule* is removed."""
    return _abandon(schedule, now, Position(tick_at=None, due_at=None))


def pause(schedule: Schedule) -> Decision:
    """Return what it takes to hold *schedule*: it is due no more. A tick that waits goes on waiting."""
    return Decision(position=_standing(schedule, due_at=None))


def resume(schedule: Schedule, now: datetime) -> Decision:
    """Return what it takes to let *schedule* go on with the next tick; those that came in the meantime are skipped."""
    passed = _passed(schedule, _nominal(schedule, now), Verdict.SKIPPED, "the schedule was paused")
    next_tick = schedule.definition.next_tick(_nominal(schedule, now)) if passed else schedule.tick_at
    due_at = now if schedule.awaits else _due(schedule, next_tick)
    return Decision(position=_standing(schedule, tick_at=next_tick, due_at=due_at), ticks=passed)


def unmade(schedule: Schedule, decision: Decision, count: int, now: datetime) -> Position:
    """Return where *schedule* stands when *count* ticks became no jobs after all: they had had their turn before.

    They count as no runs. A schedule that was to wait for the end of such a job goes on: with the next tick, or with
    what it has kept waiting.
    """
    position, definition = decision.position, schedule.definition
    if isinstance(definition.trigger, After):
        tick_at = definition.next_tick(now)
    else:
        tick_at = position.tick_at or definition.next_tick(max(tick.at for tick in decision.ticks))
    buffered = position.buffered_at is not None
    return msgspec.structs.replace(
        position,
        tick_at=tick_at,
        due_at=now if buffered else _due(schedule, tick_at),
        runs=position.runs - count,
        awaits=buffered,
    )


def starts_at(schedule: Schedule, tick: Tick, now: datetime) -> datetime | None:
    """Return when the job of *tick* is to start, if that is not at once."""
    start = tick.at + spread(schedule.id, schedule.definition.jitter)
    return start if tick.verdict is Verdict.FIRED and start > now else None


def postpone(schedule: Schedule, until: datetime) -> Position:
    """Return where *schedule* stands when nothing can be decided for it now."""
    return _standing(schedule, due_at=until)


def _abandon(schedule: Schedule, now: datetime, position: Position) -> Decision:
    """Leave the ticks of *schedule* that are due or wait, and say so of each."""
    ticks = list(_unfired(schedule, now))
    if schedule.buffered_at is not None:
        why = "the schedule was changed before it could run"
        ticks.append(Tick(at=schedule.buffered_at, verdict=Verdict.SKIPPED, reason=why))
    return Decision(position=position, ticks=ticks)


def _unfired(schedule: Schedule, now: datetime) -> list[Tick]:
    """Return what is said of the ticks that are due when the schedule is changed before anybody fires them."""
    if schedule.paused:
        return _passed(schedule, _nominal(schedule, now), Verdict.SKIPPED, "the schedule was paused")
    return _passed(schedule, _nominal(schedule, now), Verdict.MISSED, "the schedule was changed before it fired")


def decide(schedule: Schedule, now: datetime, unfinished: Sequence[UUID]) -> Decision:
    """Return what becomes of the ticks of *schedule* that are due *now*, when these jobs of it have not finished."""
    if isinstance(schedule.definition.trigger, After):
        return _decide_after(schedule, now, unfinished)
    nominal = _reached(schedule, now)
    passed, run, following = _sorted_by_misfire(schedule, nominal)
    ticks, position, cancels = _Overlapping(schedule, nominal, unfinished).decide(run, following)
    last_words = {tick.at: tick for tick in [*passed, *ticks]}  # one that was buffered may not have lasted
    return Decision(ticks=list(last_words.values()), position=position, cancels=cancels)


def _decide_after(schedule: Schedule, now: datetime, unfinished: Sequence[UUID]) -> Decision:
    """Decide for a schedule whose next tick depends on when its last job ended."""
    if unfinished:
        return Decision(position=_standing(schedule, tick_at=None, due_at=None, awaits=True))
    tick_at = schedule.tick_at
    if schedule.awaits:
        tick_at = schedule.definition.next_tick(schedule.ended_at or now)
        due_at = _due(schedule, tick_at)
        if tick_at is None or due_at is None or due_at > now:
            return Decision(position=_standing(schedule, tick_at=tick_at, due_at=due_at, awaits=False))
    if tick_at is None:
        return Decision(position=_standing(schedule, due_at=None))
    more = schedule.runs + 1 != schedule.definition.max_runs
    position = _standing(schedule, tick_at=None, due_at=None, runs=schedule.runs + 1, awaits=more)
    return Decision(ticks=[_fired(tick_at, _nominal(schedule, now))], position=position)


def _sorted_by_misfire(schedule: Schedule, now: datetime) -> tuple[list[Tick], list[datetime], datetime | None]:
    """Return what became of the ticks that are due and do not run, those that may, and the one that comes next."""
    definition = schedule.definition
    if schedule.tick_at is None or schedule.tick_at > now:
        return [], [], schedule.tick_at
    following = definition.next_tick(schedule.tick_at)
    if (following is None or following > now) and now - schedule.tick_at <= definition.longest_delay:
        return [], [schedule.tick_at], following  # for short: one that is on time
    return *_made_up_for(schedule, now), definition.next_tick(now)


def _made_up_for(schedule: Schedule, now: datetime) -> tuple[list[Tick], list[datetime]]:
    """Return what became of the ticks that do not run, and those that may, when some are late."""
    definition = schedule.definition
    assert schedule.tick_at is not None
    most = 1 if definition.misfire is Misfire.COALESCE else CATCH_UP
    still = max(schedule.tick_at, now - definition.longest_delay) - MICROSECOND
    run = last_ticks(definition.trigger, still, now if definition.end is None else min(now, definition.end), most)
    if not run:
        return _passed(schedule, now, Verdict.MISSED, f"nobody fired it within {definition.longest_delay}"), []
    if run[0] == schedule.tick_at:
        return [], run
    if definition.misfire is Misfire.COALESCE:
        return _passed(schedule, run[0] - MICROSECOND, Verdict.COALESCED, f"the tick of {run[0]} stands for it"), run
    why = f"nobody fired it within {definition.longest_delay}, or {CATCH_UP} later ones were due too"
    return _passed(schedule, run[0] - MICROSECOND, Verdict.MISSED, why), run


class _Overlapping:
    """Lets ticks run, one after the other, as far as the overlap policy and the number of runs allow."""

    def __init__(self, schedule: Schedule, nominal: datetime, unfinished: Sequence[UUID]) -> None:
        self._schedule = schedule
        self._nominal = nominal
        self._unfinished = unfinished
        self._busy = bool(unfinished) and schedule.definition.overlap is not Overlap.ALLOW
        self._buffered = schedule.buffered_at
        self._runs = schedule.runs
        self._ticks: list[Tick] = []

    def decide(
        self, run: Sequence[datetime], following: datetime | None
    ) -> tuple[list[Tick], Position, Sequence[UUID]]:
        if self._buffered is not None and self._spent:
            self._skip(self._buffered, "the schedule had made all its jobs")
            self._buffered = None
        if self._buffered is not None and not self._busy:
            self._fire(self._buffered)
            self._buffered = None
        for tick in run:
            self._consider(tick)
        cancels = self._schedule.definition.overlap is Overlap.CANCEL_OTHER and self._buffered is not None
        return self._ticks, self._position(following), self._unfinished if cancels else ()

    @property
    def _spent(self) -> bool:
        return self._runs == self._schedule.definition.max_runs

    def _consider(self, tick: datetime) -> None:
        overlap = self._schedule.definition.overlap
        if self._spent:
            return
        if not self._busy:
            self._fire(tick)
        elif overlap is Overlap.SKIP:
            self._skip(tick, "the job of an earlier tick had not finished")
        elif overlap is Overlap.BUFFER_ONE and self._buffered is not None:
            self._skip(tick, f"the tick of {self._buffered} was waiting already")
        else:
            if self._buffered is not None:
                self._skip(self._buffered, f"the tick of {tick} came before it could run")
            self._buffered = tick
            self._ticks.append(Tick(at=tick, verdict=Verdict.BUFFERED, reason="waits for an earlier job to end"))

    def _fire(self, tick: datetime) -> None:
        self._ticks.append(_fired(tick, self._nominal))
        self._runs += 1
        self._busy = self._schedule.definition.overlap is not Overlap.ALLOW

    def _skip(self, tick: datetime, why: str) -> None:
        self._ticks.append(Tick(at=tick, verdict=Verdict.SKIPPED, reason=why))

    def _position(self, following: datetime | None) -> Position:
        next_tick = None if self._spent else following
        return Position(
            tick_at=next_tick,
            due_at=_due(self._schedule, next_tick),
            runs=self._runs,
            buffered_at=self._buffered,
            awaits=self._buffered is not None,
        )


def _fired(tick: datetime, now: datetime) -> Tick:
    if now - tick < LATE:
        return Tick(at=tick, verdict=Verdict.FIRED)
    return Tick(at=tick, verdict=Verdict.LATE, reason=f"fired {now - tick} after its time")


def _passed(schedule: Schedule, until: datetime, verdict: Verdict, why: str) -> list[Tick]:
    """Return what is said of all the ticks from the one that was due next until then, if there are any."""
    trigger, end, first = schedule.definition.trigger, schedule.definition.end, schedule.tick_at
    if first is None or first > until:
        return []
    if isinstance(trigger, After):
        return [Tick(at=first, verdict=verdict, reason=why)]
    until = until if end is None else min(until, end)
    try:
        count = count_ticks(trigger, first - MICROSECOND, until, _COUNTED)
        last = last_ticks(trigger, first - MICROSECOND, until, 1)
    except InvalidValue:  # a time zone that is not known here: how many there were, another node could tell
        return [Tick(at=first, until=until, count=None, verdict=verdict, reason=why)]
    if count == 1 or not last:  # none, where the rules of a time zone have changed since it was reckoned
        return [Tick(at=first, verdict=verdict, reason=why)]
    return [Tick(at=first, until=last[0], count=count, verdict=verdict, reason=why)]


def _nominal(schedule: Schedule, now: datetime) -> datetime:
    """Return the instant whose tick is due *now*, and on time."""
    return now - spread(schedule.id, schedule.definition.jitter)


def _reached(schedule: Schedule, now: datetime) -> datetime:
    """Return the same, or the next tick if it may have its turn ahead of that instant."""
    nominal, tick = _nominal(schedule, now), schedule.tick_at
    if tick is None or not schedule.definition.ahead or not nominal < tick <= nominal + LEAD:
        return nominal
    return tick


def _due(schedule: NewSchedule | Schedule, tick: datetime | None) -> datetime | None:
    if tick is None:
        return None
    start = tick + spread(schedule.id, schedule.definition.jitter)
    return start - LEAD if schedule.definition.ahead else start


def _standing(schedule: Schedule, **changes: object) -> Position:
    now = {name: getattr(schedule, name) for name in Position.__struct_fields__}
    return Position(**now | changes)
