"""Limits and breakers: how they stand, and what is done about them, for the whole fleet."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import (
    NO_NUL,
    BreakerDocument,
    Breakers,
    Count,
    Document,
    Limits,
    ResetDocument,
    ResetRequest,
    TripRequest,
)
from mainspring.api.policy import Where, needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.limits import breaker_document, limit_document
from mainspring.model.breaker import TRIP
from mainspring.model.token import Role

routes = Routes("limits")

KeyInPath = Annotated[str, Path(min_length=1, max_length=512, pattern=NO_NUL)]


class ReleasedDocument(Document):
    """How many jobs were made ready."""

    key: str
    released: Count


@routes.get("/limits", needs(Role.VIEWER, Where.FLEET), gives=Limits)
def list_limits(caller: Asking) -> Response:
    """List the limits that jobs have come to lately, by key."""
    return answer({"items": [limit_document(one) for one in caller.whole.limits.list()]})


@routes.post(
    "/limits/{key:path}/release",
    needs(Role.OPERATOR, Where.FLEET, records="limit.release"),
    gives=ReleasedDocument,
)
def release_limit(caller: Asking, key: KeyInPath) -> Response:
    """Make all jobs ready that wait for a limit, because it was removed or changed. One that is still there holds."""
    caller.record(key)
    return answer({"key": key, "released": caller.whole.limits.release(key)})


@routes.get("/breakers", needs(Role.VIEWER, Where.FLEET), gives=Breakers)
def list_breakers(caller: Asking) -> Response:
    """List the breakers under which something has failed lately, or that a person tripped, by key."""
    return answer({"items": [breaker_document(one) for one in caller.whole.breakers.list()]})


@routes.get("/breakers/{key:path}", needs(Role.VIEWER, Where.FLEET), gives=BreakerDocument)
def get_breaker(caller: Asking, key: KeyInPath) -> Response:
    """Show how a breaker stands; one that nothing is known of is closed."""
    return answer(breaker_document(caller.whole.breakers.get(key)))


@routes.post(
    "/breakers/{key:path}/trip", needs(Role.OPERATOR, Where.FLEET, records="breaker.trip"), gives=BreakerDocument
)
def trip_breaker(caller: Asking, key: KeyInPath, wanted: TripRequest | None = None) -> Response:
    """Open a breaker: no job starts under it for so long."""
    asked = wanted or TripRequest()
    caller.record(key, reason=asked.reason)
    lasting = TRIP if asked.lasting is None else asked.lasting
    tripped = caller.whole.breakers.trip(key, lasting=lasting, reason=asked.reason, by=caller.actor)
    return answer(breaker_document(tripped))


@routes.post(
    "/breakers/{key:path}/reset", needs(Role.OPERATOR, Where.FLEET, records="breaker.reset"), gives=ResetDocument
)
def reset_breaker(caller: Asking, key: KeyInPath, wanted: ResetRequest | None = None) -> Response:
    """Close a breaker. Jobs that wait for it go on one after the other, or all at once if that is asked for."""
    caller.record(key)
    was_open = caller.whole.breakers.reset(key, all=wanted is not None and wanted.all)
    return answer({**breaker_document(caller.whole.breakers.get(key)), "reset": was_open})
