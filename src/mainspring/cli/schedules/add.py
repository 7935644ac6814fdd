"""`mainspring schedules add`: have a task enqueued in time, once or again and again."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, cast

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import app_at
from mainspring.cli.enqueue import Arguments, Kwargs, PriorityName, Queue, Task, check_no_options
from mainspring.cli.note import note
from mainspring.cli.options import AppName, AppUrl, AsJson, Team
from mainspring.cli.output import say, say_json
from mainspring.cli.schedules.look import standing
from mainspring.cli.schedules.options import AllSchedules, ScheduleId
from mainspring.cli.values import arguments, instant, length, priority
from mainspring.clock import SystemClock
from mainspring.documents.schedules import schedule_document
from mainspring.errors import InvalidValue, ScheduleNotFound
from mainspring.model.schedule import Misfire, Origin, Overlap, Schedule
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.trigger import Trigger, after, at, cron, every
from mainspring.schedules import ScheduleOptions

CronText = Annotated[
    str | None,
    typer.Option("--cron", metavar="FIELDS", help="When the clocks match, as in '0 9 * * mon-fri' or @daily."),
]
ZoneName = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Whose clocks --cron means, as in Europe/Berlin; else UTC's.")
]
EveryText = Annotated[
    str | None, typer.Option("--every", metavar="LENGTH", help="At a fixed rate, as in 15m, counted from --start.")
]
AfterText = Annotated[
    str | None, typer.Option("--after", metavar="LENGTH", help="So long after its last job has ended, as in 30s.")
]
AtText = Annotated[str | None, typer.Option("--at", metavar="INSTANT", help="Once, as in 2030-12-31T09:00:00Z.")]
Start = Annotated[str | None, typer.Option("--start", metavar="INSTANT", help="No tick comes before.")]
End = Annotated[str | None, typer.Option("--end", metavar="INSTANT", help="No tick comes after.")]
MaxRuns = Annotated[int | None, typer.Option("--max-runs", min=1, metavar="N", help="How many jobs it makes at most.")]
OverlapName = Annotated[
    str | None,
    typer.Option(
        "--overlap",
        metavar="POLICY",
        help=f"What a tick does while an earlier job has not finished: {', '.join(Overlap)}.",
        autocompletion=lambda: [str(policy) for policy in Overlap],
    ),
]
MisfireName = Annotated[
    str | None,
    typer.Option(
        "--misfire",
        metavar="POLICY",
        help=f"What becomes of ticks that nobody fired in time: {', '.join(Misfire)}.",
        autocompletion=lambda: [str(policy) for policy in Misfire],
    ),
]
Grace = Annotated[str | None, typer.Option("--grace", metavar="LENGTH", help="How late a tick may be and still run.")]
Jitter = Annotated[
    str | None,
    typer.Option("--jitter", metavar="LENGTH", help="Fire up to so much later, so that not all fire at once."),
]
ExpectSuccess = Annotated[
    str | None,
    typer.Option(
        "--expect-success-within", metavar="LENGTH", help="Raise the alarm when no job has succeeded by then."
    ),
]
Notes = Annotated[str | None, typer.Option("--notes", metavar="TEXT", help="What people should know about it.")]


def add(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    schedule_id: ScheduleId,
    task: Task,
    args: Arguments = None,
    kwargs: Kwargs = None,
    cron_text: CronText = None,
    tz: ZoneName = None,
    every_text: EveryText = None,
    after_text: AfterText = None,
    at_text: AtText = None,
    start_text: Start = None,
    end_text: End = None,
    max_runs: MaxRuns = None,
    queue: Queue = None,
    priority_name: PriorityName = None,
    overlap: OverlapName = None,
    misfire: MisfireName = None,
    grace: Grace = None,
    jitter: Jitter = None,
    expect_success_within: ExpectSuccess = None,
    notes: Notes = None,
    team: Team = None,
    app: AppName = None,
    url: AppUrl = None,
    as_json: AsJson = False,
) -> None:
    """Add a schedule that enqueues a task when --cron, --every, --after or --at says so.

    One whose id is known is defined anew. With an app the task must exist there and take the arguments.
    """
    check_no_options(context, args or [])
    by_position, by_name = arguments(args or [], kwargs)
    start = _instant(start_text, "--start")
    end = _instant(end_text, "--end")
    if start is not None and end is not None and end < start:
        raise InvalidValue(f"expected --end to come after --start, got: {start_text} and {end_text}")
    trigger = _trigger(cron_text, tz, every_text, after_text, at_text, start)
    given = {
        "args": by_position,
        "kwargs": by_name,
        "start": start if every_text is None else None,  # the trigger has it, and counts from it
        "end": end,
        "max_runs": max_runs,
        "queue": queue,
        "priority": None if priority_name is None else priority(priority_name),
        "overlap": overlap,
        "misfire": misfire,
        "grace": _length(grace, "--grace"),
        "jitter": _length(jitter, "--jitter"),
        "expect_success_within": _length(expect_success_within, "--expect-success-within"),
        "notes": notes,
    }
    options = cast(ScheduleOptions, {name: value for name, value in given.items() if value is not None})
    with app_at(url, app, team, new=True) as sender:
        if isinstance(sender, Mainspring):
            new = sender.schedules.new(schedule_id, task, trigger, **options)  # which refuses what is wrong with it
            owner = {new.id: new.definition.team or DEFAULT_TEAM}
            note(sender, "schedule.add", owner, task=new.definition.task, trigger=str(trigger))
        before = _known(sender.schedules, schedule_id)
        schedule = sender.schedules.add(schedule_id, task, trigger, **options)
    now = SystemClock().now()
    if as_json:
        say_json(schedule_document(schedule, now))
    else:
        say(f"{standing(schedule, now)}{_about_before(before)}")


def _trigger(
    cron_text: str | None,
    tz: str | None,
    every_text: str | None,
    after_text: str | None,
    at_text: str | None,
    start: datetime | None,
) -> Trigger:
    texts = {"--cron": cron_text, "--every": every_text, "--after": after_text, "--at": at_text}
    named = [name for name, text in texts.items() if text is not None]
    if len(named) != 1:
        raise InvalidValue(f"expected one of {', '.join(texts)}, got {' and '.join(named) or 'none'}")
    if tz is not None and cron_text is None:
        raise InvalidValue(f"expected --tz with --cron, got it with {named[0]}, which goes by no clocks of a zone")
    if cron_text is not None:
        return cron(cron_text, "UTC" if tz is None else tz)
    if every_text is not None:
        return every(length(every_text, "--every"), start)
    if after_text is not None:
        return after(length(after_text, "--after"))
    return at(instant(at_text or "", "--at"))


def _instant(text: str | None, option: str) -> datetime | None:
    return None if text is None else instant(text, option)


def _length(text: str | None, option: str) -> timedelta | None:
    return None if text is None else length(text, option)


def _known(schedules: AllSchedules, schedule_id: str) -> Schedule | None:
    with suppress(ScheduleNotFound):
        return schedules.get(schedule_id)
    return None


def _about_before(before: Schedule | None) -> str:
    if before is None:
        return ""
    if before.origin is Origin.CODE:
        return "; it was defined in code, which defines it again when a worker starts"
    return "; it was there before, and is defined anew"
