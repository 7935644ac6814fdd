"""Problems: errors as RFC 9457 documents, and what HTTP calls each of ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import Response

from mainspring.clock import random_bits
from mainspring.errors import (
    IllegalMove,
    InvalidValue,
    KeyMissing,
    KeyTaken,
    MainspringError,
    NotAllowed,
    NotFound,
    QuotaExceeded,
    ReplayRefused,
    SealBroken,
    SignalRefused,
    StoreError,
    TaskNotFound,
)
from mainspring.model.text import shortened, storable

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
"""Seconds after which a database that could not be reached may be there again."""

_STATUSES: Mapping[type[MainspringError], int] = {
    InvalidValue: 422,
    TaskNotFound: 422,  # a word in a request, not the thing that it is about
    NotFound: 404,
    NotAllowed: 403,
    IllegalMove: 409,
    KeyTaken: 409,
    ReplayRefused: 409,
    SignalRefused: 409,
    SealBroken: 409,
    QuotaExceeded: 429,
    KeyMissing: 503,
    StoreError: 503,
}
_FACTS = re.compile(r"expected (?P<expected>.+?),? got:? (?P<got>.+)", re.DOTALL)
_CHANNELS = "notify"
"""Under which name requests hold channels, whose addresses and secrets are for nobody to see."""

_MOST_ERRORS = 10
_LONGEST = 2_000

log = logging.getLogger("mainspring.api")


class Problem(HTTPException):
    """A refusal of ours. `code` is what its type is called, and stays the same."""

    def __init__(self, status: int, code: str, detail: str, **more: object) -> None:
        super().__init__(status, detail)
        self.code = code
        self.more = {name: value for name, value in more.items() if value is not None}


def problem(status: int, code: str, detail: str, **more: object) -> Response:
    """Return the answer that tells a problem: its type, its title, one sentence, and the facts where they are known."""
    document: dict[str, object] = {
        "type": f"urn:mainspring:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": storable(detail)[:_LONGEST],
    }
    facts = _FACTS.search(str(document["detail"]))
    document |= {} if facts is None else facts.groupdict()
    document |= more
    headers = {}
    if "retry_after" in more:
        headers["Retry-After"] = str(max(1, round(float(str(more["retry_after"])))))
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(document), status, headers, MEDIA_TYPE)


def told(error: MainspringError) -> Response:
    """Return the problem that *error* is."""
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), None)
    if status is None:
        return unforeseen(error)
    if isinstance(error, StoreError):
        # What it says is for whoever runs the server: it may name hosts and users.
        log.warning("%s: %s", type(error).__name__, error)
        return problem(status, code_of(type(error)), "the database did not answer; ask again", retry_after=RETRY_AFTER)
    wait = error.retry_after if isinstance(error, QuotaExceeded) else None
    more = {} if wait is None else {"retry_after": wait}
    return problem(status, code_of(type(error)), str(error), **more)


def unforeseen(error: BaseException) -> Response:
    """Return the problem that an error of ours is: nothing but an id, under which the log has the rest."""
    known_as = f"{random_bits(48):012x}"
    log.error("error %s: %s", known_as, type(error).__name__, exc_info=error)
    return problem(
        500, "internal-error", f"something went wrong here; the server's log has it as {known_as}", id=known_as
    )


def code_of(kind: type[MainspringError]) -> str:
    """Return what the type of a problem is called: `job-not-found` for JobNotFound, `invalid-url` for InvalidURL."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def install(api: FastAPI) -> None:
    """Have all errors told as problems, those of the framework too."""
    api.add_exception_handler(MainspringError, _ours)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(StarletteHTTPException, _refused)


async def _ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, MainspringError)
    return told(error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    if isinstance(error, Problem):
        return problem(error.status_code, error.code, str(error.detail), **error.more)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    answer = problem(error.status_code, code, _SENTENCES.get(error.status_code, str(error.detail)))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return answer


def _methods(request: Request) -> set[str]:
    """Return the methods that the address of *request* takes, by whichever of its routes."""
    routes = [route for route in request.app.routes if isinstance(route, APIRoute)]
    return {method for route in routes if route.path_regex.match(request.url.path) for method in route.methods or ()}


_SENTENCES = {404: "there is nothing at this address", 405: "this address does not take that method"}


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    veiled = getattr(request.scope.get("endpoint"), "veiled", False)
    errors = [_mistake(one, veiled) for one in found[:_MOST_ERRORS]]
    first = errors[0]
    more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    sentence = f"{first['at']}: expected {first['expected']}, got: {first['got']}{more}"
    return problem(422, "invalid-value", sentence, expected=first["expected"], got=first["got"], errors=errors)


def _mistake(error: Mapping[str, Any], veiled: bool) -> dict[str, str]:
    """Return one mistake in a request: where it is, what was expected, and what came, unless that may be a secret."""
    kind, place = error["type"], ".".join(str(part) for part in error["loc"])
    if kind == "missing":
        return {"at": storable(place), "expected": "a value", "got": "none"}
    if veiled or _CHANNELS in error["loc"]:
        return _veiled(error)
    if kind == "extra_forbidden":
        return {"at": storable(place), "expected": "no such name", "got": shortened(error["input"])}
    said = str(error["msg"])
    expected = said.removeprefix("Input should be ").removeprefix("Value error, ")
    return {
        "at": storable(place),
        "expected": storable(f"{expected[:1].lower()}{expected[1:]}"),
        "got": shortened(error["input"]),
    }


def _veiled(error: Mapping[str, Any]) -> dict[str, str]:
    """Return a mistake without anything of what came: neither a value, nor a name that was made up for one."""
    kind, place, expected = error["type"], error["loc"], "another value"
    if kind == "extra_forbidden":
        place, expected = place[:-1], "no other names"
    elif kind in _SAY_NO_VALUE:
        expected = str(error["msg"]).removeprefix("Input should be ")
    at, got = ".".join(map(str, place)), f"a value of type {type(error['input']).__name__}"
    return {"at": storable(at), "expected": f"{expected[:1].lower()}{expected[1:]}", "got": got}


_SAY_NO_VALUE = frozenset(
    {
        *(
            "string_type",
            "string_too_short",
            "string_too_long",
            "string_pattern_mismatch",
            "list_type",
            "literal_error",
        ),
        *("too_short", "too_long", "model_attributes_type", "union_tag_not_found"),
    }
)
"""Mistakes of which the framework's sentence says what was expected, and nothing of what came."""
