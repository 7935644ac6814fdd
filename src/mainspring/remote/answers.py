"""What goes into addresses, and what is taken from answers, of which nobody knows who gave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened
from mainspring.remote.talk import Ask, Talk, odd_answer

T = TypeVar("T")

LARGEST_PAGE = 1_000
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


def as_value(told: Any, read: Callable[[Any], T]) -> T:
    """Return what was told as *read* reads it."""
    try:
        return read(told)
    except KeyError as error:
        raise odd_answer(f"it has no {error}") from None
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise odd_answer(error) from None


def items(told: Any, read: Callable[[Any], T]) -> list[T]:
    """Return the things that were listed."""
    return as_value(part(told, "items"), lambda found: [read(one) for one in found])


def listed(path: str, read: Callable[[Any], T], **params: object) -> Talk[list[T]]:
    """Ask for a list."""
    told = yield Ask(method="GET", path=path, params=params)
    return items(told, read)


def paged(
    path: str,
    read: Callable[[Any], T],
    mark: str,
    limit: int | None = None,
    largest: int = LARGEST_PAGE,
    **params: object,
) -> Talk[list[T]]:
    """Ask for a list page by page, up to *limit* things if that is said; *mark* is what says where the next begins."""
    found: list[T] = []
    while limit is None or len(found) < limit:
        most = largest if limit is None else min(largest, limit - len(found))
        told = yield Ask(method="GET", path=path, params={**params, "limit": most})
        found += items(told, read)
        params[mark] = part(told, "next")
        if params[mark] is None:
            break
    return found


def asked(method: str, path: str, read: Callable[[Any], T], body: object = None) -> Talk[T]:
    """Ask for one thing, or change it."""
    told = yield Ask(method=method, path=path, body=body)
    return as_value(told, read)
