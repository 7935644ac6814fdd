"""Schedules: what fires when, what became of it, and what people do about it."""

from __future__ import annotations

import math
from bisect import bisect_left
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.documents.schedules import schedule_document, schedule_state
from mainspring.errors import InvalidValue, ScheduleNotFound
from mainspring.heat import bounds, expected, heat
from mainspring.model.preview import Preview
from mainspring.model.schedule import Origin, Schedule, spread
from mainspring.model.team import full_name
from mainspring.model.text import counted, shortened
from mainspring.model.tick import TickRecord, Verdict
from mainspring.model.token import Role
from mainspring.model.trigger import After, Trigger
from mainspring.model.wording import in_words, instant, zone_of
from mainspring.web.pages import Pages, Visit

pages = Pages()

_PAGE = 25
"""Schedules on a page: the last ticks of each are looked up by themselves."""

_STRIP = 20
_TICKS = 50
_BUSIEST = 5
_BUDGET = 50_000
"""Minutes that a heat map may take, so that the page takes no longer than a second or two."""

_LOOK = needs(Role.VIEWER)


@pages.get("/schedules", _LOOK)
def list_schedules(visit: Visit) -> Response:
    """Show schedules, by their ids."""
    after = visit.asked("after")
    found = visit.app.schedules.page(after, _PAGE + 1)
    shown = found[:_PAGE]
    further = f"/schedules?{urlencode({'after': shown[-1].id})}" if len(found) > _PAGE else None
    return visit.show(
        "schedules.html", rows=[_row(visit, one) for one in shown], further=further, first=not after, verdicts=Verdict
    )


@pages.get("/schedules/-/heat", _LOOK)
def show_heat(visit: Visit) -> Response:
    """Show how busy each hour of the coming week is."""
    load = heat(visit.app.schedules.list(), visit.app.client.clock.now(), _BUDGET)
    peaks = load.peaks()
    ends = bounds([peak for peak in peaks.values() if peak]) if any(peaks.values()) else []
    return visit.show(
        "heat.html",
        days=load.days(),
        peaks={place: math.ceil(peak) for place, peak in peaks.items()},  # as what the legend says
        levels={place: bisect_left(ends, peak) + 1 if peak else 0 for place, peak in peaks.items()},
        bounds=ends,
        busiest=[
            (instant(one.at, UTC), expected(one.ticks), expected(one.schedules)) for one in load.busiest(_BUSIEST)
        ],
        left_out=load.left_out,
    )


def show_schedule(visit: Visit) -> Response:
    """Show all that is known of a schedule.

    It is declared last: its address takes in all others. Those are below a hyphen, with which no id begins.
    """
    schedule = visit.app.schedules.get(visit.path["schedule_id"])
    before = _before(visit)
    ticks = visit.app.schedules.history(schedule.id, before=before, limit=_TICKS + 1)
    older = None
    if len(ticks) > _TICKS:
        older = f"{address(schedule.id)}?{urlencode({'before': ticks[_TICKS - 1].at.isoformat()})}"
    trigger = schedule.definition.trigger
    ahead, wrong = _ahead(visit, schedule)
    return visit.show(
        "schedule.html",
        **_row(visit, schedule, ticks[:_STRIP]),
        document=schedule_document(schedule, visit.app.client.clock.now()),
        ahead=[(instant(tick.at, clocks_of(trigger)), tick) for tick in ahead],
        wrong=wrong,
        ticks=[_told(tick, schedule) for tick in ticks[:_TICKS]],
        older=older,
        newest=before is None,
        in_code=schedule.origin is Origin.CODE,
        later=spread(full_name(schedule.definition.team, schedule.id), schedule.definition.jitter),
        refilled=not isinstance(trigger, After),
        may=visit.may("operator"),
    )


@pages.post("/schedules/-/pause", needs(Role.OPERATOR, records="schedule.pause"))
def pause_schedule(visit: Visit) -> Response:
    """Hold a schedule until it is resumed."""
    schedule_id, reason = known(visit).id, visit.form.words("reason")
    visit.caller.record(schedule_id, reason=reason)
    visit.app.schedules.pause(schedule_id, reason=reason, by=visit.caller.actor)
    return visit.go(address(schedule_id), "It is paused; the jobs that it has made go on.")


@pages.post("/schedules/-/resume", needs(Role.OPERATOR, records="schedule.resume"))
def resume_schedule(visit: Visit) -> Response:
    """Let a schedule go on with its next tick."""
    schedule_id = known(visit).id
    visit.caller.record(schedule_id)
    visit.app.schedules.resume(schedule_id)
    return visit.go(address(schedule_id), "It goes on with its next tick; those that came in the meantime are skipped.")


@pages.post("/schedules/-/trigger", needs(Role.OPERATOR, records="schedule.trigger"))
def trigger_schedule(visit: Visit) -> Response:
    """Enqueue its job now, out of turn."""
    schedule_id = known(visit).id
    visit.caller.record(schedule_id)
    visit.caller.admit(jobs=1)
    job = visit.app.schedules.trigger(schedule_id)
    return visit.go(f"/jobs/{job.id}", f"This is the job of {schedule_id}, made out of turn.")


@pages.get("/schedules/-/remove", needs(Role.OPERATOR))
def ask_to_remove(visit: Visit) -> Response:
    """Ask whether it is meant."""
    schedule = known(visit)
    return visit.show("remove_schedule.html", **_row(visit, schedule), in_code=schedule.origin is Origin.CODE)


@pages.post("/schedules/-/remove", needs(Role.OPERATOR, records="schedule.remove"))
def remove_schedule(visit: Visit) -> Response:
    schedule_id = known(visit).id
    visit.caller.record(schedule_id)
    visit.app.schedules.remove(schedule_id)
    return visit.go("/schedules", f"{schedule_id} is removed; its jobs stay.")


@pages.get("/schedules/-/backfill", needs(Role.OPERATOR))
def ask_to_backfill(visit: Visit) -> Response:
    """Say how many ticks there are in a stretch of time, and ask whether it is meant."""
    schedule = known(visit)
    where = clocks_of(schedule.definition.trigger)
    given = {name: visit.asked(name) for name in ("from", "to")}
    found, wrong = [], None
    try:
        start, end = (moment(given[name], where, name) for name in given)
        found = [*visit.app.schedules.ticks(schedule.id, start, end)]
    except InvalidValue as mistake:
        wrong = str(mistake)
    ends = [instant(tick, where) for tick in (found[0], found[-1])] if found else []
    return visit.show(
        "backfill.html",
        422 if wrong else 200,
        schedule=schedule,
        given=given,
        zone=str(where),
        wrong=wrong,
        count=len(found),
        ends=ends,
    )


@pages.post("/schedules/-/backfill", needs(Role.OPERATOR, records="schedule.backfill"))
def backfill_schedule(visit: Visit) -> Response:
    """Enqueue jobs for past ticks that are none yet."""
    schedule = known(visit)
    schedule_id, where = schedule.id, clocks_of(schedule.definition.trigger)
    start, end = (moment(visit.form[name], where, name) for name in ("from", "to"))
    visit.caller.record(schedule_id, start=start.isoformat(), end=end.isoformat())
    count = len(visit.app.schedules.ticks(schedule_id, start, end))
    visit.caller.admit(jobs=count)
    made = visit.app.schedules.backfill(schedule_id, start, end)
    rest = f"; {counted(count - len(made), 'tick')} had one already" if len(made) < count else ""
    return visit.go(address(schedule_id), f"Enqueued {counted(len(made), 'job')}{rest}.")


def address(schedule_id: str) -> str:
    """Return where a schedule is shown."""
    return f"/schedules/{quote(schedule_id)}"


def next_ticks(schedules: Any) -> list[tuple[Schedule, str]]:
    """Return *schedules* that have a next tick, each with that by its own clocks."""
    return [(one, instant(one.tick_at, clocks_of(one.definition.trigger))) for one in schedules if one.tick_at]


def known(visit: Visit) -> Schedule:
    """Return the schedule that a form, or the address, is about."""
    return visit.app.schedules.get(visit.form["schedule"] or visit.asked("schedule"))


def _row(visit: Visit, schedule: Schedule, ticks: Any = None) -> dict[str, Any]:
    """Return what every page shows of a schedule."""
    where = clocks_of(schedule.definition.trigger)
    if ticks is None:
        ticks = []
        with suppress(ScheduleNotFound):  # it is removed just now
            ticks = visit.app.schedules.history(schedule.id, limit=_STRIP)
    return {
        "schedule": schedule,
        "standing": schedule_state(schedule, visit.app.client.clock.now()),
        "words": words_of(schedule.definition.trigger),
        "next": instant(schedule.tick_at, where) if schedule.tick_at else None,
        "zone": str(where),
        "strip": [(tick, _title(tick, where)) for tick in reversed(ticks)],
    }


def _told(tick: TickRecord, schedule: Schedule) -> dict[str, Any]:
    """Return a tick with what can be said of it."""
    where = clocks_of(schedule.definition.trigger)
    jitter = spread(full_name(schedule.definition.team, schedule.id), schedule.definition.jitter)
    late = tick.decided_at - tick.at - jitter if tick.verdict in (Verdict.FIRED, Verdict.LATE) else None
    return {
        "tick": tick,
        "at": instant(tick.at, where),
        "many": _many(tick, where),
        "late": None if late is None else max(timedelta(0), late),
    }


def _title(tick: TickRecord, where: tzinfo) -> str:
    many = f", {_many(tick, where)}" if tick.until else ""
    return f"{tick.verdict}: {instant(tick.at, where)}{many}" + (f" ({tick.reason})" if tick.reason else "")


def _many(tick: TickRecord, where: tzinfo) -> str:
    """Return how many ticks *tick* stands for, if it is not alone."""
    if tick.until is None:
        return ""
    count = "more than 1,000" if tick.count is None else f"{tick.count:,}"
    return f"{count} ticks until {instant(tick.until, where)}"


def _ahead(visit: Visit, schedule: Schedule) -> tuple[list[Preview], str | None]:
    """Return the next ticks, or what is wrong with the trigger: this server may not know its time zone."""
    try:
        return [*visit.app.schedules.preview(schedule.id, 10)], None
    except InvalidValue as mistake:
        return [], str(mistake)


def words_of(trigger: Trigger) -> str:
    """Return when *trigger* fires, in words if it can be read here."""
    try:
        return in_words(trigger)
    except InvalidValue:
        return str(trigger)


def clocks_of(trigger: Trigger) -> tzinfo:
    """Return the time zone whose clocks *trigger* goes by, if it is known here."""
    try:
        return zone_of(trigger)
    except InvalidValue:  # another node knows it that has stored this
        return UTC


def _before(visit: Visit) -> datetime | None:
    text = visit.asked("before")
    return moment(text, UTC, "before") if text else None


def moment(text: str, where: tzinfo, name: str) -> datetime:
    """Return the instant that *text* says, by the clocks of *where* unless it says itself by which."""
    try:
        said = datetime.fromisoformat(text)
        return (said if said.tzinfo else said.replace(tzinfo=where)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidValue(f"expected {name} to be a time like 2030-12-31T09:00, got: {shortened(text)}") from None


pages.get("/schedules/{schedule_id:path}", _LOOK)(show_schedule)
