"""`mainspring.http`: a request as a job."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from mainspring.builtin.arguments import Attempts, Length
from mainspring.clock import SystemClock
from mainspring.errors import InvalidValue, MainspringError, OutboundFailed, OutboundRefused
from mainspring.model.duration import duration
from mainspring.model.outcome import RetryAfter
from mainspring.model.redact import Redactor
from mainspring.model.retry import Retry
from mainspring.model.task import Task
from mainspring.model.text import storable
from mainspring.outbound import Outbound, Reply
from mainspring.outbound.headers import checked_headers, checked_method
from mainspring.outbound.target import target_of
from mainspring.worker.context import Context

Status = Annotated[int, Meta(ge=100, le=599)]

_LONGEST = timedelta(minutes=10)
_LONGEST_WAIT = timedelta(hours=1)
"""How long a server may have us wait before another try; whoever says a year is not believed."""

_MOST = 32_768
"""Bytes of a body that are kept. Each may take six in JSON, and a result has its limit."""

_KEPT = ("content-type", "etag", "location", "retry-after", "x-request-id")
_KINDS = {2: "success", 3: "redirection", 4: "client error", 5: "server error"}
_RETRY_ON = [408, 425, 429, 500, 502, 503, 504]


class Unavailable(RetryAfter):
    """The server can't do it now."""


class UnexpectedStatus(MainspringError):
    """The server answered something else, and would so again."""


def http(  # noqa: PLR0913 - one parameter for each thing that a job may say of it
    ctx: Context,
    url: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: str | None = None,
    json: Any = None,
    expect: Annotated[list[Status], Meta(min_length=1)] | None = None,
    timeout: Length = "30s",
    retry_on: list[Status] = _RETRY_ON,
    max_attempts: Attempts = 5,  # noqa: ARG001 - for the lifecycle to know
) -> dict[str, Any]:
    """Send a request, and return the `status`, some `headers` and the `body` of the reply, as text and perhaps cut.

    Any status from 200 to 299 is success, unless *expect* lists others. One in *retry_on* is tried again, after as long
    as the server asks for; any other fails the job. Redirects are not followed. The header `Idempotency-Key` is the
    job's id unless given, the same in every attempt.
    """
    target = target_of(url)
    content, given = _content(body, json, headers or {})
    given.setdefault("Idempotency-Key", ctx.idempotency_key)
    ctx.details["request_bytes"] = len(content or b"")
    began = SystemClock().steady()
    try:
        reply = Outbound.configured().request(
            method, url, headers=given, content=content, total=_seconds(timeout), most=_MOST + ctx.redact.longest
        )
    finally:
        ctx.details["seconds"] = round(SystemClock().steady() - began, 3)
    ctx.details |= {"status": reply.status, "response_bytes": min(len(reply.body), _MOST)}
    if _truncated(reply):
        ctx.details["truncated"] = True
    if reply.status in expect if expect is not None else 200 <= reply.status <= 299:
        return _result(reply, ctx.redact)
    if reply.status in retry_on:
        raise Unavailable(_asked_for(reply), f"{target.origin} answered {_named(reply.status)}")
    raise UnexpectedStatus(f"{target.origin} answered {_named(reply.status)}{_hint(reply)}")


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "url": target_of,
    "method": checked_method,
    "headers": lambda headers: checked_headers(headers or {}),
    "timeout": lambda timeout: _seconds(timeout),
}


def _check(given: Mapping[str, Any]) -> None:
    """Refuse a request that no worker could send. Where it may go is for the worker to say that sends it."""
    for name, check in _CHECKS.items():
        if name in given:
            check(given[name])
    _check_one_body(given.get("body"), given.get("json"))


HTTP = Task(
    name="mainspring.http",
    handler=http,
    context="ctx",
    attempts="max_attempts",
    check=_check,
    retry=Retry(on=(OutboundFailed,), never=(OutboundRefused, UnexpectedStatus)),
)


def _content(body: str | None, json: Any, headers: Mapping[str, str]) -> tuple[bytes | None, dict[str, str]]:
    """Return the body to send and the headers, which then say what it is."""
    _check_one_body(body, json)
    given = _Headers(headers)
    if json is not None:
        given.setdefault("Content-Type", "application/json")
        return msgspec.json.encode(json), given
    return None if body is None else body.encode(), given


def _check_one_body(body: object, json: object) -> None:
    if body is not None and json is not None:
        raise OutboundRefused("expected body or json, got both")


class _Headers(dict[str, str]):
    """Headers of which there is one of a name, however that is written."""

    def setdefault(self, name: str, value: str = "", /) -> str:
        if name.lower() not in {one.lower() for one in self}:
            self[name] = value
        return value


def _seconds(timeout: float | str) -> float:
    length = duration(timeout, "timeout")
    if not timedelta(0) < length <= _LONGEST:
        raise OutboundRefused(f"expected a timeout of more than 0 and at most 10 minutes, got: {timeout}")
    return length.total_seconds()


def _result(reply: Reply, redact: Redactor) -> dict[str, Any]:
    kept = {name: storable(reply.headers[name]) for name in _KEPT if name in reply.headers}
    return {
        "status": reply.status,
        "headers": kept,
        "body": _body(reply, redact),
        "truncated": _truncated(reply),
    }


def _truncated(reply: Reply) -> bool:
    return len(reply.body) > _MOST or reply.truncated


def _body(reply: Reply, redact: Redactor) -> str:
    """Return as much of the body as is kept; secrets give way before it is cut, for half of one is not known again."""
    text = reply.body.decode(errors="surrogateescape")
    if reply.truncated:
        text, _ = redact.settled(text)
    data = redact(text).encode(errors="surrogateescape")
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return storable(decoder.decode(data[:_MOST], final=not _truncated(reply)))  # or else half a character may be last


def _asked_for(reply: Reply) -> timedelta:
    """Return how long the server wants to be left alone, by its own clock if it tells the time by that."""
    text = reply.headers.get("retry-after", "").strip()
    try:
        if text.isdecimal():
            wait = duration(int(text))
        else:
            now = reply.headers.get("date")
            wait = parsedate_to_datetime(text) - (parsedate_to_datetime(now) if now else SystemClock().now())
    except (InvalidValue, ValueError, TypeError, OverflowError):
        return _LONGEST_WAIT if text.isdecimal() else timedelta(0)
    return max(timedelta(0), min(wait, _LONGEST_WAIT))


def _named(status: int) -> str:
    """Return *status* with its name: dead letters are told apart by words, for numbers may vary from job to job."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:  # some servers have statuses of their own
        return f"{status} ({_KINDS.get(status // 100, 'unknown')})"


def _hint(reply: Reply) -> str:
    return ", and redirects are not followed" if 300 <= reply.status <= 399 else ""
