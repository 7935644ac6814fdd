"""`mainspring schedules backfill`: make jobs of ticks that are past."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.confirm import confirmed
from mainspring.cli.note import note, teams_of
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import counting, say, say_json
from mainspring.cli.schedules import look
from mainspring.cli.schedules.options import ScheduleId, Yes
from mainspring.cli.values import instant
from mainspring.clock import SystemClock
from mainspring.errors import InvalidValue
from mainspring.model.schedule import MICROSECOND
from mainspring.model.text import counted
from mainspring.model.trigger import After, count_ticks
from mainspring.schedules import LARGEST_BACKFILL

From = Annotated[str, typer.Option("--from", metavar="INSTANT", help="The first instant, as in 2030-12-31T09:00:00Z.")]
To = Annotated[str, typer.Option("--to", metavar="INSTANT", help="The instant before which to end.")]


def backfill(  # noqa: PLR0913 - one parameter for each option
    schedule_id: ScheduleId,
    start_text: From,
    end_text: To,
    yes: Yes = False,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Enqueue a job for each tick of a stretch of time that is no job yet."""
    start, end = instant(start_text, "--from"), instant(end_text, "--to")
    if end <= start:
        raise InvalidValue(f"expected --to to come after --from, got: {start_text} and {end_text}")
    with app_at(url, team=team) as app:
        schedules = app.schedules
        schedule = schedules.get(schedule_id)
        trigger = schedule.definition.trigger
        past = max(start - MICROSECOND, min(end - MICROSECOND, SystemClock().now()))
        # None where there are none to count, or too many; then backfill itself refuses, and says why.
        count = (
            None if isinstance(trigger, After) else count_ticks(trigger, start - MICROSECOND, past, LARGEST_BACKFILL)
        )
        where = look.zone_of(trigger)
        span = f"from {look.instant(start, where)} until before {look.instant(end, where)}"
        if count and not yes and not confirmed(f"backfill {counted(count, 'tick')} of {schedule_id} {span}", as_json):
            say("Nothing was changed.")
            return
        span_of = {"start": start.isoformat(), "end": end.isoformat()}
        note(app, "schedule.backfill", teams_of([schedule]), **span_of)
        with counting("Backfill", quiet=as_json):
            jobs = schedules.backfill(schedule_id, start, end)
    if as_json:
        say_json({"schedule": schedule_id, "ticks": count, "jobs": [str(job.id) for job in jobs]})
    elif not count:
        say(f"{schedule_id} has no past tick {span}.")
    else:
        rest = f"; {counted(count - len(jobs), 'tick')} had one already" if len(jobs) < count else ""
        say(f"Enqueued {counted(len(jobs), 'job')}{rest}.")
