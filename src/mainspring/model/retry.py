"""When a failed attempt is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeGuard

from mainspring.errors import InvalidValue
from mainspring.model.duration import LONGEST, Duration, duration
from mainspring.model.text import shortened

ExceptionTypes = tuple[type[BaseException], ...]

# 2**60 of any base is beyond any cap, and far from the overflow of a float.
_LARGEST_DOUBLING = 60

_LARGEST_GROUP = 1_000
"""Exceptions that are looked at: a group may have any number."""


@dataclass(frozen=True, init=False)
class Retry:
    """Exponential backoff with a cap, jitter, and rules by exception.

    `max_attempts` counts the first run. `on` limits retries to these exceptions; `never` wins over `on`. Without
    `jitter`, jobs that failed together are tried again together.
    """

    max_attempts: int
    base: timedelta
    cap: timedelta
    on: ExceptionTypes
    never: ExceptionTypes
    jitter: bool

    def __init__(
        self,
        max_attempts: int = 5,
        base: Duration = "2s",
        cap: Duration = "10m",
        on: ExceptionTypes = (Exception,),
        never: ExceptionTypes = (),
        jitter: bool = True,
    ) -> None:
        if isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1:
            raise InvalidValue(
                f"expected max_attempts to be a whole number of at least 1, got: {shortened(max_attempts)}"
            )
        if not isinstance(jitter, bool):
            raise InvalidValue(f"expected jitter to be True or False, got: {shortened(jitter)}")
        # Written by hand so that callers may say "2s" while readers always find a timedelta.
        object.__setattr__(self, "max_attempts", max_attempts)
        object.__setattr__(self, "base", duration(base, "base"))
        object.__setattr__(self, "cap", duration(cap, "cap"))
        object.__setattr__(self, "on", _exceptions(on, "on"))
        object.__setattr__(self, "never", _exceptions(never, "never"))
        object.__setattr__(self, "jitter", jitter)

    def within(self, max_attempts: int) -> Retry:
        """Return the same for so many attempts at most."""
        return Retry(max_attempts, self.base, self.cap, self.on, self.never, self.jitter)

    def delay(self, attempt: int, jitter: float) -> timedelta:
        """Return how long to wait after failed attempt number *attempt*; *jitter* lies between 0.5 and 1.5."""
        doublings = min(attempt - 1, _LARGEST_DOUBLING)
        seconds = min(self.cap.total_seconds(), self.base.total_seconds() * 2**doublings)
        return min(LONGEST, timedelta(seconds=seconds * jitter))

    def covers(self, error: BaseException) -> bool:
        """Return whether *error* is of a kind that is worth another attempt.

        A group is, if all exceptions in it are, and none that is never retried is among them.
        """
        parts = list(leaves(error))
        if isinstance(error, self.never) or any(isinstance(part, self.never) for part in parts):
            return False
        return isinstance(error, self.on) or all(isinstance(part, self.on) for part in parts)

    def allows(self, attempt: int) -> bool:
        """Return whether another attempt may follow attempt number *attempt*."""
        return attempt < self.max_attempts


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group, and in groups within it, that are no groups; *error* itself if it is none."""
    left = [error]
    for _ in range(_LARGEST_GROUP):
        if not left:
            return
        one = left.pop()
        if isinstance(one, BaseExceptionGroup):
            left += reversed(one.exceptions)
        else:
            yield one


def _exceptions(types: ExceptionTypes, name: str) -> ExceptionTypes:
    if isinstance(types, tuple) and all(_is_exception(kind) for kind in types):
        return types
    hint = f"; write ({types.__name__},)" if _is_exception(types) else ""
    raise InvalidValue(f"expected {name} to be a tuple of exception classes, got: {shortened(types)}{hint}")


def _is_exception(kind: object) -> TypeGuard[type[BaseException]]:
    return isinstance(kind, type) and issubclass(kind, BaseException)
