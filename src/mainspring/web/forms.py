"""Forms as browsers send them, and no more of them than a page of ours has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from mainspring.api.problems import Problem
from mainspring.errors import InvalidValue

LARGEST = 256 * 1024
_MOST_FIELDS = 1_100
_PATIENCE = 30
_LONGEST_WORDS = 2_000
_MEDIA_TYPE = "application/x-www-form-urlencoded"


class Form:
    """What the visitor has put in."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        """Return what stands under *name*; of what was left empty or is not there, nothing."""
        return self._fields.get(name, [""])[0].strip()

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def words(self, name: str) -> str | None:
        """Return what stands under *name* for others to read, such as a reason, which is no longer than the API's."""
        text = self[name]
        if len(text) > _LONGEST_WORDS:
            raise InvalidValue(f"expected {name} to be at most {_LONGEST_WORDS:,} characters, got {len(text):,}")
        return text or None


def check_plain(values: Iterable[str]) -> None:
    """Refuse what no database takes, whoever would ask for it."""
    if any("\0" in value for value in values):
        raise Problem(422, "invalid-value", "expected text without NUL characters, got some")


async def read_form(request: Request) -> Form:
    """Return the form that *request* brings."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != _MEDIA_TYPE:
        raise Problem(415, "unsupported-media-type", f"expected a form with the Content-Type {_MEDIA_TYPE}")
    body = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST:
                    raise Problem(413, "body-too-large", f"expected a form of at most {LARGEST:,} bytes, got more")
    except (TimeoutError, ClientDisconnect):
        raise Problem(408, "too-slow", "expected the whole form, got a part of it") from None
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise Problem(400, "malformed-form", "expected a form as browsers send it, got something else") from None
    check_plain(value for _, value in pairs)
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return Form(fields)
