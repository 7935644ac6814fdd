"""The form by which schedules are made and changed, and which shows when they would fire before anything is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, TypeVar, cast

import msgspec
from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.errors import InvalidValue, MainspringError, NotFound, QuotaExceeded
from mainspring.model.channel import decode_channels
from mainspring.model.cron import zone, zones
from mainspring.model.duration import duration, spelled
from mainspring.model.job import priority_of
from mainspring.model.payload import decode_call
from mainspring.model.preview import preview
from mainspring.model.schedule import MICROSECOND, Misfire, NewSchedule, Origin, Overlap, Schedule
from mainspring.model.sealed import is_closed
from mainspring.model.text import shortened
from mainspring.model.token import Role
from mainspring.model.trigger import After, At, Cron, Every, Trigger, after, at, cron, every
from mainspring.model.wording import instant
from mainspring.schedules import ScheduleOptions
from mainspring.web.forms import Form
from mainspring.web.pages import Pages, Visit, is_there
from mainspring.web.views.schedules import address, clocks_of, known, moment, words_of

T = TypeVar("T")

pages = Pages()

KINDS = ("cron", "every", "after", "at")
_LENGTHS = ("grace", "jitter", "expect_success_within")
_FIELDS = (
    *("id", "task", "args", "kwargs", "queue", "priority", "kind", "expression", "tz", "every", "counted_from"),
    *("after", "at", "start", "end", "max_runs", "overlap", "misfire", *_LENGTHS, "notes"),
)
_EMPTY = dict.fromkeys(_FIELDS, "") | {
    "kind": "cron",
    "tz": "UTC",
    "overlap": Overlap.ALLOW,
    "misfire": Misfire.COALESCE,
}
_AHEAD = 10
_LARGEST_NUMBER = 9  # digits: Python refuses to read endless ones
_CHANGE = needs(Role.OPERATOR, records="schedule.add")


@pages.get("/schedules/-/new", needs(Role.OPERATOR))
def ask_for_new(visit: Visit) -> Response:
    return _form(visit, None, _EMPTY | {"task": visit.asked("task")})


@pages.get("/schedules/-/edit", needs(Role.OPERATOR))
def ask_for_change(visit: Visit) -> Response:
    schedule = known(visit)
    return _form(visit, schedule, _as_it_is(schedule))


@pages.post("/schedules/-/new", _CHANGE)
def create(visit: Visit) -> Response:
    return _save(visit, None)


@pages.post("/schedules/-/edit", _CHANGE)
def change(visit: Visit) -> Response:
    return _save(visit, known(visit))


@pages.post("/schedules/-/preview", needs(Role.OPERATOR))
def show_preview(visit: Visit) -> Response:
    """Show when what the form says would fire. What is not filled in yet is no mistake."""
    before = known(visit) if visit.form["schedule"] else None
    reading = _Reading(visit.form, before)
    trigger = reading.trigger()
    if reading.form["id"] and reading.form["task"]:
        _made(visit, reading)
    shown = None if trigger is None else _ahead(visit, reading, trigger)
    return _form(visit, before, _put_in(visit.form), reading.mistakes, preview=shown)


class _Reading:
    """What a form says, and the mistakes in it by field; under no field stands what is wrong with the whole."""

    def __init__(self, form: Form, before: Schedule | None) -> None:
        self.form = form
        self.before = before
        self.mistakes: dict[str, str] = {}
        self.zone = self.take("tz", zone) or UTC

    def take(self, name: str, read: Callable[[str], T]) -> T | None:
        """Return what *read* makes of a field; nothing if it is empty or wrong."""
        text = self.form[name]
        try:
            return read(text) if text else None
        except InvalidValue as mistake:
            self.mistakes[name] = str(mistake)
            return None

    def moment(self, name: str) -> datetime | None:
        return self.take(name, lambda text: moment(text, self.zone, name.replace("_", " ")))

    def trigger(self) -> Trigger | None:
        kind = self.form["kind"]
        if kind not in KINDS:
            self.mistakes[""] = f"expected a kind of trigger, one of {', '.join(KINDS)}, got: {shortened(kind)}"
            return None
        field = "expression" if kind == "cron" else kind
        if not self.form[field]:
            self.mistakes[field] = "expected it to be filled in for this kind of trigger, got nothing"
            return None
        match kind:
            case "cron":
                return self.take(field, lambda text: cron(text, "UTC" if "tz" in self.mistakes else self._tz))
            case "every":
                start = self.moment("counted_from")
                return self.take(field, lambda text: every(text, start))
            case "after":
                return self.take(field, after)
            case _:
                return self.take(field, lambda text: at(moment(text, self.zone, "at")))

    def options(self) -> ScheduleOptions:
        """Return what the form says beside the task and the trigger, and what it does not show of the one before."""
        given: dict[str, Any] = {
            "args": self.take("args", lambda text: _json(text, list, "a JSON list like [1, 2]")),
            "kwargs": self.take("kwargs", lambda text: _json(text, dict, 'a JSON object like {"name": "Ada"}')),
            "queue": self.form["queue"] or None,
            "priority": self.take("priority", _priority),
            "start": self.moment("start"),
            "end": self.moment("end"),
            "max_runs": self.take("max_runs", lambda text: _number(text, "the most runs")),
            "overlap": self.form["overlap"] or None,
            "misfire": self.form["misfire"] or None,
            "notes": self.form["notes"].replace("\r\n", "\n") or None,
        }
        for name in _LENGTHS:
            given[name] = self.take(name, lambda text, name=name: duration(text, name))  # type: ignore[misc]
        if self.before is not None:
            given["notify"] = decode_channels(self.before.definition.notify)
            if is_closed(self.before.definition.payload) and not (self.form["args"] or self.form["kwargs"]):
                self.mistakes["kwargs"] = "expected the arguments again, as they are encrypted; {} if there are none"
        return cast(ScheduleOptions, {name: value for name, value in given.items() if value is not None})

    @property
    def _tz(self) -> str:
        return self.form["tz"] or "UTC"


def _save(visit: Visit, before: Schedule | None) -> Response:
    reading = _Reading(visit.form, before)
    new = _made(visit, reading)
    if before is None and new is not None and is_there(visit.app.schedules.get, visit.form["id"]):
        reading.mistakes["id"] = "expected an id that is not taken; this schedule is there, and can be edited"
    if new is None or reading.mistakes:
        return _form(visit, before, _put_in(visit.form), reading.mistakes)
    schedule_id = visit.form["id"] if before is None else before.id
    visit.caller.record(schedule_id, task=new.definition.task, trigger=str(new.definition.trigger))
    try:
        visit.caller.admit(schedules=0 if before else 1)
    except QuotaExceeded as refused:
        return _form(visit, before, _put_in(visit.form), {"": str(refused)}, 429)
    visit.app.schedules.add_many([new])
    return visit.go(address(schedule_id), "It is saved.")


def _made(visit: Visit, reading: _Reading) -> NewSchedule | None:
    """Return the schedule that the form describes; nothing if there are mistakes."""
    trigger, options = reading.trigger(), reading.options()
    schedule_id = reading.form["id"] if reading.before is None else reading.before.id
    for name, value in (("id", schedule_id), ("task", reading.form["task"])):
        if not value:
            reading.mistakes[name] = "expected it to be filled in, got nothing"
    if trigger is None or reading.mistakes:
        return None
    try:
        return visit.app.schedules.new(schedule_id, reading.form["task"], trigger, **options)
    except (InvalidValue, NotFound) as mistake:
        reading.mistakes[_place(mistake)] = str(mistake)
        return None


def _place(mistake: MainspringError) -> str:
    """Return the field that *mistake* is about, where that can be told."""
    if isinstance(mistake, NotFound):
        return "task"
    return "id" if "the id of a schedule" in str(mistake) else ""


def _form(
    visit: Visit,
    before: Schedule | None,
    values: Mapping[str, str],
    mistakes: Mapping[str, str] | None = None,
    status: int = 422,
    preview: Mapping[str, Any] | None = None,
) -> Response:
    """Return the page with the form, filled with *values*."""
    tasks = sorted({*(task.name for task in visit.app.tasks), *visit.app.tasks.builtin})
    return visit.show(
        "schedule_form.html",
        status if mistakes else 200,
        before=before,
        target="/schedules/-/new" if before is None else "/schedules/-/edit",
        back="/schedules" if before is None else address(before.id),
        values=values,
        mistakes=mistakes or {},
        preview=preview,
        tasks=tasks,
        zones=sorted(zones()),
        overlaps=list(Overlap),
        misfires=list(Misfire),
        sealed=before is not None and is_closed(before.definition.payload),
        in_code=before is not None and before.origin is Origin.CODE,
    )


def _put_in(form: Form) -> dict[str, str]:
    return {name: form[name] for name in _FIELDS}


def _as_it_is(schedule: Schedule) -> dict[str, str]:
    """Return the values of the form for a schedule that is there."""
    definition, where = schedule.definition, clocks_of(schedule.definition.trigger)
    call = None if is_closed(definition.payload) else decode_call(definition.payload)
    values: dict[str, object] = {
        "id": schedule.id,
        "task": definition.task,
        "args": _written(call.args) if call and call.args else "",
        "kwargs": _written(call.kwargs) if call and call.kwargs else "",
        "queue": definition.queue,
        "priority": definition.priority,
        "start": _local(definition.start, where),
        "end": _local(definition.end, where),
        "max_runs": definition.max_runs or "",
        "overlap": definition.overlap,
        "misfire": definition.misfire,
        "grace": _spelled(definition.grace),
        "jitter": _spelled(definition.jitter or None),
        "expect_success_within": _spelled(definition.expect_success_within),
        "notes": definition.notes or "",
    }
    return _EMPTY | _trigger_values(definition.trigger) | {name: str(value) for name, value in values.items()}


def _trigger_values(trigger: Trigger) -> dict[str, str]:
    match trigger:
        case Cron():
            return {"kind": "cron", "expression": trigger.expression, "tz": trigger.tz}
        case Every():
            return {"kind": "every", "every": spelled(trigger.length), "counted_from": _local(trigger.start, UTC)}
        case After():
            return {"kind": "after", "after": spelled(trigger.length)}
        case At():
            return {"kind": "at", "at": _local(trigger.when, UTC)}


def _ahead(visit: Visit, reading: _Reading, trigger: Trigger) -> dict[str, Any]:
    """Return in words and by the clock when *trigger* would fire, from its start to its end."""
    now, start, end = visit.app.client.clock.now(), reading.moment("start"), reading.moment("end")
    begin = now if start is None else max(now, start - MICROSECOND)
    found = [] if isinstance(trigger, After) else preview(trigger, begin, _AHEAD)
    where = clocks_of(trigger)
    return {
        "words": words_of(trigger),
        "zone": str(where),
        "ticks": [(instant(tick.at, where), tick) for tick in found if end is None or tick.at <= end],
        "follows": isinstance(trigger, After),
    }


def _json(text: str, kind: type[T], what: str) -> T:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise InvalidValue(f"expected {what}, got: {shortened(text)}")
    return found


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _LARGEST_NUMBER):
        raise InvalidValue(f"expected {what} to be a whole number from 1 on, got: {shortened(text)}")
    return int(text)


def _priority(text: str) -> int:
    return priority_of(_number(text, "priority") if text.isdigit() else text)


def _written(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _spelled(length: timedelta | None) -> str:
    return "" if length is None else spelled(length)


def _local(instant_: datetime | None, where: tzinfo) -> str:
    """Return an instant by the clocks of *where*, as the form reads it; with their offset where they show it twice."""
    if instant_ is None:
        return ""
    local = instant_.astimezone(where)
    naive = local.replace(tzinfo=None, fold=0)
    return (naive if naive.replace(tzinfo=where).astimezone(UTC) == instant_ else local).isoformat()
