"""A template over the arguments of a job: the key of a job, or of a limit, that tells them apart."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from functools import lru_cache

import msgspec

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.text import shortened


def check_template(text: str, name: str, known: Collection[str]) -> None:
    """Refuse a template that names anything but *known* arguments; *name* is what it is given as."""
    if not isinstance(text, str):
        raise InvalidValue(f"expected {name} to be text such as 'tenant:{{tenant}}', got: {shortened(text)}")
    for _, field in _parts(text, name):
        if field is not None and field not in known:
            hint = did_you_mean(field, known) or (f"; known are {', '.join(known)}" if known else "; it has none")
            raise InvalidValue(f"expected {name} to name arguments of the task, got {shortened(text)}: {field!r}{hint}")


def fields(text: str, name: str) -> set[str]:
    """Return the arguments that a template names."""
    return {field for _, field in _parts(text, name) if field is not None}


def render(text: str, name: str, arguments: Mapping[str, object]) -> str:
    """Return *text* with the arguments, as the JSON values that the job carries, in their places."""
    return "".join(
        literal + ("" if field is None else _written(arguments[field])) for literal, field in _parts(text, name)
    )


@lru_cache(maxsize=1_000)
def _parts(text: str, name: str) -> list[tuple[str, str | None]]:
    """Return the pieces of *text*, each with the argument that follows it."""
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise InvalidValue(f"expected {name} to be a template, got {shortened(text)}: {error}") from None
    for _, field, spec, conversion in parsed:
        # No way to reach into an argument: what a key may look like would depend on whatever that is.
        if field is not None and (not field.isidentifier() or spec or conversion):
            raise InvalidValue(f"expected {name} to name arguments as in 'tenant:{{tenant}}', got: {shortened(text)}")
    return [(literal, field) for literal, field, _, _ in parsed]


def _written(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
