"""What an attempt came to."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import msgspec

from mainspring.errors import MainspringError
from mainspring.model.duration import Duration, duration
from mainspring.model.failure import Failure
from mainspring.model.job import NewJob
from mainspring.model.text import check_document


class Snooze(MainspringError):
    """Raised by a handler to be run again after *delay*; that costs no attempt."""

    def __init__(self, delay: Duration) -> None:
        self.delay = duration(delay, "delay")
        super().__init__(f"run again in {self.delay}")


class RetryAfter(MainspringError):
    """Raised by a handler that failed, and knows for how long another try would be in vain; it costs an attempt.

    It is tried again whatever exceptions its retry policy covers, after *delay* and the usual backoff on top, so that
    those which were told the same moment don't all come back in it.
    """

    def __init__(self, delay: Duration, why: str) -> None:
        self.delay = duration(delay, "delay")
        super().__init__(why)


class Succeeded(msgspec.Struct, frozen=True):
    """The handler returned; `result` is what it returned, as JSON, and `added` are jobs that come with its success."""

    name: ClassVar[str] = "succeeded"
    result: str
    added: tuple[NewJob, ...] = ()
    details: str | None = None  # what the attempt says of itself, as JSON

    def __post_init__(self) -> None:
        check_document(self.result, "result")


class Failed(msgspec.Struct, frozen=True):
    """The handler raised. `retryable` says whether its retry policy covers that exception, `after` how soon at best."""

    name: ClassVar[str] = "failed"
    failure: Failure
    retryable: bool = True
    details: str | None = None
    after: timedelta = timedelta(0)


class TimedOut(msgspec.Struct, frozen=True):
    """The handler did not end in time."""

    name: ClassVar[str] = "timed_out"
    failure: Failure
    retryable: bool = True
    details: str | None = None


class Snoozed(msgspec.Struct, frozen=True):
    """The handler asked to be run again later; that costs no attempt."""

    name: ClassVar[str] = "snoozed"
    delay: timedelta


class Suspended(msgspec.Struct, frozen=True):
    """The handler sleeps for `delay`, or waits as long for a `signal`; that costs no attempt, and no slot."""

    name: ClassVar[str] = "suspended"
    delay: timedelta
    signal: str | None = None


class Expanded(msgspec.Struct, frozen=True):
    """The job has become a workflow: it ends when its `members` have, as its `plan` says."""

    name: ClassVar[str] = "expanded"
    members: tuple[NewJob, ...]
    plan: str


class Cancelled(msgspec.Struct, frozen=True):
    """The handler stopped because a person asked it to cancel."""

    name: ClassVar[str] = "cancelled"
    reason: str | None = None
    details: str | None = None


class Paused(msgspec.Struct, frozen=True):
    """The handler stopped because a person asked it to pause; that costs no attempt."""

    name: ClassVar[str] = "paused"
    reason: str | None = None


class Lost(msgspec.Struct, frozen=True):
    """The worker died, or could not be told apart from a dead one."""

    name: ClassVar[str] = "lost"
    reason: str


class Returned(msgspec.Struct, frozen=True):
    """The worker gives the job back unstarted, or provably stopped; that costs no attempt."""

    name: ClassVar[str] = "returned"


Outcome = Succeeded | Failed | TimedOut | Snoozed | Suspended | Expanded | Cancelled | Paused | Lost | Returned

SPARED = "spared"
"""What is kept as the outcome of an attempt that failed or timed out when its breaker was open: it cost no attempt.

No worker can say so of its own attempt, for only the settle knows the breaker.
"""
