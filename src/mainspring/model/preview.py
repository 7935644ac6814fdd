"""When a trigger will fire, and what the clocks do to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

import msgspec

from mainspring.model.cron import (
    DAY,
    SECOND,
    Expression,
    expression,
    first_change,
    next_tick,
    offset_at,
    offsets_of,
    zone,
)
from mainspring.model.trigger import Cron, Trigger, ticks, utc

_FOREVER = datetime.max.replace(tzinfo=UTC)
_NEAR = timedelta(days=8)
"""How long after a gap the tick that follows it is told about it; a weekly one may be that late."""

_MOST = 10
"""Ticks of one repeated hour that are remarked on; every second would have thousands."""


class Preview(msgspec.Struct, frozen=True):
    """A tick, with a remark if the clocks are changed there."""

    at: datetime
    local: datetime
    remark: str | None = None


def preview(trigger: Trigger, after: datetime, n: int) -> list[Preview]:
    """Return the first *n* ticks after *after*, of After the only one that can be told."""
    return [_preview(trigger, tick) for tick in islice(ticks(trigger, after, _FOREVER), n)]


def dst_remarks(trigger: Trigger, after: datetime, until: datetime) -> list[Preview]:
    """Return the ticks that are touched by changes of the clocks in (*after*, *until*], up to ten for each change.

    Only the changes are looked at, not the ticks between them.
    """
    if not isinstance(trigger, Cron):
        return []
    named, where = expression(trigger.expression), zone(trigger.tz)
    touched = []
    for change in _changes(where, utc(after), utc(until)):
        for tick, remark in islice(_touched(named, where, change), _MOST):
            touched.append(Preview(tick, tick.astimezone(where), remark))
    return touched


def _preview(trigger: Trigger, tick: datetime) -> Preview:
    if not isinstance(trigger, Cron):
        return Preview(tick, tick)
    named, where = expression(trigger.expression), zone(trigger.tz)
    remark = _twice(named, where, tick)
    for change in _changes(where, tick - _NEAR, tick):
        remark = remark or _after_gap(named, where, change, tick)
    return Preview(tick, tick.astimezone(where), remark)


def _touched(named: Expression, where: tzinfo, change: datetime) -> Iterator[tuple[datetime, str]]:
    back = offset_at(where, change - SECOND) - offset_at(where, change)
    tick = next_tick(named, where, change - max(back, timedelta(0)) - SECOND)
    if tick and (remark := _after_gap(named, where, change, tick)):
        yield tick, remark
    while tick and (remark := _twice(named, where, tick)):
        yield tick, remark
        tick = next_tick(named, where, tick)


def _twice(named: Expression, where: tzinfo, tick: datetime) -> str | None:
    local = tick.astimezone(where)
    first, last = offsets_of(where, local.replace(tzinfo=None))
    if first <= last:
        return None
    if named.real_time:
        return f"the clocks go back here: {_shown(local)} happens twice, and runs both times"
    return f"{_shown(local)} happens twice that day; runs once, the first time"


def _after_gap(named: Expression, where: tzinfo, change: datetime, tick: datetime) -> str | None:
    """Return what to say of *tick* if it is the first after a gap at *change* in which others were due."""
    here = change.replace(tzinfo=None)
    begin, end = here + offset_at(where, change - SECOND), here + offset_at(where, change)
    missing = named.first(begin)
    if missing is None or missing >= end or next_tick(named, where, change - SECOND) != tick:
        return None
    if named.real_time:
        return f"the clocks go forward here: {_shown(begin)} to {_shown(end)} does not exist"
    return f"{_shown(missing)} does not exist that day; runs right after the gap"


def _changes(where: tzinfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the changes of the clocks in (*after*, *until*]; no zone has two within a day."""
    after, until = after.replace(microsecond=0), until.replace(microsecond=0)
    while after < until:
        end = min(after + DAY, until)
        if offset_at(where, end) != offset_at(where, after):
            yield first_change(where, after, end)
        after = end


def _shown(local: datetime) -> str:
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
