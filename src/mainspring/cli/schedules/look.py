"""How schedules and their ticks look to people."""

from __future__ import annotations

from datetime import datetime, tzinfo

import msgspec
from rich.text import Text

from mainspring.cli.output import cell
from mainspring.cli.times import ago, until
from mainspring.documents.schedules import schedule_state
from mainspring.model.firing import LATE
from mainspring.model.payload import decode_call
from mainspring.model.schedule import Schedule
from mainspring.model.sealed import is_closed
from mainspring.model.text import cut
from mainspring.model.tick import Verdict
from mainspring.model.trigger import At, Cron, Trigger
from mainspring.model.wording import clock_time, instant, zone_of

__all__ = [
    "WIDE",
    "arguments",
    "distance",
    "instant",
    "short_instant",
    "standing",
    "state_of",
    "trigger_in_short",
    "verdict_of",
    "zone_of",
]

WIDE = 110
"""Columns from which there is room for whole dates."""

_LONGEST_ARGUMENTS = 2_000

_STATES = {
    "active": "green",
    "paused": "magenta",
    "ended": "dim",
    "waits for its job": "cyan",
    "overdue": "bold red",
}
_VERDICTS = {
    Verdict.FIRED: "green",
    Verdict.LATE: "yellow",
    Verdict.TRIGGERED: "cyan",
    Verdict.BACKFILLED: "cyan",
    Verdict.BUFFERED: "blue",
    Verdict.SKIPPED: "magenta",
    Verdict.COALESCED: "dim",
    Verdict.MISSED: "bold red",
}


def state_of(schedule: Schedule, now: datetime) -> Text:
    word = schedule_state(schedule, now)
    return Text(word, _STATES[word])


def standing(schedule: Schedule, now: datetime) -> str:
    """Return in one line where *schedule* stands."""
    tick = schedule.tick_at
    if schedule.ended:
        return f"{schedule.id} {schedule_state(schedule, now)}: no tick is left"
    if tick is None or schedule.paused:
        return f"{schedule.id} {schedule_state(schedule, now)}"
    shown = instant(tick, zone_of(schedule.definition.trigger))
    return f"{schedule.id} {schedule_state(schedule, now)}, next tick {shown} ({distance(tick, now)})"


def verdict_of(verdict: Verdict) -> Text:
    return Text(verdict, _VERDICTS[verdict])


def trigger_in_short(trigger: Trigger) -> str:
    """Return *trigger* without what the next tick beside it tells: an instant, or the letters of a zone."""
    if isinstance(trigger, At):
        return "once"
    if isinstance(trigger, Cron):
        return trigger.expression
    return str(trigger).partition(" from ")[0].replace("the last job ended", "its job")


def short_instant(moment: datetime, where: tzinfo) -> str:
    """Return *moment* by the clocks of *where*, without the year: `17 Jul 09:00 CEST`."""
    return f"{moment.astimezone(where):%d %b} {clock_time(moment, where)}"


def distance(tick: datetime, now: datetime) -> Text:
    """Return how far off *tick* is, coloured if it should have fired long ago."""
    if tick > now:
        return cell(until(tick, now))
    return cell(ago(tick, now), "yellow" if now - tick > LATE else "")


def arguments(payload: str) -> str:
    if is_closed(payload):
        return "encrypted"
    call = decode_call(payload)
    by_name = [f"{name}={_json(value)}" for name, value in call.kwargs.items()]
    return cut(", ".join([*map(_json, call.args), *by_name]), _LONGEST_ARGUMENTS) or "none"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
