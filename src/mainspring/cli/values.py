"""Values as people type them."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from mainspring.clock import SystemClock
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.duration import duration, instant_or_ago
from mainspring.model.job import JobState, check_name, priority_of
from mainspring.model.payload import MAX_DEPTH
from mainspring.model.text import shortened

FORMATS = ("text", "json")
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
VEILED = "@FILE reads it from a file, and - from stdin, where nobody else sees it."

_LAST_PORT = 65_535
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d+)?")
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def length(text: str, option: str) -> timedelta:
    """Return the length of time that *text* says, such as `30s` or `1h30m`; a bare number counts seconds."""
    return duration(_with_unit(text), option)


def instant(text: str, option: str) -> datetime:
    """Return the instant that *text* says, which must have a time zone."""
    example = "like 2030-12-31T09:00:00Z or 2030-12-31T09:00+01:00"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"expected {option} to be an instant {example}, got: {shortened(text)}") from None
    if moment.tzinfo is None:
        raise InvalidValue(f"expected {option} to have a time zone, {example}, got: {shortened(text)}")
    return moment


def past(text: str, option: str) -> datetime:
    """Return the instant that *text* says, or that was as long ago as it says."""
    found = instant_or_ago(_with_unit(text), option)
    return SystemClock().now() - found if isinstance(found, timedelta) else found


def level(text: str) -> int:
    """Return the level of logging called *text*."""
    return LEVELS[_one_of(text.lower(), LEVELS, "--log-level")]


def log_format(text: str) -> str:
    """Return the form of logging called *text*."""
    return _one_of(text.lower(), FORMATS, "--log-format")


def ports(text: str | None, processes: int) -> range:
    """Return the ports that *text* says, one or from the first to the last, with one for each of *processes*."""
    if not text:
        return range(0)
    given = _PORTS.fullmatch(text)
    if given is None:
        raise InvalidValue(f"expected --metrics-port to be a port, such as 9400, or 9400-9403, got: {shortened(text)}")
    first, last = int(given[1]), int(given[2] or given[1])
    found = range(first, max(last, first + processes - 1) + 1)
    if not 1 <= found[0] <= found[-1] <= _LAST_PORT:
        raise InvalidValue(f"expected --metrics-port to be from 1 to {_LAST_PORT}, got: {shortened(text)}")
    return found


def job_state(text: str) -> JobState:
    """Return the state called *text*."""
    return JobState(_one_of(text.lower(), [str(state) for state in JobState], "--state"))


def priority(text: str) -> int:
    """Return the priority that *text* says, by number or by name."""
    number = whole_number(text)
    return priority_of(text if number is None else number, "--priority")


def weights(texts: Iterable[str]) -> dict[str, int]:
    """Return the queues that *texts* name, each with its weight: `mail=3,default` and so on."""
    found: dict[str, int] = {}
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        name, separator, after = text.partition("=")
        if not text:
            continue
        check_name(name, "queue")
        if name in found:
            raise InvalidValue(f"queue {name!r} is named twice; name it once, with its weight")
        weight = whole_number(after) if separator else 1
        if not weight:
            raise InvalidValue(
                f"expected the weight of queue {name!r} to be a whole number from 1 to 999,999,999, "
                f"got: {shortened(after)}"
            )
        found[name] = weight
    return found


def arguments(texts: Sequence[str], more: str | None) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments by position and by name that *texts* and the JSON object *more* say.

    A text is JSON, or else itself; `name=` in front of it makes it an argument by name.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = _object(more) if more is not None else {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        if named is None:
            args.append(value(text))
        elif named[1] in kwargs:
            raise InvalidValue(f"argument {named[1]!r} is given twice")
        else:
            kwargs[named[1]] = value(named[2])
    return args, kwargs


def named_arguments(texts: Sequence[str], option: str) -> dict[str, Any]:
    """Return the arguments that *texts* say, each as `name=value`."""
    args, kwargs = arguments(texts, None)
    if args:
        raise InvalidValue(f"expected {option} to be NAME=VALUE, got: {shortened(args[0])}")
    return kwargs


def share(text: str, option: str) -> float:
    """Return the share that *text* says: `0.2`, or `20%`."""
    percent = text.endswith("%")
    number = text.removesuffix("%").strip()
    found = float(number) / (100 if percent else 1) if _NUMBER.fullmatch(number) else -1
    if not 0 <= found <= 1:
        raise InvalidValue(f"expected {option} to be a share such as 0.2 or 20%, got: {shortened(text)}")
    return found


def value(text: str) -> Any:
    """Return what *text* says as JSON, or else itself."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text
    except RecursionError:
        raise InvalidValue(
            f"expected JSON of at most {MAX_DEPTH} levels of nesting, got more: {shortened(text)}"
        ) from None


def veiled(text: str, option: str) -> str:
    """Return *text*, or what the file holds that `@file` names, or stdin does if it is `-`.

    For what may be a secret: every user of a machine can list arguments, and they stay in the shell's history.
    """
    if text != "-" and not text.startswith("@"):
        return text
    try:
        return (sys.stdin.read() if text == "-" else Path(text[1:]).read_text()).strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InvalidValue(f"expected {option} to name what can be read, got: {shortened(text)}: {why}") from None


def whole_number(text: str) -> int | None:
    """Return the number that *text* is, if it is one of up to nine digits: Python refuses to read endless ones."""
    return int(text) if text.isdecimal() and len(text) <= 9 else None


def _with_unit(text: str) -> str:
    return f"{text}s" if _NUMBER.fullmatch(text) else text


def _object(text: str) -> dict[str, Any]:
    found = value(text)
    if not isinstance(found, dict):
        raise InvalidValue(
            f"""expected --kwargs to be a JSON object like '{{"name": "Ada"}}', got: {shortened(text)}"""
        )
    return found


def _one_of(text: str, known: Iterable[str], option: str) -> str:
    if text not in known:
        raise InvalidValue(
            f"expected {option} to be one of {', '.join(known)}, got: {shortened(text)}{did_you_mean(text, known)}"
        )
    return text
