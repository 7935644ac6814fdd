"""`mainspring schedules list`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, width, without_passwords
from mainspring.cli.schedules.look import (
    WIDE,
    distance,
    instant,
    short_instant,
    state_of,
    trigger_in_short,
    zone_of,
)
from mainspring.clock import SystemClock
from mainspring.documents.schedules import schedule_document
from mainspring.model.schedule import Schedule

_ROOM_FOR_TASKS = 100
"""Columns; with fewer, ids and triggers would be in shreds."""


def list_schedules(team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List all schedules, each with its next tick by the clocks it goes by."""
    with app_at(url, team=team) as app:
        found = app.schedules.list()
    now = SystemClock().now()
    if as_json:
        say_json({"schedules": [schedule_document(one, now) for one in found]})
    elif found:
        _show(found, now)
    else:
        say(f"No schedules in {without_passwords(url)}. Add one with `mainspring schedules add ID TASK --every 15m`.")


def _show(schedules: Sequence[Schedule], now: datetime) -> None:
    tasks, shown = width() >= _ROOM_FOR_TASKS, instant if width() >= WIDE else short_instant
    table = listing()
    for name in ("Id", "Trigger", "Task") if tasks else ("Id", "Trigger"):
        table.add_column(name, overflow="fold")
    table.add_column("Next tick", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("State", max_width=len("waits for"))
    for one in schedules:
        task = [cell(one.definition.task)] if tasks else []
        trigger, tick = one.definition.trigger, None if one.paused else one.tick_at
        coming = (cell(shown(tick, zone_of(trigger))), distance(tick, now)) if tick else (cell(""), cell(""))
        table.add_row(cell(one.id), cell(trigger_in_short(trigger)), *task, *coming, state_of(one, now))
    show(table)
