"""Notifications of a team: whom to tell of what becomes of all its jobs and schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anyio import to_thread
from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.api.problems import Problem
from mainspring.errors import InvalidValue, Undelivered
from mainspring.model.channel import DEFAULT_EVENTS, FIELDS, Channel, Event
from mainspring.model.job import check_name
from mainspring.model.notice import Rule
from mainspring.model.token import Role
from mainspring.web.channels import email, webhook
from mainspring.web.forms import Form
from mainspring.web.pages import Pages, Visit, is_there

pages = Pages()

_SEE = needs(Role.ADMIN)
_KINDS: Mapping[str, Callable[[Form], Channel]] = {"webhook": webhook, "email": email}
_EVENTS = {
    Event.FAILURE: "a job has failed for good, or expired",
    Event.RECOVERED: "the first success after trouble",
    Event.RETRY: "an attempt has failed, and the job is tried again",
    Event.SUCCESS: "a job has succeeded",
    Event.LATE: "a tick became a job long after its time, or a success has not come",
    Event.MISSED: "ticks became no jobs, because nobody was there",
}


@pages.get("/alerts/notifications/add", _SEE)
def notification_form(visit: Visit) -> Response:
    kind = _kind(visit.asked("kind") or "webhook")
    return visit.show(
        "notification_add.html", kind=kind, kinds=list(_KINDS), events=_EVENTS, usual=DEFAULT_EVENTS, facts=FIELDS
    )


@pages.post("/alerts/notifications/add", needs(Role.ADMIN, records="notification.put"))
def add_notification(visit: Visit) -> Response:
    form, kind = visit.form, _kind(visit.form["kind"])
    rule_id = form["notification"]
    check_name(rule_id, "the id of a notification")
    told = _KINDS[kind](form)
    if form["anew"] != "yes" and is_there(visit.app.notifications.get, rule_id):
        raise InvalidValue(f"a notification {rule_id!r} is there already; give another id, or say that it is changed")
    visit.caller.record(rule_id, kind=kind, to=told.place, on=list(told.on))
    visit.app.notifications.add(rule_id, told)
    return visit.go("/alerts", f"{told.place} is told of what becomes of all jobs of team {visit.caller.team}.")


@pages.get("/alerts/notifications/remove", _SEE)
def ask_to_remove(visit: Visit) -> Response:
    return visit.show("notification_remove.html", rule=_rule(visit, visit.asked("notification")))


@pages.post("/alerts/notifications/remove", needs(Role.ADMIN, records="notification.remove"))
def remove_notification(visit: Visit) -> Response:
    rule = _rule(visit, visit.form["notification"])
    visit.caller.record(rule.id)
    visit.app.notifications.remove(rule.id)
    return visit.go("/alerts", f"Notification {rule.id} is removed. What is under way goes out.")


@pages.post("/alerts/notifications/test", needs(Role.ADMIN, records="notification.test"))
async def try_notification(visit: Visit) -> Response:
    """Send a word to try a channel, and say what came of it. One at a time for a team, as over the API."""
    state = visit.request.app.state
    with state.trials.joined(visit.caller.team):
        # Not on the threads of all pages: whoever has it sent to where nobody answers would hold them up.
        return await to_thread.run_sync(_try, visit, limiter=state.trial_threads)


def _try(visit: Visit) -> Response:
    rule = _rule(visit, visit.form["notification"])
    visit.caller.record(rule.id)
    try:
        visit.app.notifications.test(rule.id)
    except Undelivered as error:
        raise Problem(502, "undelivered", f"The word to {rule.channel.place} did not arrive: {error}") from error
    return visit.go("/alerts", f"The word to {rule.channel.place} has arrived.")


def _rule(visit: Visit, rule_id: str) -> Rule:
    check_name(rule_id, "the id of a notification")
    return visit.app.notifications.get(rule_id)


def _kind(kind: str) -> str:
    if kind not in _KINDS:
        raise InvalidValue(f"expected a notification to be one of {', '.join(_KINDS)}, got: {kind[:50]!r}")
    return kind
