"""Values in requests that JSON has no kind for: each is checked in one go, and refused in one phrase of ours."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pydantic_core import PydanticCustomError

from mainspring.errors import InvalidValue
from mainspring.model.duration import duration
from mainspring.model.job import Priority, check_instant, check_priority

PRIORITIES = tuple(name.lower() for name in Priority.__members__)
LONGEST_LENGTH = 50
"""Characters of a length of time."""

PRIORITY_SCHEMA = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 100}, {"type": "string", "enum": list(PRIORITIES)}]
}
LENGTH_SCHEMA = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "minLength": 1, "maxLength": LONGEST_LENGTH}],
    "description": "A length of time: seconds, or text such as `90s` or `1h30m`.",
}


def priority(value: Any) -> int | str:
    """Return *value* if it is a priority, by number or by name."""
    if value in PRIORITIES:
        return str(value)
    try:
        check_priority(value)
    except InvalidValue:
        expected = f"a whole number from 0 to 100, or one of {', '.join(PRIORITIES)}"
        raise PydanticCustomError("priority", expected) from None
    return int(value)


def length(value: Any) -> timedelta:
    """Return the length of time that *value* says, by a number of seconds or in words."""
    try:
        if not isinstance(value, str) or len(value) <= LONGEST_LENGTH:
            return duration(value)
    except InvalidValue:
        pass
    raise PydanticCustomError(
        "length", "a number of seconds, or a length of time such as '90s' or '1h30m', from 0 to 100 years"
    )


def since(value: Any) -> datetime | timedelta:
    """Return the instant that *value* is, or how long ago that was."""
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        pass
    try:
        return duration(value)
    except InvalidValue:
        raise PydanticCustomError("since", "an instant, or how long ago it is, such as '90m'") from None


def within_reach(value: datetime) -> datetime:
    """Return *value* if it is an instant that databases can hold and reckon with."""
    try:
        check_instant(value)
    except InvalidValue:
        raise PydanticCustomError("instant", "an instant between 1970 and 2200") from None
    return value
