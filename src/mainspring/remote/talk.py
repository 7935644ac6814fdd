"""Talking to a server: what is said is written once, and carried by a client that blocks or by one that is awaited.

A call is a generator: it yields what it asks, gets the document that is answered, and returns what comes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import httpx
import msgspec

from mainspring import errors
from mainspring.clock import SystemClock
from mainspring.errors import MainspringError, QuotaExceeded, ServerRefused, ServerUnavailable

P = ParamSpec("P")
T = TypeVar("T")

_PAUSES = (0.1, 0.2, 0.5, 1.0)
_LONGEST_PAUSE = 10.0
_PASSING = (502, 503, 504)


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


class Line:
    """A connection to a server."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
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


class AsyncLine:
    """The same, awaited."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
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


class Spoken:
    """Whatever has a line to a server, and perhaps an id there."""

    id: UUID

    def __init__(self, line: Line) -> None:
        self._line = line

    def speak(self, talk: Talk[T]) -> T:
        return self._line.speak(talk)


class Awaited:
    """The same, awaited."""

    id: UUID

    def __init__(self, line: AsyncLine) -> None:
        self._line = line

    async def speak(self, talk: Talk[T]) -> T:
        return await self._line.speak(talk)


def said(call: Callable[P, Talk[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return *call* as a method that blocks."""

    @wraps(call)
    def method(self: Spoken, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.speak(call(*args, **kwargs))

    return method


def awaited(call: Callable[P, Talk[T]]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Return *call* as a method that is awaited."""

    @wraps(call)
    async def method(self: Awaited, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.speak(call(*args, **kwargs))

    return method


def said_of_it(call: Callable[Concatenate[UUID, P], Talk[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return *call*, which is about something with an id, as a method of that."""

    @wraps(call)
    def method(self: Spoken, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.speak(call(self.id, *args, **kwargs))

    return method


def awaited_of_it(call: Callable[Concatenate[UUID, P], Talk[T]]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Return the same to await."""

    @wraps(call)
    async def method(self: Awaited, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.speak(call(self.id, *args, **kwargs))

    return method


class _Passing(Exception):
    """An answer that may be another one soon."""

    def __init__(self, error: MainspringError, after: float) -> None:
        self.error = error
        self.after = after


def _request(http: httpx.Client | httpx.AsyncClient, ask: Ask, timeout: float) -> httpx.Request:
    content = None if ask.body is None else msgspec.json.encode(ask.body)
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


def _told(answer: httpx.Response) -> Any:
    if answer.is_success:
        return msgspec.json.decode(answer.content) if answer.content else None
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
    detail = str(problem.get("detail") or f"the server answered {answer.status_code}")
    name = "".join(part.title() for part in str(problem.get("type", "")).rpartition(":")[2].split("-"))
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, MainspringError)):
        return ServerRefused(detail, answer.status_code)
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
        raise ServerUnavailable(str(error) or type(error).__name__) from None
    return pause
