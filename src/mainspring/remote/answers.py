"""What goes into addresses, and what is taken from answers, of which nobody knows who gave them."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened
from mainspring.remote.talk import Ask, Talk, odd_answer

T = TypeVar("T")

_DOTS = {".": "%2E", "..": "%2E%2E"}


def quoted(name: str) -> str:
    """Return *name* as a part of an address that leads to it, whatever is in it."""
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"expected the name or id of something, got: {shortened(name)}")
    return "/".join(_DOTS.get(one, quote(one, safe=":")) for one in name.split("/"))


def as_kind(told: object, kind: type[T]) -> T:
    """Return what was told as a *kind*."""
    try:
        return msgspec.convert(told, kind, strict=False)
    except msgspec.ValidationError as error:
        raise odd_answer(error) from None


def part(told: Any, name: str) -> Any:
    """Return what was told under *name*."""
    if not isinstance(told, dict) or name not in told:
        raise odd_answer(f"it has no {name!r}")
    return told[name]


def items(told: Any, kind: type[T]) -> list[T]:
    """Return the things of one *kind* that were listed."""
    return as_kind(part(told, "items"), list[kind])  # type: ignore[valid-type]


def listed(path: str, kind: type[T], **params: object) -> Talk[list[T]]:
    """Ask for a list."""
    told = yield Ask(method="GET", path=path, params=params)
    return items(told, kind)


def asked(method: str, path: str, kind: type[T], body: object = None) -> Talk[T]:
    """Ask for one thing, or change it."""
    told = yield Ask(method=method, path=path, body=body)
    return as_kind(told, kind)
