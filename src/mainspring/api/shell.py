"""The shell around all routes: headers for every answer, no ambiguous framing, and no traceback for anybody."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainspring.api.problems import problem, unforeseen

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


_FEW_DIGITS = 5
"""Digits of a length whose rest is read and forgotten, so that the connection can be used again."""


class Shell:
    """ASGI middleware. What a route says of these headers itself stays as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, unread = False, _has_long_body(scope)

        async def receive_noted() -> Message:
            nonlocal unread
            message = await receive()
            unread = unread and bool(message.get("more_body"))
            return message

        async def send_clothed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if unread:  # or whoever sends without end would be listened to without end
                    headers["Connection"] = "close"
            await send(message)

        if _framed_twice(scope):
            answer = problem(400, "ambiguous-framing", "expected Content-Length or Transfer-Encoding, got both")
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send_clothed)
            return
        try:
            await self._app(scope, receive_noted, send_clothed)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is logged, and told by nothing but an id
            answer = unforeseen(error)
            if not started:
                await answer(scope, receive, send_clothed)


def _has_long_body(scope: Scope) -> bool:
    """Return whether a request may have more of a body than is worth reading in vain."""
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or len(headers.get(b"content-length", b"")) > _FEW_DIGITS


def _framed_twice(scope: Scope) -> bool:
    """Return whether two servers in a row might disagree where the body of a request ends."""
    names = [name for name, _ in scope["headers"]]
    return names.count(b"content-length") + names.count(b"transfer-encoding") > 1
