"""Arguments and results as JSON, refused in the same way whatever database will keep them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from mainspring.errors import InvalidPayload
from mainspring.model.text import shortened

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MOST_DETAILS = 16 * 1024
_SMALLEST_INT, _LARGEST_INT = -(2**63), 2**64 - 1

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_LONG_NUMBER = re.compile(r"[\[:,]-?[0-9]{19}")


class Ref(msgspec.Struct, frozen=True, array_like=True):
    """A place among the arguments of a job that is taken by the result of another job, when it runs."""

    path: tuple[int | str, ...]
    job: UUID


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of a handler, as plain JSON values; what `refs` stand for is null until it is known."""

    args: list[Any]
    kwargs: dict[str, Any]
    refs: tuple[Ref, ...] = ()


_call_decoder = msgspec.json.Decoder(Call)


def encode_call(args: Sequence[object], kwargs: Mapping[str, object], refs: Sequence[Ref] = ()) -> str:
    """Return the arguments of a call as JSON, or say which argument can't be carried and why."""
    call = Call(list(args), dict(kwargs), tuple(refs))
    return _encode(call, lambda: _named_arguments(call))


def decode_call(payload: str) -> Call:
    """Return the arguments that *payload* carries, as plain JSON values."""
    try:
        return _call_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise InvalidPayload(f"the arguments can't be read: {_told(error, payload)}") from None


def written(call: Call) -> str:
    """Return *call*, all of whose arguments are known, as JSON; it was checked before."""
    return _encoder.encode({"args": call.args, "kwargs": call.kwargs}).decode()


def filled(payload: str, results: Mapping[UUID, str]) -> str:
    """Return *payload* with the *results* that it refers to, as JSON, in their places; what has none stays null."""
    call = decode_call(payload)
    arguments: dict[str, Any] = {"args": call.args, "kwargs": call.kwargs}
    for ref in call.refs:
        place: Any = arguments
        for part in ref.path[:-1]:
            place = place[part]
        if ref.job in results:
            place[ref.path[-1]] = msgspec.Raw(results[ref.job].encode())
    return _encoder.encode(arguments).decode()


def encode_result(value: object, name: str = "the result") -> str:
    """Return a handler's result, or what else *name* stands for, as JSON, or say why it can't be carried."""
    if value is None:
        return "null"
    return _encode(value, lambda: [(name, value)])


def encode_details(details: Mapping[str, object]) -> str | None:
    """Return what an attempt says of itself, as JSON; None if that is nothing.

    What can't be kept is no failure of the attempt; that there was something, and why it is missing, is kept instead.
    """
    if not details:
        return None
    try:
        text = encode_result(dict(details), "details")
    except (InvalidPayload, RuntimeError) as error:  # the last from a handler that goes on changing them meanwhile
        return encode_result({"not_kept": str(error)})
    if len(text) <= MOST_DETAILS:
        return text
    return encode_result({"not_kept": f"expected details of at most {MOST_DETAILS:,} bytes, got {len(text):,}"})


def convert(value: object, kind: type[T], name: str) -> T:
    """Return the JSON *value* as a *kind*, as an annotation asks for it; *name* is used in the error."""
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        hint = "; a secret stands for text" if isinstance(value, str) and value.startswith("secret://") else ""
        raise InvalidPayload(f"{name}: {_told(error, value)}{hint}") from None
    except TypeError as error:
        raise InvalidPayload(f"{name}: its annotation can't be used to convert JSON ({error})") from None


def _told(error: msgspec.MsgspecError, value: object) -> str:
    """Return what *error* says about *value*, and the value itself: most, but not all, tell already what they got."""
    said = f"{str(error)[:1].lower()}{str(error)[1:]}"
    link = " of " if " - at `" in said else ": " if ", got " in said else ", got: "
    return f"{said}{link}{shortened(value)}"


def _encode(value: object, parts: Callable[[], list[tuple[str, object]]]) -> str:
    """Encode in one pass, and look closer only when the text shows a sign of something that must be refused."""
    try:
        data = _encoder.encode(value)
        text = data.decode()
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        raise _refusal(parts()) from None
    if len(data) > MAX_BYTES:
        raise _too_large(parts(), len(data))
    if _is_suspect(text):
        for name, part in parts():
            _examine(name, part)
    return text


def _is_suspect(text: str) -> bool:
    """Return whether *text* shows such a sign.

    The encoder writes NaN as null without a word, so any null is one; so is the escape that a NUL becomes, more
    opening brackets than levels allowed, and a number as long as the first that 64 bits can't hold.
    """
    return (
        "null" in text
        or "\\u0000" in text
        or "\0" in text
        or (len(text) > MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH)
        # With a comma in front, a result that is nothing but a number is seen too.
        or _LONG_NUMBER.search(f",{text}") is not None
    )


def _named_arguments(call: Call) -> list[tuple[str, object]]:
    positional: list[tuple[str, object]] = [(f"argument {n}", value) for n, value in enumerate(call.args, 1)]
    named: list[tuple[str, object]] = [(f"argument {shortened(name)}", value) for name, value in call.kwargs.items()]
    # The names go into the database as well, and those of **kwargs may be any text.
    names: list[tuple[str, object]] = [(f"the name of argument {shortened(name)}", name) for name in call.kwargs]
    return positional + named + names


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
        # The call's own list of arguments is not the caller's nesting, so his values start at level 1.
        _walk(name, msgspec.to_builtins(part, str_keys=True), depth=1)
        _encoder.encode(part)
    except InvalidPayload:
        raise
    except RecursionError:
        raise InvalidPayload(f"{name}: expected at most {MAX_DEPTH} levels of nesting, got more") from None
    except UnicodeEncodeError:
        raise InvalidPayload(
            f"{name}: expected valid Unicode text, got a lone surrogate in {shortened(part)}; pass bytes instead"
        ) from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise InvalidPayload(f"{name}: expected a value that JSON can carry, got {shortened(part)} ({error})") from None


def _walk(name: str, value: object, depth: int) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidPayload(f"{name}: expected text without NUL characters, got: {shortened(value)}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(f"{name}: expected a finite number, got {value}, which JSON can't carry")
    elif isinstance(value, int):
        if not _SMALLEST_INT <= value <= _LARGEST_INT:
            raise InvalidPayload(
                f"{name}: expected whole numbers from -2^63 to 2^64-1, got one of {value.bit_length()} bits; "
                "pass it as text"
            )
    elif isinstance(value, dict | list | tuple):
        if depth > MAX_DEPTH:
            raise InvalidPayload(f"{name}: expected at most {MAX_DEPTH} levels of nesting, got more")
        for inner in [*value.keys(), *value.values()] if isinstance(value, dict) else value:
            _walk(name, inner, depth + 1)
