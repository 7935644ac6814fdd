"""Talking to a server: what is said is written once, and carried by a client that blocks or by one that is awaited.

A call is a generator: it yields what it asks, gets the document that is answered, and returns what comes of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

import httpx
import msgspec

from mainspring import errors
from mainspring.clock import SystemClock
from mainspring.errors import (
    InvalidPayload,
    InvalidValue,
    MainspringError,
    NotFound,
    QuotaExceeded,
    ServerRefused,
    ServerUnavailable,
)
from mainspring.model.text import shortened

P = ParamSpec("P")
T = TypeVar("T")

_PAUSES = (0.1, 0.2, 0.5, 1.0)
_LONGEST_PAUSE = 10.0
_PASSING = (502, 503, 504)
_PLACE = re.compile(r"^(body|path|query|header)\.(?=\w)")
"""Where in a request a mistake is, which says nothing to whoever has called a function or typed a command."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request. It is sent again after a lost answer only if it is safe, which what only looks always is."""

    method: str
    path: str
    params: dict[str, Any] = {}
    body: Any = None
    safe: bool = False
    patience: float = 0  # seconds that the server takes its time

    @property
    def repeatable(self) -> bool:
        return self.safe or self.method == "GET"


Talk = Generator[Ask, Any, T]


class Event(NamedTuple):
    """One event of a stream: of which kind it is, and what it tells."""

    kind: str
    told: Any


class Events:
    """Puts events together from what comes of a stream. Lines end with a newline alone, whatever JSON has in it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Event]:
        *whole, self._rest = (self._rest + chunk).split(b"\n\n")
        lines = [dict(line.split(b": ", 1) for line in one.split(b"\n") if b": " in line) for one in whole]
        return [Event(one[b"event"].decode(), _decoded(one[b"data"])) for one in lines if b"data" in one]


class Line:
    """A connection to a server."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
        check_address(url)
        self._timeout = timeout
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._clock = SystemClock()
        self.close = self._http.close

    def speak(self, talk: Talk[T]) -> T:
        """Carry *talk* to its end."""
        answer: Any = None
        while True:
            try:
                ask = talk.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = self._asked(ask)

    def _asked(self, ask: Ask) -> Any:
        pauses = iter(_PAUSES)
        while True:
            try:
                return _told(self._http.send(_request(self._http, ask, self._timeout)))
            except (httpx.TransportError, _Passing) as error:
                self._clock.sleep(_pause(error, ask, pauses))

    def follow(self, path: str) -> Generator[Event, None, None]:
        """Yield the events at *path* until the server ends them."""
        events = Events()
        try:
            with self._http.stream("GET", f"api/v1/{path}") as answer:
                if not answer.is_success:
                    answer.read()
                    raise _error(answer)
                for chunk in answer.iter_bytes():
                    yield from events.feed(chunk)
        except httpx.TransportError as error:
            raise _unavailable(error) from None


class AsyncLine:
    """The same, awaited."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
        check_address(url)
        self._timeout = timeout
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout)
        self.close = self._http.aclose

    async def speak(self, talk: Talk[T]) -> T:
        """Carry *talk* to its end."""
        answer: Any = None
        while True:
            try:
                ask = talk.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = await self._asked(ask)

    async def _asked(self, ask: Ask) -> Any:
        pauses = iter(_PAUSES)
        while True:
            try:
                return _told(await self._http.send(_request(self._http, ask, self._timeout)))
            except (httpx.TransportError, _Passing) as error:
                await asyncio.sleep(_pause(error, ask, pauses))

    async def follow(self, path: str) -> AsyncGenerator[Event, None]:
        """Yield the events at *path* until the server ends them."""
        events = Events()
        try:
            async with self._http.stream("GET", f"api/v1/{path}") as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise _error(answer)
                async for chunk in answer.aiter_bytes():
                    for event in events.feed(chunk):
                        yield event
        except httpx.TransportError as error:
            raise _unavailable(error) from None


class Spoken:
    """Whatever has a line to a server, and perhaps an id there."""

    id: UUID

    def __init__(self, line: Line) -> None:
        self._line = line

    def _speak(self, talk: Talk[T]) -> T:
        return self._line.speak(talk)


class Awaited:
    """The same, awaited."""

    id: UUID

    def __init__(self, line: AsyncLine) -> None:
        self._line = line

    async def _speak(self, talk: Talk[T]) -> T:
        return await self._line.speak(talk)


def said(call: Callable[P, Talk[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return *call* as a method that blocks."""

    @wraps(call)
    def method(self: Spoken, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._speak(call(*args, **kwargs))

    return method


def awaited(call: Callable[P, Talk[T]]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Return *call* as a method that is awaited."""

    @wraps(call)
    async def method(self: Awaited, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._speak(call(*args, **kwargs))

    return method


def said_of_it(call: Callable[Concatenate[UUID, P], Talk[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return *call*, which is about something with an id, as a method of that."""

    @wraps(call)
    def method(self: Spoken, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._speak(call(self.id, *args, **kwargs))

    return method


def awaited_of_it(call: Callable[Concatenate[UUID, P], Talk[T]]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Return the same to await."""

    @wraps(call)
    async def method(self: Awaited, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._speak(call(self.id, *args, **kwargs))

    return method


class _Passing(Exception):
    """An answer that may be another one soon."""

    def __init__(self, error: MainspringError, after: float) -> None:
        self.error = error
        self.after = after


def _request(http: httpx.Client | httpx.AsyncClient, ask: Ask, timeout: float) -> httpx.Request:
    content = None if ask.body is None else _encoded(ask.body)
    headers = {} if content is None else {"Content-Type": "application/json"}
    params = {name: value for name, value in ask.params.items() if value is not None}
    return http.build_request(
        ask.method,
        f"api/v1/{ask.path}",
        params=params,
        content=content,
        headers=headers,
        timeout=timeout + ask.patience,
    )


def check_address(url: str) -> None:
    """Refuse what is no address of a server."""
    such = "expected the address of a server, such as 'https://jobs.example', got:"
    if not isinstance(url, str) or not url.strip():
        raise InvalidValue(f"{such} {shortened(url)}")
    if not url.startswith(("http://", "https://")):
        hint = "" if "://" in url else f", did you mean {f'http://{url}'!r}?"
        raise InvalidValue(f"{such} {shortened(url)}{hint}")
    try:
        host = httpx.URL(url).host
    except httpx.InvalidURL as error:
        raise InvalidValue(f"{such} {shortened(url)} ({error})") from None
    if not host:
        raise InvalidValue(f"{such} {shortened(url)}, which names no host")


def odd_answer(why: object) -> ServerRefused:
    """Return the error that an answer is which is none of ours."""
    return ServerRefused(f"expected an answer of a Mainspring server, got another ({why}); look at the address", 200)


def _encoded(body: object) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidPayload(f"expected values that JSON can carry, got one that it can't: {error}") from None


def _decoded(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise odd_answer(error) from None


def _unavailable(error: httpx.TransportError) -> ServerUnavailable:
    return ServerUnavailable(str(error) or type(error).__name__)


def _told(answer: httpx.Response) -> Any:
    if answer.is_success:
        return _decoded(answer.content) if answer.content else None
    error = _error(answer)
    if answer.status_code in _PASSING:
        told = answer.headers.get("retry-after", "0")
        raise _Passing(error, float(told) if told.isdigit() else 0)
    raise error


def _error(answer: httpx.Response) -> MainspringError:
    """Return the error that a problem is: of the class that the server had, where that is one of ours."""
    try:
        problem: dict[str, Any] = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem = {}
    detail = _PLACE.sub("", str(problem.get("detail") or f"the server answered {answer.status_code}"))
    name = "".join(part.title() for part in str(problem.get("type", "")).rpartition(":")[2].split("-"))
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, MainspringError)):
        return NotFound(detail) if name.endswith("NotFound") else ServerRefused(detail, answer.status_code)
    error = kind.__new__(kind)
    error.args = (detail,)
    if isinstance(error, QuotaExceeded):
        error.retry_after = problem.get("retry_after")
    return error


def _pause(error: httpx.TransportError | _Passing, ask: Ask, pauses: Iterator[float]) -> float:
    """Return the seconds after which to ask again; raise what is wrong if that is not safe, or was done enough."""
    pause = next(pauses, None)
    if isinstance(error, _Passing):
        if pause is None or not ask.repeatable:
            raise error.error from None
        return min(_LONGEST_PAUSE, max(pause, error.after))
    # What could not be sent at all has changed nothing.
    if pause is None or not (ask.repeatable or isinstance(error, httpx.ConnectError)):
        raise _unavailable(error) from None
    return pause
