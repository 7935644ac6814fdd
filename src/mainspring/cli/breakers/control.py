"""`mainspring breakers trip` and `reset`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.breakers.list import why
from mainspring.cli.breakers.options import DEFAULT_LASTING, AllAtOnce, BreakerKey, Lasting
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import complain, say, say_json, warn
from mainspring.cli.pauses import By, Reason, who
from mainspring.cli.times import span
from mainspring.cli.values import length
from mainspring.documents.limits import breaker_document
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.breaker import Phase, check_breaker_key
from mainspring.model.text import shortened

_MISSING = 1


def trip(
    key: BreakerKey,
    lasting: Lasting = DEFAULT_LASTING,
    reason: Reason = None,
    by: By = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Let no job start under a breaker for a while. What runs goes on; afterwards probes go first."""
    wanted = length(lasting, "--for")
    if not wanted:
        raise InvalidValue(
            f"expected --for to be longer than 0, got: {shortened(lasting)}; "
            "to close a breaker, use `mainspring breakers reset`"
        )
    check_breaker_key(key)
    with app_at(url) as app:
        known = [one.key for one in app.breakers.list()]
        note(app, "breaker.trip", [key], lasting=lasting, reason=reason, by=by)
        tripped = app.breakers.trip(key, lasting=wanted, reason=reason, **who(app, by))
    if as_json:
        say_json(breaker_document(tripped))
    else:
        say(f"{key} is open for {span(wanted)}: {why(tripped)}")
    if key not in known:  # which may be meant, of one that has worked so far
        hint = did_you_mean(key, known)
        warn(f"under breaker {key} nothing has failed lately; if no task has it, nothing is held back{hint}")


def reset(key: BreakerKey, all_at_once: AllAtOnce = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Close a breaker. Jobs that wait for it go on, one after the other at first."""
    check_breaker_key(key)
    with app_at(url) as app:
        breakers = app.breakers
        note(app, "breaker.reset", [key], all=all_at_once or None)
        was_open = breakers.reset(key, all=all_at_once)
        after = breakers.get(key)
        near = [] if was_open else [one.key for one in breakers.list() if one.phase is not Phase.CLOSED]
    if as_json:
        say_json({**breaker_document(after), "reset": was_open})
    elif was_open:
        rest = (
            "" if after.phase is Phase.CLOSED else f", and {after.waiting + after.probes} jobs go on as probes succeed"
        )
        say(f"{key} is {after.phase}{rest}")
    if not was_open:
        complain(f"breaker {key!r} was not open{did_you_mean(key, near)}")
        raise typer.Exit(_MISSING)
