"""Limits and breakers: how they stand, and what is done about them, for the whole fleet."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.policy import Where, needs
from mainspring.errors import InvalidValue
from mainspring.model.breaker import TRIP, Phase, check_breaker_key
from mainspring.model.duration import duration, spelled
from mainspring.model.limits import check_limit_key
from mainspring.model.text import counted
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit

pages = Pages()

_MOST_SHOWN = 200
"""Where a key holds arguments there are as many limits as tenants; those are shown that hold most back."""

_LOOK = needs(Role.VIEWER, Where.FLEET)


@pages.get("/limits", _LOOK)
def list_limits(visit: Visit) -> Response:
    """Show the limits and breakers that jobs have come to lately, those first for which most wait."""
    limits = sorted(visit.caller.whole.limits.list(), key=lambda one: (-one.waiting, -one.held, one.key))
    breakers = sorted(
        visit.caller.whole.breakers.list(), key=lambda one: (one.phase is Phase.CLOSED, -one.waiting, one.key)
    )
    return visit.show(
        "limits.html",
        limits=limits[:_MOST_SHOWN],
        breakers=breakers[:_MOST_SHOWN],
        left=(max(0, len(limits) - _MOST_SHOWN), max(0, len(breakers) - _MOST_SHOWN)),
        rules=visit.may("operator", Where.FLEET),
        lasting=spelled(TRIP),
    )


@pages.post("/limits/release", needs(Role.OPERATOR, Where.FLEET, records="limit.release"))
def release_limit(visit: Visit) -> Response:
    """Make all jobs ready that wait for a limit. One that is still there holds them back again, so nothing is lost."""
    key = _key(visit)
    check_limit_key(key)
    visit.caller.record(key)
    released = visit.caller.whole.limits.release(key)
    return visit.go("/limits", f"{counted(released, 'job')} of limit {key} made ready.")


@pages.post("/limits/breakers/trip", needs(Role.OPERATOR, Where.FLEET, records="breaker.trip"))
def trip_breaker(visit: Visit) -> Response:
    """Let no job start under a breaker for a while."""
    key, reason = visit.form.words("key") or "", visit.form.words("reason")
    check_breaker_key(key)
    lasting = duration(visit.form["lasting"] or TRIP, "the time for which nothing starts")
    if not lasting:
        raise InvalidValue("expected a breaker to be open for longer than 0; to close it, reset it")
    visit.caller.record(key, reason=reason)
    visit.caller.whole.breakers.trip(key, lasting=lasting, reason=reason, by=visit.caller.actor)
    return visit.go("/limits", f"Breaker {key} is open for {spelled(lasting)}. What runs goes on.")


@pages.get("/limits/breakers/reset", needs(Role.OPERATOR, Where.FLEET))
def ask_to_reset(visit: Visit) -> Response:
    """Ask whether a breaker is to be closed, saying how many jobs go on then."""
    key = _key(visit)
    return visit.show("breaker_reset.html", breaker=visit.caller.whole.breakers.get(key))


@pages.post("/limits/breakers/reset", needs(Role.OPERATOR, Where.FLEET, records="breaker.reset"))
def reset_breaker(visit: Visit) -> Response:
    key = _key(visit)
    check_breaker_key(key)
    visit.caller.record(key)
    was_open = visit.caller.whole.breakers.reset(key, all=visit.form["all"] == "yes")
    after = visit.caller.whole.breakers.get(key)
    return visit.go("/limits", f"Breaker {key} is {after.phase}." if was_open else f"Breaker {key} was not open.")


def _key(visit: Visit) -> str:
    """Return the key that the address names: it is made of arguments, of which a form would change blanks and lines."""
    return visit.request.query_params.get("key", "")
