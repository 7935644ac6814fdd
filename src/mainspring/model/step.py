"""A step: a named part of a job whose result is kept across attempts. Sleeps and waits for signals are steps too."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.duration import spelled
from mainspring.model.text import shortened, storable

SLEEP, SIGNAL = "@sleep ", "@signal "
"""What the names of sleeps and of waits for signals begin with. Those of other steps can't begin with @."""

_LONGEST_NAME = 200


class Step(msgspec.Struct, frozen=True):
    """A step as it is kept. A sleep, or a wait for a signal, has an `until`, and has `passed` when that has come.

    `at` is when it was finished; of a sleep or a wait, when it began.
    """

    name: str
    until: datetime | None
    result: str | None  # as JSON; a sleep has none, and a wait none yet
    at: datetime
    passed: bool

    @property
    def pending(self) -> bool:
        """Whether its job has to wait for it."""
        return self.result is None and not self.passed


def check_step_name(name: str, what: str = "the name of a step") -> None:
    """Refuse a name by which a step could not be found again."""
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or storable(name) != name:
        raise InvalidValue(
            f"expected {what} to be 1 to {_LONGEST_NAME} characters of text, without NUL or lone surrogates, "
            f"got: {shortened(name)}"
        )
    if name.startswith("@"):
        raise InvalidValue(
            f"expected {what} not to begin with @, as those of sleeps and signals do, got: {shortened(name)}"
        )


def sleep_name(length: timedelta, name: str | None) -> str:
    """Return by what name a sleep is kept: its own if it has one, or else its length."""
    return f"{SLEEP}{spelled(length) if name is None else name}"
