"""`mainspring schedules preview`: when a schedule will fire, and what the clocks do to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.schedules.look import distance, instant, zone_of
from mainspring.cli.schedules.options import ScheduleId
from mainspring.clock import SystemClock
from mainspring.documents.schedules import preview_document
from mainspring.model.preview import Preview
from mainspring.model.schedule import Schedule

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="How many ticks to show.")]


def preview(
    schedule_id: ScheduleId, limit: Limit = 20, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Show the next ticks of a schedule, by its clocks and in UTC, with a remark where the clocks change."""
    with app_at(url, team=team) as app:
        schedule = app.schedules.get(schedule_id)
        ticks = [] if schedule.ended else app.schedules.preview(schedule_id, limit)
    if as_json:
        say_json({"schedule": schedule_id, "ticks": [preview_document(tick) for tick in ticks]})
    elif ticks:
        _show(schedule, ticks, SystemClock().now())
        if schedule.paused:
            say(f"{schedule_id} is paused: none of these comes before it is resumed.", "magenta")
    else:
        say(f"{schedule_id} has no tick left.")


def _show(schedule: Schedule, ticks: Sequence[Preview], now: datetime) -> None:
    where = zone_of(schedule.definition.trigger)
    columns = ["UTC", ""] if where is UTC else [str(where), "UTC", ""]
    table = listing(*columns)
    for column in table.columns:
        column.no_wrap = True
    remarks = any(tick.remark for tick in ticks)
    if remarks:
        table.add_column("Remark")
    for tick in ticks:
        local = [] if where is UTC else [cell(instant(tick.at, where))]
        remark = [cell(tick.remark or "", "yellow")] if remarks else []
        table.add_row(*local, cell(f"{tick.at:%Y-%m-%d %H:%M:%S}"), distance(tick.at, now), *remark)
    show(table)
