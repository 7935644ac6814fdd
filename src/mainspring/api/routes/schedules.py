"""Schedules: defined, looked at, held, fired out of turn, and made up for."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import AwareDatetime
from starlette.responses import Response

from mainspring.api.callers import Asking, Caller
from mainspring.api.channels import channels
from mainspring.api.documents import (
    AfterRequest,
    AtRequest,
    BackfillRequest,
    CronRequest,
    EveryRequest,
    IdsDocument,
    Name,
    PreviewRequest,
    Previews,
    ReasonRequest,
    ScheduleDocument,
    SchedulePage,
    ScheduleRequest,
    TickPage,
)
from mainspring.api.pages import Limit, NameInPath, page
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer, nothing
from mainspring.documents.schedules import preview_document, schedule_document, tick_document
from mainspring.errors import ScheduleNotFound
from mainspring.model.channel import decode_channels
from mainspring.model.preview import preview
from mainspring.model.schedule import Schedule
from mainspring.model.token import Role
from mainspring.model.trigger import Trigger, after, at, cron, every
from mainspring.schedules import ScheduleOptions

routes = Routes("schedules")

_NO_OPTIONS = ("task", "trigger")
_PREVIEW = Annotated[int, Query(ge=1, le=1_000, description="How many ticks to show.")]


@routes.get("/schedules", needs(Role.VIEWER), gives=SchedulePage)
def list_schedules(
    caller: Asking,
    after: Annotated[Name | None, Query(description="Only those behind this one, for the next page.")] = None,
    limit: Limit = 50,
) -> Response:
    """List schedules, in the order of their ids."""
    found = caller.app.schedules.page(after or "", limit)
    return answer(page(found, limit, lambda one: _document(caller, one), lambda one: one.id))


@routes.post("/schedules/preview", needs(Role.VIEWER), gives=Previews)
def preview_trigger(caller: Asking, wanted: PreviewRequest) -> Response:
    """Show when a trigger would fire that is not saved."""
    start = wanted.after or caller.app.client.clock.now()
    found = preview(_trigger(wanted.trigger), start, wanted.limit)
    return answer({"items": [preview_document(tick) for tick in found]})


@routes.get("/schedules/{schedule_id:path}/preview", needs(Role.VIEWER), gives=Previews)
def preview_schedule(
    caller: Asking,
    schedule_id: NameInPath,
    limit: _PREVIEW = 10,
    after: Annotated[AwareDatetime | None, Query(description="Those behind this instant.")] = None,
) -> Response:
    """Show the next ticks of a schedule, with a remark where the clocks change."""
    found = caller.app.schedules.preview(schedule_id, limit, after)
    return answer({"items": [preview_document(tick) for tick in found]})


@routes.get("/schedules/{schedule_id:path}/history", needs(Role.VIEWER), gives=TickPage)
def list_ticks(
    caller: Asking,
    schedule_id: NameInPath,
    before: Annotated[AwareDatetime | None, Query(description="Only those before this instant.")] = None,
    limit: Limit = 50,
) -> Response:
    """List what became of the ticks of a schedule, the latest first."""
    found = caller.app.schedules.history(schedule_id, before=before, limit=limit)
    return answer(page(found, limit, tick_document, lambda tick: tick.at.isoformat()))


@routes.get("/schedules/{schedule_id:path}", needs(Role.VIEWER), gives=ScheduleDocument)
def get_schedule(caller: Asking, schedule_id: NameInPath) -> Response:
    """Show a schedule."""
    return answer(_document(caller, caller.app.schedules.get(schedule_id)))


@routes.put(
    "/schedules/{schedule_id:path}",
    needs(Role.OPERATOR, records="schedule.add"),
    gives=ScheduleDocument,
    also={201: ScheduleDocument},
    problems=(429,),
)
def put_schedule(caller: Asking, schedule_id: NameInPath, wanted: ScheduleRequest) -> Response:
    """Define a schedule, or define it anew.

    One that is known goes on where it stands, unless its times are other ones, and tells whom it told unless `notify`
    is said: that is never shown, so who has only read it could not say it. 201 says that it is new.
    """
    known = _known(caller, schedule_id)
    said = {name: getattr(wanted, name) for name in wanted.model_fields_set if name not in _NO_OPTIONS}
    options: Any = {name: value for name, value in said.items() if value is not None}
    if "notify" in options:
        options["notify"] = channels(options["notify"])
    elif known is not None and known.definition.notify is not None:
        options["notify"] = decode_channels(known.definition.notify)
    given: ScheduleOptions = options
    trigger = _trigger(wanted.trigger)
    caller.app.schedules.new(schedule_id, wanted.task, trigger, **given)  # which refuses what is wrong with it
    caller.record(schedule_id, task=wanted.task, trigger=str(trigger))
    caller.admit(schedules=0 if known else 1)
    stored = caller.app.schedules.add(schedule_id, wanted.task, trigger, **given)
    return answer(_document(caller, stored), 200 if known else 201)


@routes.delete("/schedules/{schedule_id:path}", needs(Role.OPERATOR, records="schedule.remove"), status=204)
def remove_schedule(caller: Asking, schedule_id: NameInPath) -> Response:
    """Remove a schedule. Its jobs and its history stay."""
    caller.app.schedules.get(schedule_id)
    caller.record(schedule_id)
    caller.app.schedules.remove(schedule_id)
    return nothing()


@routes.post(
    "/schedules/{schedule_id:path}/pause", needs(Role.OPERATOR, records="schedule.pause"), gives=ScheduleDocument
)
def pause_schedule(caller: Asking, schedule_id: NameInPath, why: ReasonRequest | None = None) -> Response:
    """Hold a schedule until it is resumed. What it has enqueued goes on."""
    caller.app.schedules.get(schedule_id)
    reason = None if why is None else why.reason
    caller.record(schedule_id, reason=reason)
    return answer(_document(caller, caller.app.schedules.pause(schedule_id, reason=reason, by=caller.actor)))


@routes.post(
    "/schedules/{schedule_id:path}/resume", needs(Role.OPERATOR, records="schedule.resume"), gives=ScheduleDocument
)
def resume_schedule(caller: Asking, schedule_id: NameInPath) -> Response:
    """Let a schedule go on with its next tick; those that came in the meantime are recorded as skipped."""
    caller.app.schedules.get(schedule_id)
    caller.record(schedule_id)
    return answer(_document(caller, caller.app.schedules.resume(schedule_id)))


@routes.post(
    "/schedules/{schedule_id:path}/trigger",
    needs(Role.OPERATOR, records="schedule.trigger"),
    gives=IdsDocument,
    status=201,
    problems=(429,),
)
def trigger_schedule(caller: Asking, schedule_id: NameInPath) -> Response:
    """Enqueue the job of a schedule now, out of turn, even when it is paused."""
    caller.app.schedules.get(schedule_id)
    caller.record(schedule_id)
    caller.admit(jobs=1)
    return answer({"jobs": [caller.app.schedules.trigger(schedule_id).id]}, 201)


@routes.post(
    "/schedules/{schedule_id:path}/backfill",
    needs(Role.OPERATOR, records="schedule.backfill"),
    gives=IdsDocument,
    status=201,
    problems=(429,),
)
def backfill_schedule(caller: Asking, schedule_id: NameInPath, time: BackfillRequest) -> Response:
    """Enqueue jobs for the ticks of a time in the past that are no jobs yet."""
    caller.app.schedules.get(schedule_id)
    caller.record(schedule_id, start=time.start.isoformat(), end=time.end.isoformat())
    caller.admit(jobs=len(caller.app.schedules.ticks(schedule_id, time.start, time.end)))
    made = caller.app.schedules.backfill(schedule_id, time.start, time.end)
    return answer({"jobs": [job.id for job in made]}, 201)


def _trigger(wanted: CronRequest | EveryRequest | AfterRequest | AtRequest) -> Trigger:
    match wanted:
        case CronRequest():
            return cron(wanted.expression, wanted.tz)
        case EveryRequest():
            return every(wanted.length, wanted.start)
        case AfterRequest():
            return after(wanted.length)
        case AtRequest():
            return at(wanted.when)


def _known(caller: Caller, schedule_id: str) -> Schedule | None:
    try:
        return caller.app.schedules.get(schedule_id)
    except ScheduleNotFound:
        return None


def _document(caller: Caller, schedule: Schedule) -> dict[str, object]:
    return schedule_document(schedule, caller.app.client.clock.now())
