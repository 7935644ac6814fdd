"""Problems: errors as RFC 9457 documents, and what HTTP calls each of ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import Response

from mainspring.api.mistakes import Asked, Mistake, mistakes, plainly
from mainspring.clock import random_bits
from mainspring.errors import (
    IllegalMove,
    InvalidKey,
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
    StoreGone,
    TaskNotFound,
)
from mainspring.model.text import storable

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
        if isinstance(error, StoreGone):
            return problem(status, code_of(type(error)), "the database is gone; this server has to be started again")
        return problem(status, code_of(type(error)), "the database did not answer; ask again", retry_after=RETRY_AFTER)
    if isinstance(error, KeyMissing | InvalidKey):
        # Likewise: it names files.
        log.warning("%s: %s", type(error).__name__, error)
        return problem(503, "key-missing", "this server lacks the encryption key for that; tell whoever runs it")
    wait = error.retry_after if isinstance(error, QuotaExceeded) else None
    more = {} if wait is None else {"retry_after": wait}
    return problem(status, code_of(type(error)), plainly(str(error)), **more)


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
    route = request.scope.get("route")
    body = route.body_field if isinstance(route, APIRoute) else None
    veiled = getattr(request.scope.get("endpoint"), "veiled", False)
    asked = Asked(error.body, None if body is None else body.field_info.annotation, veiled)
    return mistaken(mistakes(error.errors(), asked))


def mistaken(found: Sequence[Mistake]) -> Response:
    """Return the problem that the mistakes in a request are: the first in a sentence, and all as a list."""
    first, shown = found[0], found[:_MOST_ERRORS]
    more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    return problem(
        422,
        "invalid-value",
        f"{first.sentence}{more}",
        expected=first.expected,
        got=first.got,
        errors=[one.document() for one in shown],
    )
