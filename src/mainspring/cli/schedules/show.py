"""`mainspring schedules show`: all that is known of one schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, say, say_json, show
from mainspring.cli.schedules.history import tick_table
from mainspring.cli.schedules.look import arguments, distance, instant, state_of, zone_of
from mainspring.cli.schedules.options import ScheduleId
from mainspring.cli.times import ago, local, span
from mainspring.clock import SystemClock
from mainspring.documents.schedules import schedule_document, tick_document
from mainspring.model.schedule import Origin, Schedule, spread
from mainspring.model.team import full_name, local_name

_LAST_TICKS = 5


def show_schedule(schedule_id: ScheduleId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one schedule: what it says, where it stands, and what became of its last ticks."""
    with app_at(url, team=team) as app:
        schedule = app.schedules.get(schedule_id)
        ticks = app.schedules.history(schedule_id, limit=_LAST_TICKS)
    now = SystemClock().now()
    if as_json:
        say_json({**schedule_document(schedule, now), "ticks": [tick_document(tick) for tick in ticks]})
        return
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(Text("Schedule", "bold"), cell(schedule.id))
    facts.add_row(Text("State", "bold"), state_of(schedule, now))
    for name, value in _facts(schedule, now):
        facts.add_row(Text(name, "bold"), cell(value))
    show(facts)
    say("")
    say("Last ticks" if ticks else "No tick has come yet.", "bold" if ticks else "")
    if ticks:
        show(tick_table(ticks, schedule), indent=2)


def _facts(schedule: Schedule, now: datetime) -> Iterator[tuple[str, str]]:
    definition = schedule.definition
    yield "Task", definition.task
    yield "Arguments", arguments(definition.payload)
    yield "Queue", f"{definition.queue}, priority {definition.priority}"
    yield "Trigger", str(definition.trigger)
    yield from _times(schedule, now)
    yield "Overlap", definition.overlap
    yield "Misfire", f"{definition.misfire}, up to {span(definition.longest_delay)} late"
    yield "Runs", f"{schedule.runs:,}" + (f" of {definition.max_runs:,}" if definition.max_runs else "")
    if definition.expect_success_within is not None:
        where = zone_of(definition.trigger)
        by = f", by {instant(schedule.expected_by, where)}" if schedule.expected_by else ""
        yield "Success", f"expected within {span(definition.expect_success_within)}{by}"
    yield "Defined", "in code" if schedule.origin is Origin.CODE else "by a call"
    yield "Created", f"{local(schedule.created_at)} ({ago(schedule.created_at, now)})"
    if schedule.changed_at != schedule.created_at:
        yield "Changed", f"{local(schedule.changed_at)} ({ago(schedule.changed_at, now)})"
    yield from ((name, words) for name, words in (("Team", definition.team), ("Notes", definition.notes)) if words)


def _times(schedule: Schedule, now: datetime) -> Iterator[tuple[str, str]]:
    definition, where = schedule.definition, zone_of(schedule.definition.trigger)
    if schedule.paused_at is not None:
        why = f": {schedule.reason}" if schedule.reason else ""
        yield "Paused", f"by {schedule.paused_by}, {ago(schedule.paused_at, now)}{why}"
    if schedule.tick_at is not None and schedule.paused:
        yield "Held", f"its ticks from {instant(schedule.tick_at, where)} on"
    elif schedule.tick_at is not None:
        also = f", {instant(schedule.tick_at, UTC)}" if where is not UTC else ""
        yield "Next tick", f"{instant(schedule.tick_at, where)} ({distance(schedule.tick_at, now)}){also}"
    if schedule.buffered_at is not None:
        yield "Buffered", f"the tick of {instant(schedule.buffered_at, where)} waits for an earlier job to end"
    if definition.jitter:
        later = span(spread(full_name(definition.team, local_name(schedule.id)), definition.jitter))
        yield "Jitter", f"{span(definition.jitter)}; it always fires {later} after its ticks"
    for name, bound in (("Start", definition.start), ("End", definition.end)):
        if bound is not None:
            yield name, instant(bound, where)
