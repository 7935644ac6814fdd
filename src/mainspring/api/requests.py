"""Requests as they come in: JSON only, no more of it than a route takes, and nothing that is packed."""

from __future__ import annotations

import asyncio
import re
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.types import Message

from mainspring.api.problems import Problem

M = TypeVar("M", bound=BaseModel)

_SOUND_ESCAPE = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

LARGEST = 1024 * 1024
"""Bytes of a request, but for routes that say otherwise."""

_PATIENCE = 30
"""Seconds that a body may take to come in: who sends a byte a minute must not keep a connection for it."""


class JsonRequest(Request):
    """A request whose body is read with care."""

    most = LARGEST

    async def body(self) -> bytes:
        """Return the body, having checked what it is and counted it as it came in."""
        if not hasattr(self, "_body"):
            self._check_kind()
            self._body = await self._read()
            if self._body and self.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                raise Problem(
                    415, "unsupported-media-type", "expected a body with the Content-Type application/json, got another"
                )
        return self._body

    async def json(self) -> Any:
        """Return the value that the body is. NaN, lone surrogates and what is no UTF-8 are no JSON."""
        try:
            return msgspec.json.decode(await self.body())
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
            said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            if _has_half_a_pair(await self.body()):
                said = "an escape such as \\ud800 is half of a surrogate pair, which is no Unicode text"
            raise Problem(400, "malformed-json", f"expected a body that is JSON, got something else: {said}") from None

    async def parsed(self, kind: type[M]) -> M:
        """Return the body as a *kind*, refused as the framework would refuse it."""
        said = await self.json() if await self.body() else None
        try:
            return kind.model_validate(said)
        except ValidationError as error:
            found = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
            raise RequestValidationError(found, body=said) from None

    def _check_kind(self) -> None:
        packed = self.headers.get("content-encoding")
        if packed not in (None, "identity"):
            raise Problem(
                415, "packed-body", f"expected a body that is not packed, got the Content-Encoding {packed!r}"
            )
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > self.most:
            raise self._too_large()

    async def _read(self) -> bytes:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._read_on()
        except TimeoutError:
            raise Problem(408, "too-slow", f"expected the whole body within {_PATIENCE} s, got a part of it") from None

    async def _read_on(self) -> bytes:
        chunks, size = [], 0
        more = True
        while more:
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "cut-off", "expected the whole body, got a part of it")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self.most:
                raise self._too_large()
            chunks.append(chunk)
            more = message.get("more_body", False)
        self._stream_consumed = True
        return b"".join(chunks)

    def _too_large(self) -> Problem:
        return Problem(413, "body-too-large", f"expected a body of at most {self.most:,} bytes, got more")


def _has_half_a_pair(body: bytes) -> bool:
    """Return whether *body* has an escape for one half of what takes two: the decoder calls that cut off."""
    return _SURROGATE.search(_SOUND_ESCAPE.sub(b"", body)) is not None
