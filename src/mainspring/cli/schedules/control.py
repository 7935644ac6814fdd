"""`mainspring schedules pause`, `resume`, `remove` and `trigger`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import App, app_at
from mainspring.cli.confirm import confirmed
from mainspring.cli.note import note, teams_of
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import complain, say, say_json
from mainspring.cli.pauses import By, Reason, who
from mainspring.cli.schedules.look import standing
from mainspring.cli.schedules.options import ScheduleId, ScheduleIds, Yes
from mainspring.clock import SystemClock
from mainspring.documents.schedules import schedule_document
from mainspring.errors import ScheduleNotFound
from mainspring.model.schedule import Origin, Schedule
from mainspring.model.text import counted

T = TypeVar("T")

_MISSING = 1


def pause(
    ids: ScheduleIds,
    reason: Reason = None,
    by: By = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Hold schedules until they are resumed. The jobs that they have made go on."""
    _move("pause", ids, lambda app, one: app.schedules.pause(one, reason=reason, **who(app, by)), team, url, as_json)


def resume(ids: ScheduleIds, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let schedules go on with their next tick. Those that came in the meantime are skipped."""
    _move("resume", ids, lambda app, one: app.schedules.resume(one), team, url, as_json)


def remove(
    ids: ScheduleIds, yes: Yes = False, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Remove schedules. Their jobs and their history stay."""
    with app_at(url, team=team) as app:
        schedules = app.schedules
        found, missing = _each(ids, schedules.get)
        if found and not yes and not confirmed(f"remove {counted(len(found), 'schedule')}", as_json):
            say("Nothing was changed.")
            return
        note(app, "schedule.remove", teams_of(found))
        _, gone = _each((one.id for one in found), schedules.remove)
    missing |= gone
    removed = [one for one in found if one.id not in gone]
    if as_json:
        say_json({"removed": [one.id for one in removed], "missing": list(missing)})
    else:
        for one in removed:
            in_code = one.origin is Origin.CODE
            say(f"{one.id} removed{'; its code brings it back when a worker starts' if in_code else ''}")
    _complain(missing)


def trigger(schedule_id: ScheduleId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Enqueue the job of a schedule now, out of turn and even if it is paused; print the job's id and state."""
    with app_at(url, team=team) as app:
        note(app, "schedule.trigger", teams_of([app.schedules.get(schedule_id)]))
        job = app.schedules.trigger(schedule_id).refresh()
    if as_json:
        say_json({"id": str(job.id), "state": job.state, "task": job.task, "queue": job.queue})
    else:
        say(f"{job.id} {job.state}")


def _move(
    verb: str, ids: list[str], move: Callable[[App, str], Schedule], team: str | None, url: str, as_json: bool
) -> None:
    with app_at(url, team=team) as app:
        found, _ = _each(ids, app.schedules.get)
        note(app, f"schedule.{verb}", teams_of(found))
        moved, missing = _each(ids, lambda one: move(app, one))
    now = SystemClock().now()
    if as_json:
        say_json({"schedules": [schedule_document(one, now) for one in moved], "missing": list(missing)})
    else:
        for one in moved:
            say(standing(one, now))
    _complain(missing)


def _each(ids: Iterable[str], act: Callable[[str], T]) -> tuple[list[T], dict[str, ScheduleNotFound]]:
    """Act on each schedule once; return what came of it, and what to say of the ids that no schedule has."""
    done: list[T] = []
    missing: dict[str, ScheduleNotFound] = {}
    for one in dict.fromkeys(ids):
        try:
            done.append(act(one))
        except ScheduleNotFound as error:
            missing[one] = error
    return done, missing


def _complain(missing: Mapping[str, ScheduleNotFound]) -> None:
    for error in missing.values():
        complain(str(error))
    if missing:
        raise typer.Exit(_MISSING)
