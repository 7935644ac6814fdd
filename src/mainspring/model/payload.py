"""Arguments and results as JSON, refused in the same way whatever database will keep them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from mainspring.errors import InvalidPayload
from mainspring.model.job import shortened

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


class Call(msgspec.Struct, frozen=True):
    """The arguments of a handler, as plain JSON values."""

    args: list[Any]
    kwargs: dict[str, Any]


_call_decoder = msgspec.json.Decoder(Call)


def encode_call(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the arguments of a call as JSON, or say which argument can't be carried and why."""
    call = Call(list(args), dict(kwargs))
    return _encode(call, lambda: _named_arguments(call))


def decode_call(payload: str) -> Call:
    """Return the arguments that *payload* carries, as plain JSON values."""
    return _call_decoder.decode(payload)


def encode_result(value: object) -> str:
    """Return a handler's result as JSON, or say why it can't be carried."""
    return _encode(value, lambda: [("the result", value)])


def convert(value: object, kind: type[T], name: str) -> T:
    """Return the JSON *value* as a *kind*, as an annotation asks for it; *name* is used in the error."""
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise InvalidPayload(f"{name}: {str(error)[:1].lower()}{str(error)[1:]}, got: {shortened(value)}") from None


def _encode(value: object, parts: Callable[[], list[tuple[str, object]]]) -> str:
    """Encode in one pass, and look closer only when the bytes show a sign of something that must be refused.

    The encoder writes NaN as null without a word, so any null is such a sign; so is the escape that a NUL
    becomes, and more opening brackets than levels allowed.
    """
    try:
        data = _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeEncodeError, msgspec.MsgspecError):
        raise _refusal(parts()) from None
    if len(data) > MAX_BYTES:
        raise _too_large(parts(), len(data))
    if b"null" in data or b"\\u0000" in data or data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        for name, part in parts():
            _examine(name, part)
    return data.decode()


def _named_arguments(call: Call) -> list[tuple[str, object]]:
    positional: list[tuple[str, object]] = [(f"argument {n}", value) for n, value in enumerate(call.args, 1)]
    return positional + [(f"argument {name!r}", value) for name, value in call.kwargs.items()]


def _too_large(parts: list[tuple[str, object]], size: int) -> InvalidPayload:
    name, largest = max(((name, len(_encoder.encode(part))) for name, part in parts), key=lambda part: part[1])
    return InvalidPayload(
        f"{name} is too large: expected at most {MAX_BYTES:,} bytes of JSON in all, got {size:,} "
        f"({largest:,} of them here); store the data elsewhere and pass a reference"
    )


def _refusal(parts: list[tuple[str, object]]) -> InvalidPayload:
    for name, part in parts:
        _examine(name, part)
    return InvalidPayload("the arguments can't be written as JSON")


def _examine(name: str, part: object) -> None:
    """Raise an error that says what is wrong with *part*, if anything is."""
    try:
        plain = msgspec.to_builtins(part, str_keys=True)
        _encoder.encode(part)
    except RecursionError:
        raise InvalidPayload(f"{name}: expected at most {MAX_DEPTH} levels of nesting, got more") from None
    except UnicodeEncodeError:
        raise InvalidPayload(
            f"{name}: expected valid Unicode text, got a lone surrogate in {shortened(part)}; pass bytes instead"
        ) from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise InvalidPayload(f"{name}: expected a value that JSON can carry, got {shortened(part)} ({error})") from None
    # The call's own list of arguments is not the caller's nesting, so his values start at level 1.
    _walk(name, plain, depth=1)


def _walk(name: str, value: object, depth: int) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidPayload(f"{name}: expected text without NUL characters, got: {shortened(value)}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(f"{name}: expected a finite number, got {value}, which JSON can't carry")
    elif isinstance(value, dict | list | tuple):
        if depth > MAX_DEPTH:
            raise InvalidPayload(f"{name}: expected at most {MAX_DEPTH} levels of nesting, got more")
        for inner in [*value.keys(), *value.values()] if isinstance(value, dict) else value:
            _walk(name, inner, depth + 1)
